//! The page that a process shares with the registry, at [`MAILBOX`](crate::address::MAILBOX). Each
//! writes to it at any time, and neither believes the other.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Numbers that fit.
pub const NUMBERS: usize = 1008;

/// The page.
#[repr(C)]
#[derive(Debug)]
pub struct Mailbox {
    /// Signals for the process, as bits: the registry sets, the process clears.
    pub signals: AtomicU64,
    /// Who sent a signal last: a pid.
    pub sender: AtomicU64,
    /// Unused.
    pub reserved: [AtomicU64; 6],
    /// Numbers of pages, for requests about many.
    pub numbers: [AtomicU32; NUMBERS],
}

const _: () = assert!(core::mem::size_of::<Mailbox>() == 4096);
