//! What a thread keeps of a pool: the domain that it had last, and how many it has on loan.

use super::options::Lendable;
use postern_gates::atomic_box::AtomicBox;
use postern_runtime::fork;
use postern_runtime::restart::FaultStreak;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A domain of the pool.
pub(crate) struct Item<T> {
    pub value: T,
    /// Which of the pool's kinds it is of.
    pub kind: u64,
    /// Its faults in a row.
    pub streak: FaultStreak,
}

/// One thread's, in one pool.
pub(crate) struct ThreadCache<T: Lendable> {
    /// The domain that lies here between two uses.
    pub slot: AtomicBox<Item<T>>,
    /// Domains that the thread was lent, or is being lent.
    pub held: AtomicUsize,
    /// Loans so far; only the thread itself counts.
    pub taken: AtomicU64,
    /// The thread has ended.
    pub left: AtomicBool,
    /// Which thread it is, in which process.
    thread: fork::ThreadId,
}

impl<T: Lendable> ThreadCache<T> {
    pub(crate) fn new() -> Arc<ThreadCache<T>> {
        Arc::new(ThreadCache {
            slot: AtomicBox::new(),
            held: 0.into(),
            taken: 0.into(),
            left: false.into(),
            thread: fork::ThreadId::mine(),
        })
    }

    /// One loan less.
    pub(crate) fn release(&self) {
        let less = |held: usize| held.checked_sub(1);
        let _ = self
            .held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }

    /// Whether its thread was left behind by a fork.
    pub(crate) fn is_elsewhere(&self) -> bool {
        !self.thread.is_here()
    }

    /// Nobody can come back to it.
    pub(crate) fn is_forsaken(&self) -> bool {
        self.left.load(Ordering::SeqCst)
            && self.held.load(Ordering::SeqCst) == 0
            && self.slot.is_empty()
    }
}
