//! Modules without protection, by `dlopen`: what the confined ones are compared with. `unsafe`
//! lives here and in `exchange`.

use crate::exchange::Request;
use crate::server::{file_size, put, seconds, secret, variable};
use std::ffi::{CString, c_void};
use std::path::Path;

/// `struct services` of `module.h`.
#[repr(C)]
struct Table {
    put: extern "C" fn(i32, u32, u32) -> i64,
    variable: extern "C" fn(u32) -> i64,
    file_size: extern "C" fn(u32) -> i64,
    secret: extern "C" fn(u32) -> i64,
    seconds: extern "C" fn() -> u64,
}

extern "C" fn put_(place: i32, name: u32, value: u32) -> i64 {
    put(place, name, value)
}
extern "C" fn variable_(name: u32) -> i64 {
    variable(name)
}
extern "C" fn file_size_(name: u32) -> i64 {
    file_size(name)
}
extern "C" fn secret_(name: u32) -> i64 {
    secret(name)
}
extern "C" fn seconds_() -> u64 {
    seconds()
}

static TABLE: Table = Table {
    put: put_,
    variable: variable_,
    file_size: file_size_,
    secret: secret_,
    seconds: seconds_,
};

/// A function of a module.
#[derive(Clone, Copy)]
pub struct Function(extern "C" fn(*const Request) -> i32);

impl Function {
    /// Calls it.
    pub fn call(self, request: *const Request) -> i32 {
        self.0(request)
    }
}

/// An opened shared object; it stays open.
pub struct Object(*mut c_void);

impl Object {
    /// Opens a module and tells it the services.
    pub fn open(path: &Path) -> Result<Object, String> {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: opening runs the object's constructors; the modules have none.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("{} cannot be opened", path.display()));
        }
        let object = Object(handle);
        if let Some(bind) = object.symbol("module_bind") {
            // SAFETY: module.h declares it so.
            let bind: extern "C" fn(&'static Table) = unsafe { std::mem::transmute(bind) };
            bind(&TABLE);
        }
        Ok(object)
    }

    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the object is open and the name is a C string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// One of the functions that modules export.
    pub fn function(&self, name: &str) -> Option<Function> {
        type Plain = extern "C" fn(*const Request) -> i32;
        let address = self.symbol(name)?;
        // SAFETY: all of them have this type; module.h says so.
        let plain = unsafe { std::mem::transmute::<*mut c_void, Plain>(address) };
        Some(Function(plain))
    }
}
