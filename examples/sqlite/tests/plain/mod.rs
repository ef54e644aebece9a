//! The plain build of the same sources, by dlopen: what the confined one is compared with. `unsafe`
//! lives here.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;

/// SQLite without protection. There is one database in the process: use it from one thread.
pub struct Plain(*mut c_void);

impl Plain {
    /// Opens a shared object made by `postern build --native`.
    pub fn open_library(path: &Path) -> Plain {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
        // SAFETY: opening runs the object's constructors; SQLite has none.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "cannot open {}", path.display());
        Plain(handle)
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).expect("no NUL in a literal");
        // SAFETY: the handle is open and the name is a C string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!address.is_null(), "the object lacks {name:?}");
        address
    }

    /// `query_open` and `query_run`: SQLite's status, and rows or message.
    pub fn call(&self, function: &str, text: &str) -> (i32, Vec<u8>) {
        let text = CString::new(text).expect("no NUL in SQL");
        // SAFETY: query.c declares these types, and that the result has so many bytes.
        unsafe {
            let run: extern "C" fn(*const c_char) -> i32 =
                std::mem::transmute(self.symbol(function));
            let result: extern "C" fn() -> *const u8 =
                std::mem::transmute(self.symbol("query_text"));
            let size: extern "C" fn() -> usize = std::mem::transmute(self.symbol("query_size"));
            let status = run(text.as_ptr());
            match size() {
                0 => (status, Vec::new()),
                size => (status, std::slice::from_raw_parts(result(), size).to_vec()),
            }
        }
    }

    /// `query_close`.
    pub fn close(&self) {
        // SAFETY: query.c declares this type.
        let close: extern "C" fn() -> i32 =
            unsafe { std::mem::transmute(self.symbol("query_close")) };
        assert_eq!(close(), 0);
    }
}
