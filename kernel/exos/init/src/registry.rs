//! Processes: numbers, births, ends, and who may act on whom.
//!
//! Invariant: a process's slot is free, or it has an environment that lives until the slot says that it
//! has ended; what its tree counts for it is what its slot says.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::ENVIRONMENTS;
use postern_aegis::records::{claim, end};
use postern_aegis::{Error, Mapping, PAGE, books, calls, memory, slices};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::mailbox::{Mailbox, NUMBERS};
use postern_exos_abi::signal;
use postern_exos_abi::table::{PROCESSES, Process, Table, state};

use crate::keeper::Keeper;
use crate::making::{self, Made};
use crate::tree::{Trees, What};
use crate::trusted;

/// Pages that a process can have at the least: the registry itself needs some for it.
const LEAST: u32 = 32;
/// Pages that are left to the registry.
const OWN: u32 = 512;

/// What an environment of a process needs beside itself.
#[derive(Clone, Copy, Debug)]
struct Body {
    made: Made,
    mailbox: u32,
    /// Which of the slot's two windows the mailbox is bound to.
    window: usize,
    /// Pages that it may have.
    room: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    body: Option<Body>,
    /// What [`Registry::replace`] made.
    next: Option<Body>,
    tree: u8,
    slices: u32,
    /// Slices of them that it has not got yet.
    wants: u32,
    /// Nobody waits for it.
    orphan: bool,
}

const FREE: Slot = Slot {
    body: None,
    next: None,
    tree: 0,
    slices: 0,
    wants: 0,
    orphan: false,
};

/// All that is known.
#[derive(Debug)]
pub struct Registry {
    slots: [Slot; PROCESSES],
    /// Slots of environments, plus 1.
    of: [u8; ENVIRONMENTS],
    table: Option<&'static Table>,
    trees: Trees,
    /// Pages that are kept.
    pub keeper: Keeper,
    last: u32,
    windows: u64,
    /// Somebody wants slices.
    pub wanting: bool,
    numbers: [u32; NUMBERS],
}

impl Registry {
    /// Nobody.
    pub const fn new() -> Registry {
        Registry {
            slots: [FREE; PROCESSES],
            of: [0; ENVIRONMENTS],
            table: None,
            trees: Trees::new(),
            keeper: Keeper::new(),
            last: 0,
            windows: 0,
            wanting: false,
            numbers: [0; NUMBERS],
        }
    }

    /// With a table that everybody reads, and all that is free to be had.
    pub fn open(&mut self, table: &'static Table) {
        self.table = Some(table);
        self.windows = memory::reserve(2 * PROCESSES as u64);
        let pages = books::machine().free.load(Relaxed).saturating_sub(OWN);
        let slices = slices::processors() * postern_aegis::abi::SLICES;
        let limits = [PROCESSES as u32, pages, slices as u32 - 1];
        self.trees.set_whole(limits);
    }

    fn record(&self, slot: usize) -> Option<&'static Process> {
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

    fn window(&self, slot: usize, which: usize) -> u64 {
        self.windows + ((2 * slot + which) * PAGE) as u64
    }

    /// The tree of a process.
    pub fn tree(&self, slot: usize) -> u8 {
        self.slots.get(slot).map_or(0, |slot| slot.tree)
    }

    /// The environment of a process, if it lives.
    pub fn environment(&self, slot: usize) -> Option<Made> {
        self.slots.get(slot)?.body.map(|body| body.made)
    }

    fn body(
        &mut self,
        slot: usize,
        which: usize,
        tree: u8,
        (entry, room): (u64, u64),
    ) -> Result<Body, Errno> {
        let room = u32::try_from(room).map_err(|_| errno::NOMEM)?.max(LEAST);
        self.trees.take(tree, What::Pages, room)?;
        let mailbox = self.keeper.take_own();
        let made = mailbox.and_then(|mailbox| {
            let window = self.window(slot, which);
            let bound = memory::map(
                window,
                Mapping::new(mailbox, Mapping::WRITE),
                0,
                calls::Target::SELF,
            );
            // Tables of the root's own that this took.
            let made = bound.and_then(|()| making::make(entry, room, mailbox));
            made.map(|made| (made, mailbox))
                .inspect_err(|_| self.keeper.free_own(mailbox))
        });
        match made {
            Ok((made, mailbox)) => Ok(Body {
                made,
                mailbox,
                window: which,
                room,
            }),
            Err(error) => {
                self.trees.give(tree, What::Pages, room);
                Err(refusal(error))
            }
        }
    }

    fn drop_body(&mut self, tree: u8, body: Body) {
        body.made.end();
        self.keeper.free_own(body.mailbox);
        self.trees.give(tree, What::Pages, body.room);
    }

    /// A new process: its slot, and its environment.
    pub fn create(
        &mut self,
        maker: Option<usize>,
        (entry, room): (u64, u64),
        name: [u64; 2],
    ) -> Result<(usize, Made), Errno> {
        let tree = maker.map_or(0, |maker| self.tree(maker));
        let free = (1..=PROCESSES as u32).map(|step| self.last.wrapping_add(step));
        let pid = free
            .into_iter()
            .find(|pid| *pid != 0 && self.state((*pid - 1) as usize % PROCESSES) == state::FREE)
            .ok_or(errno::AGAIN)?;
        let slot = (pid - 1) as usize % PROCESSES;
        let record = self.record(slot).ok_or(errno::AGAIN)?;
        self.trees.take(tree, What::Processes, 1)?;
        let body = self
            .body(slot, 0, tree, (entry, room))
            .inspect_err(|_| self.trees.give(tree, What::Processes, 1))?;
        self.last = pid;
        let parent = maker.map_or(0, |maker| self.pid(maker));
        self.slots[slot] = Slot {
            body: Some(body),
            tree,
            ..FREE
        };
        self.of[usize::from(body.made.environment) % ENVIRONMENTS] = slot as u8 + 1;
        record.parent.store(parent, Relaxed);
        record.tree.store(tree.into(), Relaxed);
        record.status.store(0, Relaxed);
        record.children_ran.store(0, Relaxed);
        record.ran_before.store(0, Relaxed);
        record.environment.store(body.made.environment, Relaxed);
        record.birth.store(body.made.birth, Relaxed);
        self.set_name(slot, name);
        record.state.store(state::NEW, Relaxed);
        record.pid.store(pid, Relaxed);
        Ok((slot, body.made))
    }

    fn set_name(&self, slot: usize, name: [u64; 2]) {
        let bytes = name.into_iter().flat_map(u64::to_le_bytes);
        if let Some(record) = self.record(slot) {
            for (to, byte) in record.name.iter().zip(bytes) {
                to.store(byte, Relaxed);
            }
        }
    }

    /// Lets a process run that its maker has made.
    pub fn start(&mut self, caller: Option<usize>, pid: u64, slice: bool) -> Result<(), Errno> {
        let slot = self.slot_of(pid)?;
        let made = self.environment(slot).ok_or(errno::SRCH)?;
        let parent = caller.map_or(0, |caller| self.pid(caller));
        if self.parent(slot) != parent || self.state(slot) != state::NEW {
            return Err(errno::PERM);
        }
        if slice {
            self.add_slice(slot)?;
        }
        calls::set_frozen(made.target(), false).map_err(refusal)?;
        if let Some(record) = self.record(slot) {
            record.state.store(state::LIVES, Relaxed);
        }
        if let Some(table) = self.table {
            table.living.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// One slice more, as soon as there is one: those of processes that have ended are free a little
    /// later than the tree says.
    pub fn add_slice(&mut self, slot: usize) -> Result<(), Errno> {
        let tree = self.tree(slot);
        self.trees.take(tree, What::Slices, 1)?;
        self.slots[slot].slices += 1;
        self.slots[slot].wants += 1;
        self.give_wanted();
        Ok(())
    }

    /// Another environment for a process.
    pub fn replace(
        &mut self,
        slot: usize,
        entry: (u64, u64),
        name: [u64; 2],
    ) -> Result<Made, Errno> {
        let tree = self.tree(slot);
        if let Some(former) = self.slots[slot].next.take() {
            self.drop_body(tree, former);
        }
        let window = self.slots[slot]
            .body
            .map_or(0, |body| 1 - body.window.min(1));
        let body = self.body(slot, window, tree, entry)?;
        self.slots[slot].next = Some(body);
        let _ = name;
        Ok(body.made)
    }

    /// A process is what was made for it: the environment that runs from now on.
    pub fn commit(&mut self, slot: usize, name: [u64; 2]) -> Result<Made, Errno> {
        let next = self.slots[slot].next.ok_or(errno::INVAL)?;
        let body = self.slots[slot].body.ok_or(errno::SRCH)?;
        if !next.made.lives() {
            return Err(errno::INVAL);
        }
        calls::set_frozen(next.made.target(), false).map_err(refusal)?;
        let signals = self
            .mailbox(slot)
            .map_or(0, |mailbox| mailbox.signals.load(Relaxed));
        self.slots[slot].body = Some(next);
        self.slots[slot].next = None;
        self.is_no_more(slot, body.made);
        self.of[usize::from(next.made.environment) % ENVIRONMENTS] = slot as u8 + 1;
        if let Some(mailbox) = self.mailbox(slot) {
            mailbox.signals.fetch_or(signals, Relaxed);
        }
        if let Some(record) = self.record(slot) {
            record.ran_before.fetch_add(body.made.ran(), Relaxed);
            record.environment.store(next.made.environment, Relaxed);
            record.birth.store(next.made.birth, Relaxed);
        }
        self.set_name(slot, name);
        self.drop_body(self.tree(slot), body);
        // Slices of its own: those of the former one are free only when that is gone.
        self.slots[slot].wants = self.slots[slot].slices;
        self.give_wanted();
        Ok(next.made)
    }

    /// Processes that are to have slices again get them, as far as there are any.
    pub fn give_wanted(&mut self) {
        self.wanting = false;
        for slot in 0..PROCESSES {
            while self.slots[slot].wants > 0 {
                let Some(made) = self.environment(slot) else {
                    self.slots[slot].wants = 0;
                    break;
                };
                let given = take_slice().and_then(|(processor, position)| {
                    calls::give_slice(processor, position, made.environment)
                        .inspect_err(|_| _ = calls::free_slice(processor, position))
                });
                if given.is_err() {
                    self.wanting = true;
                    break;
                }
                self.slots[slot].wants -= 1;
            }
        }
    }

    /// More pages for a process.
    pub fn room(&mut self, slot: usize, more: u64) -> Result<u32, Errno> {
        let more = u32::try_from(more).map_err(|_| errno::NOMEM)?;
        let body = self.slots[slot].body.ok_or(errno::SRCH)?;
        let room = body.room.checked_add(more).ok_or(errno::NOMEM)?;
        let tree = self.tree(slot);
        self.trees.take(tree, What::Pages, more)?;
        let pages = postern_aegis::abi::call::PAGES;
        if let Err(error) = calls::quota(body.made.environment, pages, 2, room) {
            self.trees.give(tree, What::Pages, more);
            return Err(refusal(error));
        }
        if let Some(body) = &mut self.slots[slot].body {
            body.room = room;
        }
        Ok(room)
    }

    /// A process and those that it makes from now on have limits of their own.
    pub fn limit(&mut self, slot: usize, what: What, value: u64) -> Result<(), Errno> {
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        let (of, now) = (self.tree(slot), self.slots[slot]);
        // One for itself, the first time.
        let heads = self.slots.iter().enumerate();
        let alone = of != 0
            && heads
                .filter(|(_, other)| other.tree == of && (other.body.is_some()))
                .count()
                == 1;
        let tree = if alone {
            of
        } else {
            let used = [1, now.body.map_or(0, |body| body.room), now.slices];
            self.trees.part(of, used)?
        };
        self.trees.lower(tree, what, value)?;
        self.slots[slot].tree = tree;
        if let Some(record) = self.record(slot) {
            record.tree.store(tree.into(), Relaxed);
        }
        Ok(())
    }

    /// Keeps pages that a process gave; their numbers stand in its mailbox.
    pub fn keep(&mut self, slot: usize, count: u64, writes: bool) -> Result<[u64; 2], Errno> {
        let mailbox = self.mailbox(slot).ok_or(errno::SRCH)?;
        let made = self.environment(slot).ok_or(errno::SRCH)?;
        let count = usize::try_from(count).map_err(|_| errno::INVAL)?;
        let tree = self.tree(slot);
        self.settle();
        // Read once, since it may change between two looks; not on the stack, which is small.
        let numbers = self.numbers.get_mut(..count).ok_or(errno::INVAL)?;
        for (to, from) in numbers.iter_mut().zip(&mailbox.numbers) {
            *to = from.load(Relaxed);
        }
        self.trees.take(tree, What::Pages, count as u32)?;
        let given = self.numbers[..count].iter().copied();
        self.keeper
            .keep(given, made.environment, tree, writes)
            .inspect_err(|_| self.trees.give(tree, What::Pages, count as u32))
    }

    /// What was kept and is free is given back to the trees.
    pub fn settle(&mut self) {
        while let Some((tree, count)) = self.keeper.freed() {
            self.trees.give(tree, What::Pages, count);
            self.trees.close(tree);
        }
    }

    /// An environment is no process's any more; its number may be another's already.
    fn is_no_more(&mut self, slot: usize, made: Made) {
        let of = &mut self.of[usize::from(made.environment) % ENVIRONMENTS];
        if usize::from(*of) == slot + 1 {
            *of = 0;
        }
    }

    /// A process has ended, with a status as `wait` has it.
    pub fn end(&mut self, slot: usize, status: u32) {
        let Some(record) = self.record(slot) else {
            return;
        };
        let now = self.slots[slot];
        let Some(body) = now.body else {
            return;
        };
        record.ran_before.fetch_add(body.made.ran(), Relaxed);
        self.is_no_more(slot, body.made);
        self.slots[slot].body = None;
        self.slots[slot].next = None;
        self.trees.give(now.tree, What::Slices, now.slices);
        self.slots[slot].slices = 0;
        if record.state.load(Relaxed) != state::NEW
            && let Some(table) = self.table
        {
            table.living.fetch_sub(1, Relaxed);
        }
        record.status.store(status, Relaxed);
        let unborn = record.state.swap(state::ENDED, Relaxed) == state::NEW;
        let pid = self.pid(slot);
        if pid == 1 {
            crate::stop(status);
        }
        // Last of what somebody waits for: its slice may be the one in which this runs.
        self.drop_body(now.tree, body);
        if let Some(next) = now.next {
            self.drop_body(now.tree, next);
        }
        self.orphan_children(pid);
        let parent = self.slot_of(self.parent(slot).into()).ok();
        if now.orphan || unborn || parent.is_none() {
            self.forget(slot);
        } else if let Some(mailbox) = parent.and_then(|parent| self.mailbox(parent)) {
            mailbox.sender.store(pid.into(), Relaxed);
            mailbox.signals.fetch_or(1 << signal::CHLD, Relaxed);
        }
    }

    /// Children of a process that has ended are the first one's, and nobody waits for them.
    fn orphan_children(&mut self, pid: u32) {
        for slot in 0..PROCESSES {
            if self.state(slot) == state::FREE || self.parent(slot) != pid {
                continue;
            }
            if let Some(record) = self.record(slot) {
                record.parent.store(1, Relaxed);
            }
            self.slots[slot].orphan = true;
            match self.state(slot) {
                state::ENDED => self.forget(slot),
                // Nobody is left who could make it ready.
                state::NEW => self.end(slot, signal::killed(signal::KILL)),
                _ => {}
            }
        }
    }

    fn forget(&mut self, slot: usize) {
        let tree = self.tree(slot);
        self.trees.give(tree, What::Processes, 1);
        self.trees.close(tree);
        self.slots[slot] = FREE;
        if let Some(record) = self.record(slot) {
            record.pid.store(0, Relaxed);
            record.parent.store(0, Relaxed);
            record.state.store(state::FREE, Relaxed);
        }
    }

    /// How a child ended, which is forgotten.
    pub fn reap(&mut self, caller: usize, pid: u64) -> Result<[u64; 2], Errno> {
        let slot = self.slot_of(pid)?;
        if self.parent(slot) != self.pid(caller) || self.slots[slot].orphan {
            return Err(errno::CHILD);
        }
        if self.state(slot) != state::ENDED {
            return Err(errno::AGAIN);
        }
        let record = self.record(slot).ok_or(errno::CHILD)?;
        // All that it had is free, then: its parent finds room for the next one.
        let body = books::environment(record.environment.load(Relaxed));
        let gone = body.claim.load(Relaxed) == claim::FREE
            || body.birth.load(Relaxed) != record.birth.load(Relaxed);
        if !gone {
            return Err(errno::BUSY);
        }
        let ran = record.ran_before.load(Relaxed) + record.children_ran.load(Relaxed);
        let status = record.status.load(Relaxed);
        if let Some(own) = self.record(caller) {
            own.children_ran.fetch_add(ran, Relaxed);
        }
        self.forget(slot);
        Ok([status.into(), ran])
    }

    /// Looks who has ended by itself.
    pub fn find_dead(&mut self) {
        for slot in 0..PROCESSES {
            if let Some(body) = self.slots[slot].body
                && !body.made.lives()
            {
                let status = status_of(body.made);
                self.end(slot, status);
            }
            if let Some(next) = self.slots[slot].next
                && !next.made.lives()
            {
                self.slots[slot].next = None;
                self.drop_body(self.tree(slot), next);
            }
        }
    }

    /// A signal for one process from another.
    pub fn signal(&mut self, from: usize, to: usize, number: u32) -> Result<(), Errno> {
        let within = self.trees.within(self.tree(to), self.tree(from));
        if !within || self.pid(to) == 1 && from != to {
            return Err(errno::PERM);
        }
        let Some(made) = self.environment(to).filter(|_| number != 0) else {
            return Ok(());
        };
        let record = self.record(to).ok_or(errno::SRCH)?;
        match number {
            signal::KILL => self.end(to, signal::killed(signal::KILL)),
            signal::STOP | signal::CONT if record.state.load(Relaxed) != state::NEW => {
                let stop = number == signal::STOP;
                let _ = calls::set_frozen(made.target(), stop);
                let now = if stop { state::STOPPED } else { state::LIVES };
                record.state.store(now, Relaxed);
            }
            _ => {
                let from = u64::from(self.pid(from));
                if let Some(mailbox) = self.mailbox(to) {
                    mailbox.sender.store(from, Relaxed);
                    mailbox.signals.fetch_or(1 << number, Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Whether a process is another one's child, or a child of one, and so on.
    pub fn descends(&self, slot: usize, from: usize) -> bool {
        let (mut now, of) = (slot, self.pid(from));
        for _ in 0..PROCESSES {
            if self.pid(now) == of {
                return true;
            }
            match self.slot_of(self.parent(now).into()) {
                Ok(parent) if !self.slots[now].orphan => now = parent,
                _ => return false,
            }
        }
        false
    }
}

/// A free slice of the processor that has the fewest in use.
fn take_slice() -> Result<(usize, usize), Error> {
    let used = |processor: &usize| {
        let vector = &books::machine().slices[*processor];
        let owned = |slice: &&postern_aegis::records::Slice| slice.owner.load(Relaxed) != 0;
        vector.iter().filter(owned).count()
    };
    let processors = slices::processors().min(postern_aegis::abi::PROCESSORS);
    let processor = match processors {
        1 => 0,
        _ => (0..processors).min_by_key(used).ok_or(Error::Exhausted)?,
    };
    calls::take_slice(processor, usize::MAX).map(|position| (processor, position as usize))
}

/// How an environment ended that was not asked to.
fn status_of(made: Made) -> u32 {
    let record = books::environment(made.environment);
    let reason = record.ended.load(Relaxed);
    signal::killed(match reason {
        _ if record.birth.load(Relaxed) != made.birth => signal::KILL,
        end::EXCESS => signal::XCPU,
        end::EMERGENCY => signal::SEGV,
        end::DESTROYED => signal::ABRT,
        end::EXCEPTION.. => signal::of_exception(reason - end::EXCEPTION),
        _ => signal::KILL,
    })
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
