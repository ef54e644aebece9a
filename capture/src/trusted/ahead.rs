//! Asks the processor for memory that is about to be read, so that nobody waits for it.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Bytes that come with one request.
pub(crate) const LINE: usize = 64;

/// Asks for the line of an address.
pub(crate) fn prefetch(at: *const u8) {
    // SAFETY: it is a hint. It reads nothing that the program could see and has no fault, wherever
    // it points.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}
