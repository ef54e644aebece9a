//! Where a thread keeps the domain that it had last, and how many it has on loan.

use super::Lendable;
use super::state::{Item, Shared};
use postern_gates::slot::Slot;
use postern_runtime::fork;
use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// One thread's, in one pool.
pub(crate) struct ThreadCache<T: Lendable> {
    /// The domain that lies here between two uses.
    pub slot: Slot<Item<T>>,
    /// Domains that the thread was lent, or is being lent.
    pub held: AtomicUsize,
    /// Loans so far; only the thread itself counts.
    pub taken: AtomicU64,
    /// The thread has ended.
    pub left: AtomicBool,
    /// Which thread it is, in which process.
    thread: fork::ThreadId,
    pool: Weak<Shared<T>>,
}

impl<T: Lendable> ThreadCache<T> {
    pub(crate) fn new(pool: &Arc<Shared<T>>) -> Arc<ThreadCache<T>> {
        Arc::new(ThreadCache {
            slot: Slot::new(),
            held: 0.into(),
            taken: 0.into(),
            left: false.into(),
            thread: fork::ThreadId::mine(),
            pool: Arc::downgrade(pool),
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

/// A home of any type.
trait AnyHome: Any + Send + Sync {
    fn leave(&self);
    fn is_orphan(&self) -> bool;
    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: Lendable> AnyHome for ThreadCache<T> {
    fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
        if let Some(item) = self.slot.swap(None)
            && let Some(pool) = self.pool.upgrade()
        {
            pool.shelve(item);
        }
    }
    fn is_orphan(&self) -> bool {
        self.pool.strong_count() == 0
    }
    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The calling thread's home in the pool with a number; left when the thread ends.
struct Local {
    pool: u64,
    home: Arc<dyn AnyHome>,
}

impl Drop for Local {
    fn drop(&mut self) {
        self.home.leave();
    }
}

thread_local! {
    static HOMES: RefCell<Vec<Local>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread's home in a pool; a thread that is ending has a new one each time.
pub(crate) fn of<T: Lendable>(pool: &Arc<Shared<T>>) -> Arc<ThreadCache<T>> {
    let known = HOMES.try_with(|homes| {
        let homes = homes.borrow();
        let found = homes.iter().find(|local| local.pool == pool.number)?;
        found.home.clone().any().downcast::<ThreadCache<T>>().ok()
    });
    if let Ok(Some(home)) = known {
        return home;
    }
    let home = ThreadCache::new(pool);
    pool.add_home(home.clone());
    let local = Local {
        pool: pool.number,
        home: home.clone(),
    };
    let mut orphans = Vec::new();
    let kept = HOMES.try_with(|homes| {
        let mut homes = homes.borrow_mut();
        let all = std::mem::take(&mut *homes);
        let (gone, mut here): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|local| local.home.is_orphan());
        here.push(local);
        (orphans, *homes) = (gone, here);
    });
    if kept.is_err() {
        home.left.store(true, Ordering::SeqCst);
    }
    home
}
