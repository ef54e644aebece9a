//! Shared objects, as the dynamic linker loads them. What they do they do to the server.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// A shared object could not be used; what the dynamic linker says.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct LibraryError(pub String);

/// A loaded shared object.
#[derive(Debug)]
pub struct Loaded(*mut c_void);

// SAFETY: the handle is only given to dlsym, which any thread may call, and once to dlclose.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// Loads a file. Its constructors run. A file is loaded once, however often that is asked for.
    ///
    /// # Errors
    /// It cannot be loaded.
    pub fn open(path: &Path) -> Result<Loaded, LibraryError> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| LibraryError("the name has a NUL in it".to_owned()))?;
        // SAFETY: the name is a C string. The constructors do what they do: that is what this way to run a program means.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        match handle.is_null() {
            true => Err(last_error()),
            false => Ok(Loaded(handle)),
        }
    }

    /// Where a symbol is, as long as `self` lives.
    pub fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open; the name is a C string.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; symbols are used while it lives.
        unsafe { libc::dlclose(self.0) };
    }
}

fn last_error() -> LibraryError {
    // SAFETY: dlerror returns null or a C string, which is copied before the next call of this thread.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return LibraryError("it cannot be loaded".to_owned());
        }
        CStr::from_ptr(text)
    };
    LibraryError(text.to_string_lossy().into_owned())
}

/// A plugin that nothing confines: `int NAME(struct picture *)` of a shared object.
#[derive(Debug, Clone)]
pub struct Unconfined {
    _library: Arc<Loaded>,
    function: unsafe extern "C" fn(*mut c_void) -> i32,
}

impl Unconfined {
    /// Loads it.
    ///
    /// # Errors
    /// It cannot be loaded, or has no such function.
    pub fn open(path: &Path, function: &str) -> Result<Unconfined, LibraryError> {
        let library = Loaded::open(path)?;
        let name = CString::new(function).map_err(|e| LibraryError(e.to_string()))?;
        let symbol = library
            .symbol(&name)
            .ok_or_else(|| LibraryError(format!("it has no function `{function}`")))?;
        Ok(Unconfined {
            _library: Arc::new(library),
            // SAFETY: the site's owner says that a function of this name has this type; see picture.h.
            function: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> i32>(symbol)
            },
        })
    }

    /// Calls it with the address of a `struct picture` of an area.
    pub fn call(&self, picture: u64) -> i32 {
        // SAFETY: the library is loaded as long as `self`; the structure and what it points to were written for this call and stay
        // until it returns. That the function keeps to them is trusted.
        unsafe { (self.function)(picture as *mut c_void) }
    }
}
