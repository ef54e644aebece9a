//! What C calls, by the names that newlib's own functions ask for: with an error number in `errno`
//! and -1 where it fails.

mod disk;
mod files;
mod identity;
mod names;
mod net;
mod nfs;
mod processes;
mod ready;
mod services;
mod signals;
mod sockets;
mod terminal;
mod web;

use core::ffi::{CStr, c_char, c_int};

use postern_exos_abi::errno::Errno;

unsafe extern "C" {
    safe fn __errno() -> *mut c_int;
}

/// A result as C has it.
fn answer<T: From<i8>>(result: Result<T, Errno>) -> T {
    result.unwrap_or_else(|error| {
        // SAFETY: newlib's own variable, of a process with one thread.
        unsafe { *__errno() = error.0 };
        T::from(-1)
    })
}

/// A string of C's.
///
/// # Safety
/// It is one, or null, and stays for as long as it is used.
unsafe fn string<'a>(string: *const c_char) -> &'a [u8] {
    if string.is_null() {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { CStr::from_ptr(string) }.to_bytes()
}
