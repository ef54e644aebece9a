//! Native shared objects: the other build of a kernel.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A loaded shared object; closed when dropped.
pub struct Library(*mut c_void);

fn last_error() -> String {
    // SAFETY: dlerror returns null or a string that is valid until the next call of its family on
    // this thread.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "unknown error".into()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

impl Library {
    /// Loads a shared object that we built, all symbols bound.
    pub fn open(path: &Path) -> Result<Library, String> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the object is one of our own kernels, which has no constructors.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(last_error());
        }
        Ok(Library(handle))
    }

    fn address(&self, name: &str) -> Result<*mut c_void, String> {
        let symbol = CString::new(name).map_err(|e| e.to_string())?;
        // SAFETY: the handle is open.
        let address = unsafe { libc::dlsym(self.0, symbol.as_ptr()) };
        if address.is_null() {
            Err(last_error())
        } else {
            Ok(address)
        }
    }

    /// Calls `unsigned long name(void)`; all kernels and programs have that type.
    pub fn kernel(&self, name: &str) -> Result<impl Fn() -> u64 + '_, String> {
        let address = self.address(name)?;
        // SAFETY: kernels are functions of this type.
        let function: extern "C" fn() -> u64 = unsafe { std::mem::transmute(address) };
        Ok(move || function())
    }

    /// Calls `unsigned long name(unsigned, unsigned, unsigned, unsigned)`, the type of `calls` in
    /// `memory.c`.
    pub fn calls(&self, name: &str) -> Result<impl Fn(u32, u32, u32, u32) -> u64 + '_, String> {
        let address = self.address(name)?;
        // SAFETY: the one function that is asked for has this type, and checks nothing that the
        // benchmark does not keep.
        let function: extern "C" fn(u32, u32, u32, u32) -> u64 =
            unsafe { std::mem::transmute(address) };
        Ok(move |a, b, c, d| function(a, b, c, d))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and `kernel` borrows self, so nothing of it is in use.
        unsafe { libc::dlclose(self.0) };
    }
}
