//! Why a common domain is closed, in words.

use super::header::Why;
use crate::fault::FaultKind;
use crate::image::ImageInner;
use std::fmt;

/// What closed a common domain until it is reset. Processes are named by their numbers where they
/// run; and whoever has the domain's memory can write all of this.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Poison {
    /// A process ended while one of its threads was inside.
    Killed {
        /// The process.
        pid: u32,
        /// The function that the thread had called, if it is an export.
        function: Option<String>,
        /// Its offset.
        offset: u32,
    },
    /// A call ended in a fault.
    Fault {
        /// The process.
        pid: u32,
        /// The kind, if there is such.
        kind: Option<FaultKind>,
    },
    /// The static constructors did not return.
    Constructors {
        /// The process that ran them.
        pid: u32,
    },
    /// A process ended, or the system refused it something, while it reset the domain.
    Reset {
        /// The process.
        pid: u32,
    },
    /// It does not say.
    Unknown,
}

impl Poison {
    pub(crate) fn of(why: Why, image: Option<&ImageInner>) -> Poison {
        match why {
            Why::Killed { pid, function } => {
                let mut exports = image.iter().flat_map(|image| &image.tables.exports);
                let export = exports.find(|export| export.offset == function);
                Poison::Killed {
                    pid,
                    function: export.map(|export| export.name.to_string()),
                    offset: function,
                }
            }
            Why::Fault { pid, kind } => Poison::Fault {
                pid,
                kind: FaultKind::ALL.get(kind as usize).copied(),
            },
            Why::Constructors { pid } => Poison::Constructors { pid },
            Why::Reset { pid } => Poison::Reset { pid },
            Why::Unknown => Poison::Unknown,
        }
    }
}

impl fmt::Display for Poison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Poison::Killed {
                pid,
                function: Some(name),
                ..
            } => write!(f, "process {pid} ended while it was inside `{name}`"),
            Poison::Killed { pid, offset, .. } => {
                write!(f, "process {pid} ended while it was inside {offset:#x}")
            }
            Poison::Fault {
                pid,
                kind: Some(kind),
            } => write!(
                f,
                "a call of process {pid} ended in a fault ({})",
                kind.name()
            ),
            Poison::Fault { pid, .. } => write!(f, "a call of process {pid} ended in a fault"),
            Poison::Constructors { pid } => {
                write!(f, "the static constructors did not return in process {pid}")
            }
            Poison::Reset { pid } => write!(f, "process {pid} ended while it reset the domain"),
            Poison::Unknown => f.write_str("the domain's memory does not say why"),
        }
    }
}
