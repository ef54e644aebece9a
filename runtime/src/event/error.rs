//! Why there are no events.

use super::way::NoWay;
use crate::error::SymbolError;
use postern_gates::upcall::AttachError;
use thiserror::Error;

/// Why an event is not waited for, or a thread not attached.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum EventError {
    /// The handler is none.
    #[error(transparent)]
    Handler(#[from] SymbolError),
    /// The thread cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// As many as can be wait.
    #[error("the domain has 64 events: drop one first")]
    TooMany,
    /// As many as can be are attached.
    #[error("64 threads are attached to the domain's events: detach one first")]
    TooManyClients,
    /// The way that was named is not possible.
    #[error(transparent)]
    Way(#[from] NoWay),
    /// The kernel's.
    #[error("{what}: {reason}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The kernel's reason.
        reason: String,
    },
    /// Such a descriptor is always ready.
    #[error(
        "the kernel waits for no such descriptor, a file's or a directory's: it is always ready"
    )]
    AlwaysReady,
    /// It would come as any signal does.
    #[error(
        "the thread does not block signal {0}: block it in all threads, so that it can be waited for"
    )]
    NotBlocked(i32),
    /// The kernel does not say when memory is short.
    #[error(
        "{path}: {reason}; this needs a kernel with CONFIG_PSI that was not started with psi=0, and (before Linux 6.6, or for windows of no multiple of 2 s) CAP_SYS_RESOURCE"
    )]
    Pressure {
        /// The file that says it.
        path: String,
        /// The kernel's reason.
        reason: String,
    },
    /// The kernel tells this process of no missing pages.
    #[error(
        "userfaultfd: {0}; this needs Linux 5.11 with CONFIG_USERFAULTFD, and a filter of system calls (seccomp) that lets it pass, but no privilege"
    )]
    Userfault(String),
    /// Somebody fills the area's pages already.
    #[error("the missing pages of area {0} are watched already: drop that subscription first")]
    Watched(String),
    /// Of this area's pages the kernel does not tell which are missing.
    #[error(
        "area {area} cannot be watched: {reason}; it must be writable, and zeroed or of a memory file without huge pages"
    )]
    Unwatchable {
        /// Its name.
        area: String,
        /// The reason.
        reason: String,
    },
    /// Only a doorbell has one.
    #[error("the event is no doorbell")]
    NoDoorbell,
    /// The domain's events are those of the process that forked.
    #[error("the domain's events are its parent's: make a domain of the child's own")]
    Forked,
}

/// For `map_err`.
pub(super) fn system(what: &'static str) -> impl Fn(std::io::Error) -> EventError {
    move |error| EventError::System {
        what,
        reason: error.to_string(),
    }
}
