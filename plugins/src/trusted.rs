//! The only place for `unsafe`: plugins that nothing confines, who do to the server what they do;
//! and memory that the C library keeps.

use postern::Shared;
use postern_server::{LibraryError, Loaded};
use std::ffi::{CString, c_void};
use std::path::Path;
use std::sync::Arc;

/// Gives memory back to the system that was freed, and that the C library keeps for later: what a
/// large picture had.
pub fn give_back_freed() {
    // SAFETY: it has no conditions; it takes the allocator's own locks, one after the other.
    unsafe { libc::malloc_trim(0) };
}

/// `int NAME(struct picture *)`.
type PictureFunction = unsafe extern "C" fn(*mut c_void) -> i32;

/// A function of a shared object.
#[derive(Debug, Clone)]
pub struct Unconfined {
    _library: Arc<Loaded>,
    function: PictureFunction,
}

impl Unconfined {
    /// Loads a plugin of a site whose plugins are run with `run = "unprotected"`.
    ///
    /// # Errors
    /// It cannot be loaded, or has no such function.
    pub fn open(path: &Path, function: &str) -> Result<Unconfined, LibraryError> {
        // SAFETY: the site says of its plugins that they are not confined: its owner trusts them as
        // the server itself.
        let library = unsafe { Loaded::open(path)? };
        let name = CString::new(function).map_err(|e| LibraryError(e.to_string()))?;
        let symbol = library
            .symbol(&name)
            .ok_or_else(|| LibraryError(format!("it has no function `{function}`")))?;
        Ok(Unconfined {
            _library: Arc::new(library),
            // SAFETY: the site's owner says that a function of this name has this type; see
            // picture.h.
            function: unsafe { std::mem::transmute::<*mut c_void, PictureFunction>(symbol) },
        })
    }

    /// Calls it with the `struct picture` at the beginning of an area.
    pub fn call(&self, area: &Shared) -> i32 {
        // SAFETY: the library is loaded as long as `self`, and the area is mapped as long as the
        // reference lives, which is until the function returns. That the function keeps to what the
        // structure says is trusted, as the library is.
        unsafe { (self.function)(area.as_ptr().cast()) }
    }
}
