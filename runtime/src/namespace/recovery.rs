//! What becomes of a namespace after a fault, and what a function has of its own: a quantum and a recovery.

use super::state::Code;
use super::{FunctionId, Namespace};
use crate::fault::Fault;
use crate::fork;
use std::sync::Arc;
use std::time::Duration;

/// What becomes of a namespace when a call ends in a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Recovery {
    /// It is closed until the host resets it: other calls are ended and later ones refused. [`Namespace::reason`] says why.
    #[default]
    Terminate = 1,
    /// The call has an error, and all else goes on: other calls, variables, heap. What the ended call had begun to change stays half
    /// changed.
    Continue = 2,
    /// Other calls are ended; the next call finds all variables with their first values, and all functions.
    Restart = 3,
}

impl Recovery {
    fn from_word(word: u32) -> Option<Recovery> {
        match word {
            1 => Some(Recovery::Terminate),
            2 => Some(Recovery::Continue),
            3 => Some(Recovery::Restart),
            _ => None,
        }
    }
}

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

impl Code {
    /// What becomes of the namespace after a fault of a call whose function has this recovery, or 0.
    pub(crate) fn recovery(&self, word: u32) -> Recovery {
        Recovery::from_word(word).unwrap_or(self.recovery)
    }

    /// A fault ends this life of the namespace.
    pub(crate) fn closes(&self, fault: &Arc<Fault>) {
        *fork::lock_one_of_many(self.number, &self.reason) = Some(fault.clone());
    }
}

impl Namespace {
    /// The last fault that closed the namespace or made it start anew.
    pub fn reason(&self) -> Option<Arc<Fault>> {
        let code = self.code();
        fork::lock_one_of_many(code.number, &code.reason).clone()
    }

    /// The longest time of a call of this function by the host; the namespace's quantum holds besides. It counts for calls by id and for
    /// entries and pointers that are made afterwards; those take the slower gate then. False if the function is gone.
    pub fn set_quantum(&self, id: FunctionId, quantum: Option<Duration>) -> bool {
        self.settle(id, |settings| settings.quantum = quantum)
    }

    /// What becomes of the namespace when a call of this function by the host ends in a fault, instead of what the namespace says; as
    /// with [`Namespace::set_quantum`]. False if the function is gone.
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
