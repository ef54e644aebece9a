//! What C calls.

use postern_aegis::calls;

/// Writes bytes to the console.
///
/// # Safety
/// The bytes are the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _write(_descriptor: i32, bytes: *const u8, length: usize) -> isize {
    // SAFETY: the caller says so.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, length) };
    calls::write(bytes).map_or(-1, |done| done as isize)
}
