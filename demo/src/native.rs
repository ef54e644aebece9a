//! The same functions without protection, by dlopen: what the demonstration compares with. `unsafe`
//! lives here.

use std::ffi::{CString, c_void};
use std::path::Path;

/// An opened shared object; it stays open.
pub struct Native(*mut c_void);

impl Native {
    /// Opens a shared object made by `postern cc --native`.
    pub fn open(path: &Path) -> Result<Native, String> {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: opening runs the object's constructors; it was just compiled from the examples,
        // which have none.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("cannot open {}", path.display()));
        }
        Ok(Native(handle))
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).expect("no NUL in a literal");
        // SAFETY: the handle is open and the name is a C string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!address.is_null(), "the object lacks {name:?}");
        address
    }

    /// `long gray(unsigned char *, unsigned long)`.
    pub fn gray(&self, picture: &mut [u8]) -> i64 {
        // SAFETY: examples/extensions/gray.c has this type and stays within the buffer.
        let f: extern "C" fn(*mut u8, u64) -> i64 =
            unsafe { std::mem::transmute(self.symbol("gray")) };
        f(picture.as_mut_ptr(), picture.len() as u64)
    }

    /// `void sha256(const unsigned char *, unsigned long, unsigned char *)`.
    pub fn sha256(&self, data: &[u8]) -> [u8; 32] {
        // SAFETY: examples/extensions/sha256.c has this type, reads the buffer and writes 32 bytes.
        let f: extern "C" fn(*const u8, u64, *mut u8) =
            unsafe { std::mem::transmute(self.symbol("sha256")) };
        let mut digest = [0; 32];
        f(data.as_ptr(), data.len() as u64, digest.as_mut_ptr());
        digest
    }
}
