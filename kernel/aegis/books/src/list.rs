//! Lists of pages through their records: the free list, and each owner's.
//!
//! Invariant: `next` goes from the first page to the last, which has [`NONE`]; `previous` goes
//! back, and from the first to the last, so that both ends are near. An owner's pages of memory
//! stand before those that are pinned as tables, links or context: whoever looks for memory looks
//! at the first. The caller holds the list's lock.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::records::{NONE, Page};

/// A list: its pages, and where its first one's number is.
pub(crate) struct List<'a> {
    pub pages: &'a [Page],
    pub first: &'a AtomicU32,
}

impl List<'_> {
    fn record(&self, page: u32) -> &Page {
        &self.pages[page as usize]
    }

    pub fn push_front(&self, page: u32) {
        let next = self.insert_last(page);
        self.first.store(page, Relaxed);
        self.record(page).next.store(next, Relaxed);
    }

    pub fn push_back(&self, page: u32) {
        let first = self.insert_last(page);
        if first == NONE {
            self.first.store(page, Relaxed);
        } else {
            let last = self.record(page).previous.load(Relaxed);
            self.record(last).next.store(page, Relaxed);
        }
        self.record(page).next.store(NONE, Relaxed);
    }

    /// Writes the links back as if the page stood behind the last one. In a ring that is before
    /// the first one, too. Returns that one.
    fn insert_last(&self, page: u32) -> u32 {
        let first = self.first.load(Relaxed);
        let mut last = page;
        if first != NONE {
            last = self.record(first).previous.swap(page, Relaxed);
        }
        self.record(page).previous.store(last, Relaxed);
        first
    }

    pub fn remove(&self, page: u32) {
        let next = self.record(page).next.load(Relaxed);
        let previous = self.record(page).previous.load(Relaxed);
        let first = self.first.load(Relaxed);
        if first == page {
            self.first.store(next, Relaxed);
        } else {
            self.record(previous).next.store(next, Relaxed);
        }
        let behind = if next != NONE { next } else { first };
        if behind != page {
            self.record(behind).previous.store(previous, Relaxed);
        }
    }
}
