//! Another thread's wish that a call end: the call's number, and why. A thread has one for its
//! innermost call, and one in the record of each call that waits.
//!
//! Invariants: no number comes twice in a thread, so a wish that is late means nobody; and the
//! reason is stored before the number and read after it, so whoever finds a number finds its own
//! reason or a later one's. Others store under the registry's lock, so one at a time; the thread
//! itself takes away only the wish that it has read.

use super::atomic::Atomic;
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The two words.
pub struct EndRequest<'a, N: Atomic<u64> = AtomicU64, K: Atomic<u32> = AtomicU32> {
    number: &'a N,
    kind: &'a K,
}

impl<'a, N: Atomic<u64>, K: Atomic<u32>> EndRequest<'a, N, K> {
    /// Of these words.
    pub(crate) fn new(number: &'a N, kind: &'a K) -> EndRequest<'a, N, K> {
        EndRequest { number, kind }
    }

    /// Asks for the end of the call with this number, for this reason ([`super::outcome`]).
    pub(crate) fn put(&self, number: u64, kind: u32) {
        self.kind.store(kind, SeqCst);
        self.number.store_ahead(number);
    }

    /// The same; false if it was asked for already.
    pub(crate) fn ask(&self, number: u64, kind: u32) -> bool {
        let new = !self.is_for(number);
        if new {
            self.put(number, kind);
        }
        new
    }

    /// Number of the call that is to end, or 0.
    pub(crate) fn wanted(&self) -> u64 {
        self.number.load(SeqCst)
    }

    /// Whether the call with this number is to end.
    pub fn is_for(&self, number: u64) -> bool {
        self.wanted() == number
    }

    /// Why.
    pub(crate) fn kind(&self) -> u32 {
        self.kind.load(SeqCst)
    }

    /// The wish for the call with this number is fulfilled, or noted elsewhere. Another one that
    /// came meanwhile stays.
    pub(crate) fn done(&self, number: u64) {
        let _ = self.number.compare_exchange(number, 0, SeqCst);
    }
}
