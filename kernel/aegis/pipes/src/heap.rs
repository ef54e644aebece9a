//! Memory for what allocates: addresses that are this crate's, with pages when they are needed.
//!
//! What comes meanwhile, events and exceptions, must not allocate: the heap may be in use.

mod trusted;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::{Mapping, PAGE, memory};

/// Pages that a heap has at most, and those that it takes at a time.
const MOST: u64 = 4096;
const STEP: u64 = 16;

static FIRST: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Pages that the heap has taken so far, which it keeps.
pub fn pages() -> u64 {
    TAKEN.load(Relaxed)
}

/// Where the heap begins.
fn first() -> u64 {
    if FIRST.load(Relaxed) == 0 {
        FIRST.store(memory::reserve(MOST), Relaxed);
    }
    FIRST.load(Relaxed)
}

/// Binds pages behind those that there are, for so many bytes and some more: how many bytes came.
fn grow(bytes: usize) -> usize {
    let wanted = (bytes as u64).div_ceil(PAGE as u64).saturating_add(STEP);
    let before = TAKEN.load(Relaxed);
    let end = before.saturating_add(wanted).min(MOST);
    for page in before..end {
        if memory::map_fresh(first() + page * PAGE as u64, Mapping::WRITE).is_err() {
            break;
        }
        TAKEN.store(page + 1, Relaxed);
    }
    ((TAKEN.load(Relaxed) - before) as usize) * PAGE
}
