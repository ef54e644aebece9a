//! Shared objects, as the dynamic linker loads them. What they do they do to the server.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
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
    /// # Safety
    /// The process trusts the file as its own code: constructors and destructors run with all that
    /// it may do.
    ///
    /// # Errors
    /// It cannot be loaded.
    pub unsafe fn open(path: &Path) -> Result<Loaded, LibraryError> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| LibraryError("the name has a NUL in it".to_owned()))?;
        // SAFETY: the name is a C string. That the constructors do no harm is the caller's to know.
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
    // SAFETY: dlerror returns null or a C string, which is copied before the next call of this
    // thread.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return LibraryError("it cannot be loaded".to_owned());
        }
        CStr::from_ptr(text)
    };
    LibraryError(text.to_string_lossy().into_owned())
}
