//! The page of contexts where it stands.

use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis_abi::address::GUARANTEED;

use crate::context::Context;

const _: () = assert!(size_of::<Context>() == size_of::<postern_aegis_abi::Context>());
const _: () = assert!(
    offset_of!(Context, events) == offset_of!(postern_aegis_abi::Context, events)
        && offset_of!(Context, repossessions)
            == offset_of!(postern_aegis_abi::Context, repossessions)
        && offset_of!(Context, upcalled) == offset_of!(postern_aegis_abi::Context, upcalled)
);

/// This environment's.
pub fn context() -> &'static Context {
    // SAFETY: whoever made the environment mapped the page there, to be read and written, for as
    // long as it lives; all its words are atomics, and no call here maps anything else over it.
    unsafe { &*(GUARANTEED as *const Context) }
}

/// Stores a word of the page by its index: for tests of what the kernel makes of nonsense.
///
/// # Safety
/// An entry changed here must not be used before it is right again.
pub unsafe fn store_word(index: usize, value: u64) {
    // SAFETY: a word of the page, as above.
    let words = unsafe { &*(GUARANTEED as *const [AtomicU64; 512]) };
    words[index % 512].store(value, Relaxed);
}
