//! The page's words.

use core::sync::atomic::AtomicU64;

/// The words of a page that is mapped at an address for a mailbox.
pub fn words(at: u64) -> &'static [AtomicU64; 512] {
    // SAFETY: the address is a mailbox's, which no image covers; atomics may be changed by others
    // at any time. If the page is taken away, to touch it is an exception and no other memory.
    unsafe { &*(at as *const [AtomicU64; 512]) }
}
