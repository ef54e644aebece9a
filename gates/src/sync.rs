//! What threads of a process share, and panics that go around an extension: as the platform has
//! them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) use std::sync::{Mutex, MutexGuard, OnceLock};

/// Whether somebody looks at deadlines from now on, or the system's words why not.
pub type Watched = std::io::Result<()>;

/// Does something, and gives back its panic if it panics.
pub(crate) fn catch<R>(work: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(work))
}
