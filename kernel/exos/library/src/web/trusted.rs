//! Bytes at addresses that no reference of Rust covers.

use core::ptr;

use postern_aegis::PAGE;
use postern_aegis::memory::FIRST;

/// Whether a range is what [`postern_aegis::memory::reserve`] gave, in one page.
fn serves(at: u64, length: usize) -> bool {
    at >= FIRST && (at % PAGE as u64) as usize + length <= PAGE
}

/// Copies bytes to where a page of the server's own is bound. Nothing, if they are not in one page.
pub fn copy_in(at: u64, from: &[u8]) {
    if serves(at, from.len()) {
        // SAFETY: addresses that were reserved are no image's and no reference's, and the range is in one
        // page, which the caller has bound to be written. A device may read it meanwhile.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), at as *mut u8, from.len()) }
    }
}

/// Copies bytes from where a page is bound, whoever writes it meanwhile. Nothing, if they are not in
/// one page.
pub fn copy_out(to: &mut [u8], at: u64) {
    if serves(at, to.len()) {
        // SAFETY: as above; the page is bound to be read. What another process stores there meanwhile
        // makes other bytes of these, and nothing else.
        unsafe { ptr::copy_nonoverlapping(at as *const u8, to.as_mut_ptr(), to.len()) }
    }
}
