//! Pools: domains of one image made ahead, lent to whoever serves a request, and cleaned before the next.
//!
//! Invariant: the domains of a pool are those that lie idle, those that lie in a thread's home, and those that are lent; together
//! never more than its size. A domain is lent to one at a time. What a pool shares between threads is under one lock
//! ([`state`]); a thread that finds its last domain at home ([`home`]) needs none.

mod home;
mod state;

use crate::RestartPolicy;
use home::ThreadCache;
use postern_runtime::restart::Clock;
use postern_runtime::{Domain, Func};
use state::{Item, Shared};
use std::error::Error;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// What a pool lends: a domain, a typed entry, or a structure of the host's own with a domain and its entries.
pub trait Lendable: Send + 'static {
    /// The domain that is reset and restarted.
    fn domain(&self) -> &Domain;
}

impl Lendable for Domain {
    fn domain(&self) -> &Domain {
        self
    }
}

impl<F: 'static> Lendable for Func<F> {
    fn domain(&self) -> &Domain {
        Func::domain(self)
    }
}

/// What happens to a domain between two uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recycle {
    /// It begins anew: nobody sees what the last one left.
    #[default]
    Reset,
    /// It stays as it is, unless it faulted.
    Keep,
}

/// Nothing was lent.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// A domain could not be made.
    #[error("a domain of the pool could not be made: {0}")]
    Make(#[source] Arc<dyn Error + Send + Sync>),
    /// All are in use, and enough callers wait already.
    #[error(
        "all domains of the pool are in use and {0} callers wait already; a larger size or max_waiting, or less load"
    )]
    Full(usize),
    /// All were in use for too long.
    #[error("all domains of the pool were in use for {0:?}; a larger size or max_wait")]
    TimedOut(Duration),
    /// All faulted, and the restart policy lets them rest.
    #[error("all domains of the pool faulted and rest; the first for another {0:?}")]
    Resting(Duration),
    /// All faulted, and the restart policy leaves them closed.
    #[error(
        "all domains of the pool faulted, and its restart policy begins none anew; make another pool"
    )]
    Spent,
    /// The pool was closed.
    #[error("the pool is closed")]
    Closed,
}

pub(crate) type Make<T> = Arc<dyn Fn() -> Result<T, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Collects what a pool is. See [`Pool::builder`].
#[must_use = "nothing happens before build()"]
pub struct PoolBuilder<T> {
    make: Make<T>,
    options: Options,
    warm: Option<usize>,
}

#[derive(Clone)]
pub(crate) struct Options {
    size: usize,
    recycle: Recycle,
    restart: RestartPolicy,
    clock: Clock,
    max_wait: Duration,
    max_waiting: usize,
    per_thread: bool,
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

/// What a pool did so far, and how it is now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolCounters {
    /// Domains that it may have; fewer than at first if some faulted for good.
    pub size: usize,
    /// Domains that are lent now, or being made or cleaned for somebody.
    pub in_use: usize,
    /// Domains that lie there, also those that rest.
    pub idle: usize,
    /// Callers that wait now.
    pub waiting: usize,
    /// Loans.
    pub taken: u64,
    /// Loans that had to be waited for.
    pub waited: u64,
    /// Callers that got nothing: the pool was full, or time was up.
    pub refused: u64,
    /// Domains made.
    pub made: u64,
    /// Resets between uses.
    pub resets: u64,
    /// Domains that began anew after a fault.
    pub restarts: u64,
    /// Domains given up: threads were still inside, or the restart policy says so.
    pub abandoned: u64,
}

impl<T: Lendable> PoolBuilder<T> {
    /// Most domains. Default: as many as there are processors.
    pub fn size(mut self, domains: usize) -> Self {
        self.options.size = domains.max(1);
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

    /// What becomes of a domain that faulted. Default: [`RestartPolicy::Immediate`]. With `Never`, and once back-off gives up, the
    /// domain is dropped and the pool is smaller by one.
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

    /// Each thread keeps the domain that it had last, and gets it again without a lock and warm. A thread that has none takes one
    /// that lies idle, at whatever thread's.
    pub fn per_thread(mut self) -> Self {
        self.options.per_thread = true;
        self
    }

    /// The time by which back-off is measured, instead of the system's: for tests. It must not go backwards.
    pub fn clock(mut self, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.options.clock = Clock::of(now);
        self
    }

    /// Makes the pool and the domains that are made ahead.
    ///
    /// # Errors
    /// One of them could not be made.
    pub fn build(self) -> Result<Pool<T>, PoolError> {
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

    /// From now on the pool's domains are those that `make` makes: the first is made at once, idle ones of the old kind are dropped,
    /// and those in use when they come back.
    ///
    /// # Errors
    /// The first could not be made; then nothing has changed.
    pub fn replace<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<(), PoolError> {
        self.0.replace(boxed(make))
    }

    /// Lends nothing more. Domains in use are dropped when they come back, idle ones now, and callers that wait are refused.
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
