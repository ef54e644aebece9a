//! Words that the kernel and the host take turns to write.

use postern::Shared;
use std::sync::atomic::{AtomicU32, Ordering};

fn word(area: &Shared, at: usize) -> Option<&AtomicU32> {
    if !area.is_writable() || !at.is_multiple_of(4) || at.checked_add(4)? > area.len() {
        return None;
    }
    // SAFETY: the word lies in the area, aligned, and is mapped for writing as long as `area`
    // lives; pages of a packet socket's ring do not go away under a mapping. The kernel writes it
    // at any time, which is what atomic accesses are for, and no reference to it is other than
    // atomic.
    Some(unsafe { AtomicU32::from_ptr(area.as_ptr().add(at).cast()) })
}

/// The word at `at`; what was written before it is seen, too. 0 where there is none.
pub(crate) fn load(area: &Shared, at: usize) -> u32 {
    word(area, at).map_or(0, |word| word.load(Ordering::Acquire))
}

/// Writes the word at `at` after everything else.
pub(crate) fn store(area: &Shared, at: usize, value: u32) {
    if let Some(word) = word(area, at) {
        word.store(value, Ordering::Release);
    }
}
