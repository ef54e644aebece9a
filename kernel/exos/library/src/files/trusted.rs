//! Words of pages that several processes bind, and bytes of C's.

use core::sync::atomic::AtomicU64;

/// A word of a page of offsets, which is bound as long as a file is open whose it is.
pub fn word(at: u64) -> &'static AtomicU64 {
    // SAFETY: `offsets` gives places of bound pages only; others change the word at any time, so it
    // is an atomic. If the page is not there, to touch it is an exception and no other memory.
    unsafe { &*(at as *const AtomicU64) }
}
