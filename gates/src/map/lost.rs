//! Addresses that were ours and may be somebody else's now: nothing there is touched any more.
//! Hardly any process ever has one.

use super::error::MapError;
use std::sync::atomic::{AtomicPtr, Ordering};

struct Range {
    start: usize,
    end: usize,
    before: *const Range,
}

/// The last one. They stay for good.
static LAST: AtomicPtr<Range> = AtomicPtr::new(std::ptr::null_mut());

pub(super) fn add(start: usize, bytes: usize) {
    let range = Box::leak(Box::new(Range {
        start,
        end: start + bytes,
        before: std::ptr::null(),
    }));
    let mut before = LAST.load(Ordering::SeqCst);
    loop {
        range.before = before;
        let (order, new) = (Ordering::SeqCst, &raw mut *range);
        match LAST.compare_exchange(before, new, order, order) {
            Ok(_) => return,
            Err(other) => before = other,
        }
    }
}

/// Whether nothing of `[start, start + bytes)` is lost.
pub(super) fn none_in(start: usize, bytes: usize) -> Result<(), MapError> {
    let mut next: *const Range = LAST.load(Ordering::SeqCst);
    // SAFETY: null, or a range that `add` leaked, which nobody changes once it is in the list.
    while let Some(range) = unsafe { next.as_ref() } {
        if range.start < start + bytes && start < range.end {
            return Err(MapError::Lost);
        }
        next = range.before;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map;

    #[test]
    fn what_is_lost_is_not_touched() {
        let start = map::reserve(4 * 4096).unwrap();
        add(start + 4096, 4096);
        let none = map::Protection::None;
        // SAFETY: here and below the four pages are this test's own.
        unsafe {
            assert!(map::place(start, 4096, none, None).is_ok());
            assert!(map::protect(start + 2 * 4096, 2 * 4096, none).is_ok());
        }
        for (from, bytes) in [(0, 2 * 4096), (4096, 4096), (0, 4 * 4096)] {
            // SAFETY: as above.
            let lost = unsafe { map::place(start + from, bytes, none, None) };
            assert!(matches!(lost, Err(MapError::Lost)));
            // SAFETY: as above.
            assert!(unsafe { !map::discard(start + from, bytes) });
        }
    }

    #[test]
    fn a_hole_is_reserved_again_if_nobody_took_it() {
        let start = map::reserve(3 * 4096).unwrap();
        let error = || MapError::Code;
        // SAFETY: the page is this test's own.
        unsafe { map::release(start + 4096, 4096) };
        // As if the kernel had refused after it removed the page.
        let again = map::still_ours(start + 4096, 4096, error(), true);
        assert!(matches!(again, MapError::Code));
        assert!(map::reserve_at(start + 4096, 4096).is_err());
        // And as if another thread had been there first.
        let lost = map::still_ours(start + 4096, 4096, error(), true);
        assert!(matches!(lost, MapError::Lost) && none_in(start + 4096, 1).is_err());
    }
}
