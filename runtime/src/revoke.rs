//! Taking grants back while a domain lives.
//!
//! As in the Exokernel (Engler, Kaashoek, O'Toole 1995, sections 3.3 and 3.4): revocation is
//! visible, for the extension is asked to give the resource back and told how long it has; what it
//! does not give back in that time is taken, and the repossession list says so. Invariant: when
//! [`crate::Domain::revoke`] returns, no call that begins afterwards has the resource.

mod take;

pub(crate) use take::tell;

use crate::error::{CallError, SymbolError};
use crate::fork;
use crate::value::Offset;
use std::fmt;
use std::sync::Mutex;
use thiserror::Error;

/// Something that a domain may be given and that can be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Grant {
    /// A service, by its name; `sys` is all system calls but the one that ends the program.
    Service(String),
    /// A directory that the policy grants, by its path in the extension's eyes, and all that is
    /// open below it.
    Directory(String),
    /// An open file, by a descriptor of the extension's; its duplicates go with it.
    Descriptor(i32),
    /// A shared area, by its first offset.
    Area(Offset),
}

impl Grant {
    /// The number that the extension knows the kind by.
    fn kind(&self) -> i32 {
        match self {
            Grant::Service(_) => 1,
            Grant::Directory(_) => 2,
            Grant::Descriptor(_) => 3,
            Grant::Area(_) => 4,
        }
    }

    /// What it is called in the extension's eyes.
    fn name(&self) -> String {
        match self {
            Grant::Service(name) | Grant::Directory(name) => name.clone(),
            Grant::Descriptor(number) => number.to_string(),
            Grant::Area(offset) => offset.to_string(),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grant::Service(name) => write!(f, "service `{name}`"),
            Grant::Directory(path) => write!(f, "directory `{path}`"),
            Grant::Descriptor(number) => write!(f, "descriptor {number}"),
            Grant::Area(offset) => write!(f, "shared area at {offset}"),
        }
    }
}

/// Why a resource was taken instead of being given back.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum Reluctance {
    /// No time was given.
    #[error("the extension was not asked")]
    NotAsked,
    /// The image does not export `__postern_revoke`.
    #[error("the extension has no `__postern_revoke`")]
    NoUpcall,
    /// The export is of another type.
    #[error("{0}")]
    Unusable(SymbolError),
    /// The upcall returned this instead of 0.
    #[error("the extension refused: it returned {0}")]
    Refused(i32),
    /// The upcall returned 0, but the resource was still in use.
    #[error("the extension said that it had given it back, and had not")]
    Kept,
    /// The upcall took longer than the deadline, and was interrupted.
    #[error("the extension took too long")]
    Late,
    /// The upcall ended otherwise.
    #[error("{0}")]
    Failed(CallError),
}

/// An entry of the repossession list: what was taken by force.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Repossession {
    /// What.
    pub grant: Grant,
    /// Why it came to that.
    pub why: Reluctance,
}

/// How a resource came back.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Revoked {
    /// The extension gave it back.
    Returned,
    /// It was taken; the repossession list has it.
    Taken(Reluctance),
}

/// Nothing was revoked, or given again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RevokeError {
    /// The domain does not have it.
    #[error("the domain does not have {0}; `grants()` lists what it has")]
    NotGranted(Grant),
    /// The kernel did not take the area's pages away.
    #[error("{grant} is still there: {reason}")]
    Kernel {
        /// What.
        grant: Grant,
        /// The system's words.
        reason: String,
    },
    /// It was not taken away, or cannot be given back in this way.
    #[error(
        "{0} cannot be restored: it was not revoked, or its policy has to be set anew (`set_policy`)"
    )]
    NotRevoked(Grant),
}

/// What a domain has lost since its last reset.
#[derive(Default)]
pub(crate) struct Repossessions(Mutex<Vec<Repossession>>);

impl Repossessions {
    fn list(&self) -> Vec<Repossession> {
        fork::lock(&self.0).clone()
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        let before = std::mem::take(&mut *fork::lock(&self.0));
        drop(before);
    }
}
