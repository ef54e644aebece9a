//! What the gates ask of the library operating system that they are built into: one table of
//! functions, given before the first image.
//!
//! Invariant: the table is given once, and never changes.

use super::sync::OnceLock;
use core::ops::Range;

/// What may be done to pages that are the process's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// They are read.
    Read,
    /// And written.
    ReadWrite,
    /// Read and executed. Nobody writes them from then on.
    ReadExecute,
}

/// There are no pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPages;

/// The functions. All ranges are whole pages, of addresses that nobody else has.
pub struct Below {
    /// Addresses for so many bytes, with nothing there, from a multiple of so many bytes on.
    pub reserve: fn(u64, u64) -> Option<u64>,
    /// Puts pages of zeros there, to be read and written.
    pub open: fn(Range<u64>) -> Result<(), NoPages>,
    /// Has pages of zeros come there when they are touched, to be read and written.
    pub promise: fn(Range<u64>) -> Result<(), NoPages>,
    /// Changes what may be done to pages that were put there.
    pub protect: fn(Range<u64>, Access) -> Result<(), NoPages>,
    /// Takes the pages that are there away, and those that were promised.
    pub close: fn(Range<u64>),
    /// The stack that this is called on: lowest address that it may ever have, top. What lies below
    /// is never there.
    pub stack: fn() -> (u64, u64),
    /// Nanoseconds since some moment.
    pub now: fn() -> u64,
    /// A lock is found taken: waits a moment. Where there is one thread, it is a mistake, and the
    /// process ends.
    pub contended: fn(),
    /// Ends the process with a word.
    pub abandon: fn(&str) -> !,
}

static BELOW: OnceLock<&'static Below> = OnceLock::new();

/// Gives the table. Only the first one counts.
pub fn give(below: &'static Below) {
    BELOW.get_or_init(|| below);
}

/// The table.
pub(super) fn below() -> &'static Below {
    match BELOW.get() {
        Some(below) => below,
        None => unreachable!("given before there are images"),
    }
}
