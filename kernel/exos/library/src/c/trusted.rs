//! What C calls, by the names that newlib's own functions ask for: with an error number in `errno`
//! and -1 where it fails.

use core::ffi::{c_char, c_int, c_void};

use postern_aegis::{calls, start};

const EBADF: c_int = 9;

unsafe extern "C" {
    safe fn __errno() -> *mut c_int;
}

fn fails<T: From<i8>>(error: c_int) -> T {
    // SAFETY: newlib's own variable, of a process with one thread.
    unsafe { *__errno() = error };
    T::from(-1)
}

/// Writes bytes to the console.
///
/// # Safety
/// The bytes are the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(_descriptor: c_int, bytes: *const u8, length: usize) -> isize {
    // SAFETY: the caller says so.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, length) };
    calls::write(bytes).map_or_else(|_| fails(EBADF), |done| done as isize)
}

/// Reads nothing.
#[unsafe(no_mangle)]
pub extern "C" fn read(_descriptor: c_int, _to: *mut u8, _length: usize) -> isize {
    0
}

/// There are no files.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(_name: *const c_char, _flags: c_int, _mode: c_int) -> c_int {
    fails(EBADF)
}

/// There are no files.
#[unsafe(no_mangle)]
pub extern "C" fn close(_descriptor: c_int) -> c_int {
    fails(EBADF)
}

/// There are no files.
#[unsafe(no_mangle)]
pub extern "C" fn lseek(_descriptor: c_int, _offset: i64, _from: c_int) -> i64 {
    fails(EBADF)
}

/// There are no files.
#[unsafe(no_mangle)]
pub extern "C" fn fstat(_descriptor: c_int, _status: *mut c_void) -> c_int {
    fails(EBADF)
}

/// The console is one.
#[unsafe(no_mangle)]
pub extern "C" fn isatty(descriptor: c_int) -> c_int {
    c_int::from((0..3).contains(&descriptor))
}

/// One process.
#[unsafe(no_mangle)]
pub extern "C" fn getpid() -> c_int {
    1
}

/// A signal to itself is its end.
#[unsafe(no_mangle)]
pub extern "C" fn kill(_process: c_int, _signal: c_int) -> c_int {
    start::exit()
}

/// A signal to itself is its end.
#[unsafe(no_mangle)]
pub extern "C" fn raise(_signal: c_int) -> c_int {
    start::exit()
}

/// The end.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(_status: c_int) -> ! {
    start::exit()
}
