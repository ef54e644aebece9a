//! Why memory could not be had.

use super::limit::SystemLimit;
use std::io;
use thiserror::Error;

/// Memory could not be had.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum MapError {
    /// The kernel refused, or would have had to.
    #[error("cannot {what} of {bytes} bytes: {reason}; {limit}")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The system's words.
        reason: String,
        /// The limit that was met.
        limit: SystemLimit,
    },
    /// The kernel may have given up addresses of a window, and something else of the process may be
    /// there now. The window is never used again.
    #[error(
        "the kernel refused memory and gave up the addresses; the window is lost, close the domain"
    )]
    Lost,
    /// All control blocks are in use.
    #[error("{0} domains are alive, which is the limit; drop some first")]
    TooManyDomains(usize),
    /// The window has a code area.
    #[error("a namespace stays in its window")]
    Code,
    /// A file that is written through its mapping could get shorter.
    #[error(
        "the file is no memory file whose size is sealed (F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL, without a seal against writing), or it is too short; take the descriptor that its maker handed out"
    )]
    Unsealed,
    /// The fixed place is taken.
    #[error("the address range is already in use")]
    Taken,
}

/// The system refused just now.
pub(super) fn refused(what: &'static str, bytes: usize) -> MapError {
    failed(what, bytes, io::Error::last_os_error())
}

/// What the system's refusal means.
pub fn failed(what: &'static str, bytes: usize, error: io::Error) -> MapError {
    MapError::Refused {
        what,
        bytes,
        limit: SystemLimit::of(&error, bytes as u64),
        reason: error.to_string(),
    }
}

/// The system's words, with the limit that was met, if one is known.
pub fn explained(error: &io::Error) -> String {
    match SystemLimit::of(error, 0) {
        SystemLimit::Other => error.to_string(),
        limit => format!("{error}; {limit}"),
    }
}
