//! Pages by their numbers: the free list is public, so a program chooses which it wants, and the
//! call says whether it got it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis_abi::Error;
use postern_aegis_abi::call::NAME_NOBODY;

use crate::{books, calls, entry, memory, slices};

/// Slices that [`take`] waits for others to give pages back, once they were asked, at least; and for how
/// many cycles: a device that has a page may belong to a host that is slow.
const PATIENCE: u32 = 256;
const CYCLES: u64 = 1 << 32;

/// Takes any page, for nobody else. Waits while others are asked for one.
pub fn take() -> Result<u32, Error> {
    patiently(|| calls::allocate(NAME_NOBODY, NAME_NOBODY))
}

/// Takes a page whose number serves: a colour of the cache, a bank, a neighbour of another.
///
/// # Errors
/// [`Error::Exhausted`] if no free page's number does.
pub fn take_where(serves: impl Fn(u32) -> bool) -> Result<u32, Error> {
    // The list changes while it is read: a number that somebody else took meanwhile is passed by.
    books::free_pages()
        .filter(|page| serves(*page))
        .find_map(|page| calls::allocate_page(page, NAME_NOBODY, NAME_NOBODY).ok())
        .ok_or(Error::Exhausted)
}

/// Takes a page away, also one that has so many bindings that it takes several calls.
pub fn free(page: u32) -> Result<(), Error> {
    patiently(|| calls::free(page)).map(drop)
}

/// Calls again as long as the kernel says so.
pub fn patiently<T>(mut call: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut waited = 0;
    let mut since = 0;
    loop {
        match call() {
            Err(Error::Again) if waited == 0 => since = slices::clock(),
            Err(Error::Again)
                if waited < PATIENCE || slices::clock().wrapping_sub(since) < CYCLES => {}
            result => return result,
        }
        waited += 1;
        entry::yield_slice();
    }
}

/// The page of this space through which pages are filled that are for others.
pub fn window() -> u64 {
    static WINDOW: AtomicU64 = AtomicU64::new(0);
    if WINDOW.load(Relaxed) == 0 {
        WINDOW.store(memory::reserve(1), Relaxed);
    }
    WINDOW.load(Relaxed)
}
