//! What a pool lends, how it is to be, and what it says of itself.

use crate::RestartPolicy;
use postern_runtime::restart::Clock;
use postern_runtime::{Domain, Func};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// What a pool lends: a domain, a typed entry, or a structure of the host's own with a domain and
/// its entries.
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

impl Recycle {
    /// `reset` or `keep`.
    pub fn name(self) -> &'static str {
        match self {
            Recycle::Reset => "reset",
            Recycle::Keep => "keep",
        }
    }
}

/// Its [`Recycle::name`].
impl std::fmt::Display for Recycle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
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
    /// It was to be built with a size of 0.
    #[error("a pool of size 0 lends nothing; size must be at least 1")]
    NoSize,
}

pub(crate) type Make<T> = Arc<dyn Fn() -> Result<T, Box<dyn Error + Send + Sync>> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Options {
    pub(super) size: usize,
    pub(super) recycle: Recycle,
    pub(super) restart: RestartPolicy,
    pub(super) clock: Clock,
    pub(super) max_wait: Duration,
    pub(super) max_waiting: usize,
    pub(super) per_thread: bool,
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
