//! What is known of processes, and how it is found: by number, by environment. What happens to them is
//! in `births`, `accounts`, `slices`, `ends` and `acts`.
//!
//! Invariant: a process's slot is free, or it has an environment that lives until the slot says that it
//! has ended; what its tree counts for it is what its slot says.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::ENVIRONMENTS;
use postern_aegis::{Error, PAGE, books, memory, slices};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::mailbox::{Mailbox, NUMBERS};
use postern_exos_abi::service::Services;
use postern_exos_abi::table::{PROCESSES, Process, Table, state};

use crate::keeper::Keeper;
use crate::making::Made;
use crate::tree::Trees;
use crate::trusted;

/// Pages that are left to the registry.
const OWN: u32 = 512;

/// What an environment of a process needs beside itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub made: Made,
    pub mailbox: u32,
    /// Which of the slot's two windows the mailbox is bound to.
    pub window: usize,
    /// Pages that it may have.
    pub room: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub body: Option<Body>,
    /// What [`Registry::replace`] made.
    pub next: Option<Body>,
    pub tree: u8,
    pub slices: u32,
    /// Slices of them that it has not got yet.
    pub wants: u32,
    /// Nobody waits for it.
    pub orphan: bool,
    /// It was started with the machine, and has not offered anything yet.
    pub coming: bool,
}

pub(crate) const FREE: Slot = Slot {
    body: None,
    next: None,
    tree: 0,
    slices: 0,
    wants: 0,
    orphan: false,
    coming: false,
};

/// All that is known.
#[derive(Debug)]
pub struct Registry {
    pub(crate) slots: [Slot; PROCESSES],
    /// Slots of environments, plus 1.
    pub(crate) of: [u8; ENVIRONMENTS],
    pub(crate) table: Option<&'static Table>,
    pub(crate) services: Option<&'static Services>,
    pub(crate) trees: Trees,
    /// Pages that are kept.
    pub keeper: Keeper,
    pub(crate) last: u32,
    windows: u64,
    /// Somebody wants slices.
    pub wanting: bool,
    pub(crate) numbers: [u32; NUMBERS],
}

impl Registry {
    /// Nobody.
    pub const fn new() -> Registry {
        Registry {
            slots: [FREE; PROCESSES],
            of: [0; ENVIRONMENTS],
            table: None,
            services: None,
            trees: Trees::new(),
            keeper: Keeper::new(),
            last: 0,
            windows: 0,
            wanting: false,
            numbers: [0; NUMBERS],
        }
    }

    /// With a table and services that everybody reads, and all that is free to be had.
    pub fn open(&mut self, table: &'static Table, services: &'static Services) {
        self.table = Some(table);
        self.services = Some(services);
        self.windows = memory::reserve(2 * PROCESSES as u64);
        let pages = books::machine().free.load(Relaxed).saturating_sub(OWN);
        let slices = slices::processors() * postern_aegis::abi::SLICES;
        let limits = [PROCESSES as u32, pages, slices as u32 - 1];
        self.trees.set_whole(limits);
    }

    pub(crate) fn record(&self, slot: usize) -> Option<&'static Process> {
        self.table?.processes.get(slot)
    }

    /// The slot of a pid.
    pub fn slot_of(&self, pid: u64) -> Result<usize, Errno> {
        let pid = u32::try_from(pid).map_err(|_| errno::SRCH)?;
        let slot = pid.checked_sub(1).ok_or(errno::SRCH)? as usize % PROCESSES;
        let record = self.record(slot).ok_or(errno::SRCH)?;
        (record.pid.load(Relaxed) == pid)
            .then_some(slot)
            .ok_or(errno::SRCH)
    }

    /// The slot of an environment that runs.
    pub fn slot_of_environment(&self, environment: u16) -> Option<usize> {
        let slot = usize::from(*self.of.get(usize::from(environment))?).checked_sub(1)?;
        let body = self.slots.get(slot)?.body?;
        (body.made.environment == environment && body.made.lives()).then_some(slot)
    }

    /// A process's number.
    pub fn pid(&self, slot: usize) -> u32 {
        self.record(slot)
            .map_or(0, |record| record.pid.load(Relaxed))
    }

    pub(crate) fn parent(&self, slot: usize) -> u32 {
        self.record(slot)
            .map_or(0, |record| record.parent.load(Relaxed))
    }

    pub(crate) fn state(&self, slot: usize) -> u32 {
        self.record(slot)
            .map_or(state::FREE, |record| record.state.load(Relaxed))
    }

    /// The mailbox of a process that lives.
    pub fn mailbox(&self, slot: usize) -> Option<&'static Mailbox> {
        let body = self.slots.get(slot)?.body?;
        Some(trusted::mailbox(self.window(slot, body.window)))
    }

    pub(crate) fn window(&self, slot: usize, which: usize) -> u64 {
        self.windows + ((2 * slot + which) * PAGE) as u64
    }

    /// The tree of a process.
    pub fn tree(&self, slot: usize) -> u8 {
        self.slots.get(slot).map_or(0, |slot| slot.tree)
    }

    /// Whether a process is in a tree that has limits of its own.
    pub fn is_limited(&self, slot: usize) -> bool {
        self.tree(slot) != 0
    }

    /// The environment of a process, if it lives.
    pub fn environment(&self, slot: usize) -> Option<Made> {
        self.slots.get(slot)?.body.map(|body| body.made)
    }
}

/// What a refused call means to who asked.
pub fn refusal(error: Error) -> Errno {
    match error {
        Error::Quota | Error::Exhausted => errno::NOMEM,
        Error::Argument => errno::INVAL,
        Error::Denied => errno::PERM,
        Error::NoEnvironment => errno::SRCH,
        _ => errno::AGAIN,
    }
}
