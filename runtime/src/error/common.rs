//! Why memory is not common to processes.

use postern_gates::map::MapError;
use std::path::PathBuf;
use thiserror::Error;

/// A domain's memory was not shared with other processes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommonError {
    /// The kernel refused something.
    #[error("cannot {what}: {reason}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's words.
        reason: String,
    },
    /// The kernel refused memory, or the descriptor is no memory file of this kind.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The file is not one of a common domain.
    #[error(
        "the descriptor's file is no memory of a common domain: {0}; take one that CommonMemory::descriptor gives"
    )]
    Foreign(&'static str),
    /// It is the state of another image.
    #[error(
        "the memory holds the state of the image with hash {held}, and the domain is of {wanted}; load the same file in every process"
    )]
    Image {
        /// BLAKE3 hash of the image whose state it is, in hexadecimal.
        held: String,
        /// The one that was loaded here.
        wanted: String,
    },
    /// The image or the limits do not fit.
    #[error("the domain cannot be common: {0}")]
    Layout(String),
    /// It is no name of a shared domain.
    #[error(
        "`{0}` cannot name a shared domain: letters, digits, `-`, `_` and `.`, at most 64, no `.` first"
    )]
    Name(String),
    /// Nobody hands it out.
    #[error("no broker answers at {}; start `postern share NAME IMAGE` (--socket chooses another path)", .0.display())]
    NoBroker(PathBuf),
    /// The broker does not admit this process.
    #[error("the broker at {} does not admit this process; start it with --allow-user or --allow-group", .0.display())]
    Refused(PathBuf),
    /// Somebody hands one out there already.
    #[error("another broker has {}; end it, or choose another name or --socket", .0.display())]
    Shared(PathBuf),
    /// The domain is granted what its host did not grant to all.
    #[error(
        "every process that has the memory could use `{}` of this one: say that it may by DomainBuilder::grant_to_all (pt_options_grant_to_all), or do not grant it",
        .0.join("`, `")
    )]
    NotToAll(Vec<String>),
    /// As many processes as can be are attached.
    #[error("all {0} seats are taken; drop a domain of another process that has this memory")]
    Full(u32),
    /// Another process has been running the static constructors, or a reset, for too long.
    #[error(
        "another process (number {0} there) has been starting or resetting the domain for {1} s; end that process, or try again"
    )]
    Starting(u32, u64),
}
