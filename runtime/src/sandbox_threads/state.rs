//! What a domain has of threads of its own for handlers that wait.

use crate::own_threads::state::OwnThreads;
use postern_gates::machine::InChild;
use postern_gates::upcall::Pool;
use std::sync::Arc;

/// Handlers that may wait besides those that threads are in.
const WAITING: u32 = 16;
/// Functions that may wait.
const FUNCTIONS: usize = 64;

/// The pool of one domain.
pub(crate) struct SandboxThreads {
    /// Its threads.
    pub(crate) threads: Arc<OwnThreads>,
    /// What waits for them; `None` if there are to be none.
    pub(crate) pool: Option<Arc<Pool>>,
}

impl SandboxThreads {
    /// At most so many threads, with a place for each of the data stacks that `give` gives.
    ///
    /// # Errors
    /// Those of `give`.
    pub(crate) fn new<E>(
        most: u32,
        give: impl FnMut() -> Result<u32, E>,
    ) -> Result<SandboxThreads, E> {
        let handlers = match most {
            0 => 0,
            n => n.saturating_add(WAITING) as usize,
        };
        let stacks = std::iter::repeat_with(give).take(handlers);
        let stacks = stacks.collect::<Result<Vec<u32>, E>>()?;
        Ok(SandboxThreads {
            threads: Arc::new(OwnThreads::new(most)),
            pool: (most > 0).then(|| Arc::new(Pool::new(&stacks, FUNCTIONS))),
        })
    }

    /// Has the threads look what there is for them, and whether they are to end.
    pub(crate) fn wake(&self) {
        if let Some(pool) = &self.pool {
            pool.wake_all();
        }
    }

    /// Another life of the domain begins, and nobody is inside.
    pub(crate) fn begin_anew(&self) {
        self.threads.begin_anew();
        let ended = self.pool.as_ref().map_or(0, |pool| pool.begin_anew());
        if ended > 0 {
            tracing::info!(ended, "handlers that waited were ended by a reset");
        }
    }

    /// In the child after fork, which has none of them. Whether a handler waited.
    pub(crate) fn after_fork(&self, child: &InChild) -> bool {
        self.threads.after_fork(0);
        let pool = self.pool.as_ref();
        pool.is_some_and(|pool| pool.after_fork(child))
    }
}
