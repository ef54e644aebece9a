//! What becomes of a namespace after a fault, and what the host says of that for single functions.

use crate::id::FunctionId;
use crate::settings::Settings;
use crate::{Namespace, Recovery};
use postern_runtime::{Fault, fork};
use std::sync::Arc;
use std::time::Duration;

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
