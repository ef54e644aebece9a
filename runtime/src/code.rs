//! Code that comes into a domain while it lives: what the rest of the runtime must know of it, and
//! how a domain gets room for it.
//!
//! Units, names and slots are a namespace's, and stand above, in `postern-namespaces`. What belongs
//! to every domain is here: faults tell of places in such code, entries lead to its slots, a reset
//! gives its variables their first values, and a fork renews its pages.

mod room;

pub use room::{give_room, offers, widen};

use crate::fault::Fault;
use postern_gates::machine::InChild;
use postern_gates::window::Pin;
use std::sync::Arc;

/// What becomes of a namespace when a call ends in a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Recovery {
    /// It is closed until the host resets it: other calls are ended and later ones refused.
    /// `Namespace::reason` says why.
    #[default]
    Terminate = 1,
    /// The call has an error, and all else goes on: other calls, variables, heap. What the ended
    /// call had begun to change stays half changed.
    Continue = 2,
    /// Other calls are ended; the next call finds all variables with their first values, and all
    /// functions.
    Restart = 3,
}

impl Recovery {
    /// `terminate`, `continue` or `restart`.
    pub fn name(self) -> &'static str {
        match self {
            Recovery::Terminate => "terminate",
            Recovery::Continue => "continue",
            Recovery::Restart => "restart",
        }
    }

    /// The recovery with this number: [`postern_gates::entry::Entry`] has it.
    pub fn from_word(word: u32) -> Option<Recovery> {
        match word {
            1 => Some(Recovery::Terminate),
            2 => Some(Recovery::Continue),
            3 => Some(Recovery::Restart),
            _ => None,
        }
    }
}

/// Its [`Recovery::name`].
impl std::fmt::Display for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The code that was added to a domain. Offsets are those of its window.
pub trait AddedCode: Send + Sync {
    /// What becomes of the domain after a fault of a call whose entry has this number of a
    /// recovery, or 0.
    fn recovery(&self, word: u32) -> Recovery;

    /// A fault ends this life of the domain.
    fn closes(&self, fault: &Arc<Fault>);

    /// Whether calls may begin at `offset`, for as long as the domain lives.
    fn is_entry(&self, offset: u32) -> bool;

    /// Whether the text at `offset` begins so.
    fn text_is(&self, offset: u32, expected: &[u8]) -> bool;

    /// The name of the function whose call ended at `offset` because it is deleted.
    fn deleted_at(&self, offset: u32) -> Option<String>;

    /// `function at unit:line` for an offset in added text.
    fn describe(&self, offset: u32) -> Option<String>;

    /// The domain's private pages were dropped: writes the first values of variables into its
    /// window.
    fn first_values(&self, pin: &Pin<'_>);

    /// In a forked child, whose only thread holds all locks. False if the code is gone.
    fn after_fork(&self, child: &InChild) -> bool;
}
