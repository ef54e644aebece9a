//! What becomes of a namespace after a fault, and what a function has of its own: a quantum and a
//! recovery.

use crate::{FunctionId, Namespace, Recovery};
use postern_runtime::{Fault, fork};
use std::sync::Arc;
use std::time::Duration;

/// What a function has of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Settings {
    quantum: Option<Duration>,
    recovery: Option<Recovery>,
}

impl Settings {
    /// As entries have them: nanoseconds, and the recovery's number.
    pub(super) fn words(&self) -> (u64, u32) {
        let nanoseconds = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1);
        let recovery = self.recovery.map_or(0, |r| r as u32);
        (self.quantum.map_or(0, nanoseconds), recovery)
    }
}

impl Namespace {
    /// The last fault that closed the namespace or made it start anew.
    pub fn reason(&self) -> Option<Arc<Fault>> {
        let code = self.code();
        fork::lock_one_of_many(code.number, &code.reason).clone()
    }

    /// The longest time of a call of this function by the host; the namespace's quantum holds
    /// besides. It counts for calls by id and for entries and pointers that are made afterwards;
    /// those take the slower gate then. False if the function is gone.
    pub fn set_quantum(&self, id: FunctionId, quantum: Option<Duration>) -> bool {
        self.settle(id, |settings| settings.quantum = quantum)
    }

    /// What becomes of the namespace when a call of this function by the host ends in a fault,
    /// instead of what the namespace says; as with [`Namespace::set_quantum`]. False if the
    /// function is gone.
    pub fn set_recovery(&self, id: FunctionId, recovery: Option<Recovery>) -> bool {
        self.settle(id, |settings| settings.recovery = recovery)
    }

    fn settle(&self, id: FunctionId, set: impl FnOnce(&mut Settings)) -> bool {
        let mut state = self.code().lock();
        let Some(slot) = state.live(id) else {
            return false;
        };
        set(&mut slot.settings);
        true
    }
}
