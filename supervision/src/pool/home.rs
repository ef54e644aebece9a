//! Where a thread keeps the domain that it had last, and how it is lent one.

use super::cache::{Item, ThreadCache};
use super::options::{Lendable, PoolError};
use super::state::Shared;
use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A domain on loan, and where it goes back to.
pub(crate) type Lent<T> = (Arc<ThreadCache<T>>, Box<Item<T>>);

/// A thread's home in a pool: what it keeps there, and the pool.
struct Home<T: Lendable> {
    cache: Arc<ThreadCache<T>>,
    pool: Weak<Shared<T>>,
}

/// A home of any type.
trait AnyHome {
    fn leave(&self);
    fn is_orphan(&self) -> bool;
    fn cache(&self) -> Arc<dyn Any + Send + Sync>;
}

impl<T: Lendable> AnyHome for Home<T> {
    fn leave(&self) {
        self.cache.left.store(true, Ordering::SeqCst);
        if let Some(item) = self.cache.slot.swap(None)
            && let Some(pool) = self.pool.upgrade()
        {
            pool.shelve(item);
        }
    }
    fn is_orphan(&self) -> bool {
        self.pool.strong_count() == 0
    }
    fn cache(&self) -> Arc<dyn Any + Send + Sync> {
        self.cache.clone()
    }
}

/// The calling thread's home in the pool with a number; left when the thread ends.
struct Local {
    pool: u64,
    home: Box<dyn AnyHome>,
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
fn of<T: Lendable>(pool: &Arc<Shared<T>>) -> Arc<ThreadCache<T>> {
    let known = HOMES.try_with(|homes| {
        let homes = homes.borrow();
        let found = homes.iter().find(|local| local.pool == pool.number)?;
        found.home.cache().downcast::<ThreadCache<T>>().ok()
    });
    if let Ok(Some(home)) = known {
        return home;
    }
    let home = ThreadCache::new();
    pool.add_home(home.clone());
    let kept = Home {
        cache: home.clone(),
        pool: Arc::downgrade(pool),
    };
    let local = Local {
        pool: pool.number,
        home: Box::new(kept),
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

impl<T: Lendable> Shared<T> {
    /// Lends a domain to the calling thread, whose home it goes back to.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Lent<T>, PoolError> {
        let home = of(self);
        home.held.fetch_add(1, Ordering::SeqCst);
        // Its own, or a panic of the host's constructor: either way nothing is lent.
        struct Unless<'a>(Option<&'a AtomicUsize>);
        impl Drop for Unless<'_> {
            fn drop(&mut self) {
                if let Some(held) = self.0 {
                    held.fetch_sub(1, Ordering::SeqCst);
                }
            }
        }
        let mut unless = Unless(Some(&home.held));
        let warm = match self.options.per_thread {
            true => home.slot.take(),
            false => None,
        };
        let item = match warm {
            Some(item) if item.kind == self.kind.load(Ordering::SeqCst) => Ok(item),
            Some(old) => {
                self.forget(old);
                self.take_shared()
            }
            None => self.take_shared(),
        };
        match item {
            Ok(item) => {
                home.taken
                    .store(home.taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                unless.0 = None;
                drop(unless);
                Ok((home, item))
            }
            Err(error) => {
                if matches!(error, PoolError::Full(_) | PoolError::TimedOut(_)) {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
                Err(error)
            }
        }
    }
}
