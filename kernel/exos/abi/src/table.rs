//! The table of processes: written by the registry, read by everybody at
//! [`TABLE`](crate::address::TABLE). Each word is whole; several need not fit together.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// Processes that there are at most.
pub const PROCESSES: usize = 255;

/// Values of [`Process::state`].
pub mod state {
    /// There is none.
    pub const FREE: u32 = 0;
    /// It is being made.
    pub const NEW: u32 = 1;
    /// It runs, or could.
    pub const LIVES: u32 = 2;
    /// It stands still by a signal.
    pub const STOPPED: u32 = 3;
    /// It has ended, and its parent has not asked how.
    pub const ENDED: u32 = 4;
}

/// Values of [`Process::event`].
pub mod event {
    /// Nothing that its parent does not know.
    pub const NONE: u32 = 0;
    /// It was stopped.
    pub const STOPPED: u32 = 1;
    /// It goes on.
    pub const CONTINUED: u32 = 2;
}

/// A process: 64 bytes.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Process {
    /// Its number; 0: none.
    pub pid: AtomicU32,
    /// [`state`].
    pub state: AtomicU32,
    /// Its environment's birth.
    pub birth: AtomicU32,
    /// Who made it: a pid.
    pub parent: AtomicU32,
    /// Its environment.
    pub environment: AtomicU16,
    /// The tree whose limits hold for it.
    pub tree: AtomicU16,
    /// How it ended, as `wait` of C has it.
    pub status: AtomicU32,
    /// Slices that its children had that were waited for.
    pub children_ran: AtomicU64,
    /// Slices that environments had which it was before.
    pub ran_before: AtomicU64,
    /// The first bytes of its name.
    pub name: [AtomicU8; 16],
    /// Its process group: the pid of who was its first.
    pub group: AtomicU32,
    /// It was stopped (1) or goes on (2), and its parent has not asked yet; `status` says how.
    pub event: AtomicU32,
}

const _: () = assert!(core::mem::size_of::<Process>() == 64);

/// Bytes that were typed on the console and wait for a reader, at most. With what stands before
/// them they are as long as a process.
pub const TYPED: usize = 48;

/// All of it.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    /// [`VERSION`](crate::VERSION) of the registry.
    pub version: AtomicU32,
    /// Processes that live.
    pub living: AtomicU32,
    /// The process group that the console is for; 0: nobody has said.
    pub foreground: AtomicU32,
    /// Bytes that were typed on the console, which somebody has read for others: so many.
    pub typed: AtomicU32,
    /// Those bytes.
    pub bytes: [AtomicU8; TYPED],
    /// The processes. A pid is not an index.
    pub processes: [Process; PROCESSES],
}

/// Pages of the table.
pub const PAGES: usize = core::mem::size_of::<Table>().div_ceil(4096);
