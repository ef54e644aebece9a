//! Pools: domains of one image made ahead, lent to whoever serves a request, and cleaned before the
//! next.
//!
//! Invariant: the domains of a pool are those that lie idle, those that lie in a thread's home, and
//! those that are lent; together never more than its size. A domain is lent to one at a time. What
//! a pool shares between threads is under one lock ([`state`]); a thread that finds its last domain
//! at home ([`home`]) needs none.

mod cache;
mod home;
mod options;
mod state;

pub use options::{Lendable, PoolCounters, PoolError, Recycle};

use crate::RestartPolicy;
use cache::{Item, ThreadCache};
use options::{Make, Options};
use postern_runtime::Domain;
use postern_runtime::restart::Clock;
use state::Shared;
use std::error::Error;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// Collects what a pool is. See [`Pool::builder`].
#[must_use = "nothing happens before build()"]
pub struct PoolBuilder<T> {
    make: Make<T>,
    options: Options,
    warm: Option<usize>,
}

/// Domains to be lent. Cloning shares the pool.
pub struct Pool<T: Lendable = Domain>(Arc<Shared<T>>);

/// A domain on loan; it goes back when this is dropped.
pub struct Pooled<'a, T: Lendable = Domain> {
    pool: Lender<'a, T>,
    home: Arc<ThreadCache<T>>,
    item: Option<Box<Item<T>>>,
}

enum Lender<'a, T: Lendable> {
    Borrowed(&'a Shared<T>),
    Owned(Arc<Shared<T>>),
}

/// As [`Domain`]: what was lent while a panic went through goes back, and is cleaned like others.
impl<T: Lendable> std::panic::UnwindSafe for Pool<T> {}
impl<T: Lendable> std::panic::RefUnwindSafe for Pool<T> {}

impl<T: Lendable> PoolBuilder<T> {
    /// Most domains, at least one. Default: as many as there are processors.
    pub fn size(mut self, domains: usize) -> Self {
        self.options.size = domains;
        self
    }

    /// How many are made at once, by `build`; the others when they are needed. Default: all.
    pub fn warm(mut self, domains: usize) -> Self {
        self.warm = Some(domains);
        self
    }

    /// What happens between two uses. Default: [`Recycle::Reset`].
    pub fn recycle(mut self, how: Recycle) -> Self {
        self.options.recycle = how;
        self
    }

    /// What becomes of a domain that faulted. Default: [`RestartPolicy::Immediate`]. With `Never`,
    /// and once back-off gives up, the domain is dropped and the pool is smaller by one.
    pub fn restart(mut self, policy: RestartPolicy) -> Self {
        self.options.restart = policy;
        self
    }

    /// How long a caller waits while all are in use. Default: 1 s.
    pub fn max_wait(mut self, time: Duration) -> Self {
        self.options.max_wait = time;
        self
    }

    /// How many callers may wait at once. Default: any number.
    pub fn max_waiting(mut self, callers: usize) -> Self {
        self.options.max_waiting = callers;
        self
    }

    /// Each thread keeps the domain that it had last, and gets it again without a lock and warm. A
    /// thread that has none takes one that lies idle, at whatever thread's.
    pub fn per_thread(mut self) -> Self {
        self.options.per_thread = true;
        self
    }

    /// The time by which back-off is measured, instead of the system's: for tests. It must not go
    /// backwards.
    pub fn clock(mut self, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.options.clock = Clock::of(now);
        self
    }

    /// Makes the pool and the domains that are made ahead.
    ///
    /// # Errors
    /// One of them could not be made, or the size is 0.
    pub fn build(self) -> Result<Pool<T>, PoolError> {
        if self.options.size == 0 {
            return Err(PoolError::NoSize);
        }
        let warm = self
            .warm
            .unwrap_or(self.options.size)
            .min(self.options.size);
        let shared = Shared::new(self.make, self.options);
        shared.warm(warm)?;
        Ok(Pool(Arc::new(shared)))
    }
}

impl<T: Lendable> Pool<T> {
    /// Begins a pool of what `make` makes.
    pub fn builder<E: Into<Box<dyn Error + Send + Sync>>>(
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> PoolBuilder<T> {
        PoolBuilder {
            make: boxed(make),
            options: Options {
                size: std::thread::available_parallelism().map_or(1, |n| n.get()),
                recycle: Recycle::default(),
                restart: RestartPolicy::Immediate,
                clock: Clock::default(),
                max_wait: Duration::from_secs(1),
                max_waiting: usize::MAX,
                per_thread: false,
            },
            warm: None,
        }
    }

    /// A domain for the caller alone, until the guard is dropped. Waits if all are in use.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn get(&self) -> Result<Pooled<'_, T>, PoolError> {
        let (home, item) = Shared::take(&self.0)?;
        let pool = Lender::Borrowed(&*self.0);
        let item = Some(item);
        Ok(Pooled { pool, home, item })
    }

    /// As [`Pool::get`], with a guard that keeps the pool alive itself.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn get_owned(&self) -> Result<Pooled<'static, T>, PoolError> {
        let (home, item) = Shared::take(&self.0)?;
        let pool = Lender::Owned(self.0.clone());
        let item = Some(item);
        Ok(Pooled { pool, home, item })
    }

    /// Runs `work` with a domain.
    ///
    /// # Errors
    /// As [`Pool::get`].
    pub fn with<R>(&self, work: impl FnOnce(&T) -> R) -> Result<R, PoolError> {
        let lent = self.get()?;
        Ok(work(&lent))
    }

    /// From now on the pool's domains are those that `make` makes: the first is made at once, idle
    /// ones of the old kind are dropped, and those in use when they come back.
    ///
    /// # Errors
    /// The first could not be made; then nothing has changed.
    pub fn replace<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<(), PoolError> {
        self.0.replace(boxed(make))
    }

    /// Lends nothing more. Domains in use are dropped when they come back, idle ones now, and
    /// callers that wait are refused.
    pub fn close(&self) {
        self.0.close();
    }

    /// The counters now.
    pub fn counters(&self) -> PoolCounters {
        self.0.counters()
    }
}

fn boxed<T, E: Into<Box<dyn Error + Send + Sync>>>(
    make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
) -> Make<T> {
    Arc::new(move || make().map_err(Into::into))
}

impl<T: Lendable> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Pool(self.0.clone())
    }
}

impl<T: Lendable> std::fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.counters()).finish()
    }
}

impl<T: Lendable> Deref for Pooled<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.item.as_ref().expect("taken only by drop").value
    }
}

impl<T: Lendable> Drop for Pooled<'_, T> {
    fn drop(&mut self) {
        let pool = match &self.pool {
            Lender::Borrowed(pool) => pool,
            Lender::Owned(pool) => &**pool,
        };
        if let Some(item) = self.item.take() {
            pool.give_back(&self.home, item);
        }
    }
}
