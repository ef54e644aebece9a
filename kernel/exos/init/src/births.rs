//! How processes begin: new ones, and new environments of those that there are.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::ENVIRONMENTS;
use postern_aegis::{Mapping, books, calls, memory};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::table::{PROCESSES, event, state};

use crate::making::{self, Made};
use crate::registry::{Body, FREE, Registry, Slot, refusal};
use crate::tree::What;

/// Pages that a process can have at the least: the registry itself needs some for it.
const LEAST: u32 = 32;

/// Environments that have ended and are not free yet, above which none are made.
const DYING: u32 = 32;

impl Registry {
    fn body(
        &mut self,
        slot: usize,
        which: usize,
        tree: u8,
        (entry, room): (u64, u64),
    ) -> Result<Body, Errno> {
        // The kernel takes the dead apart at yields, piece by piece: who makes more of them than that
        // would have all environments. Who is told that this is busy yields, and asks again.
        if books::machine().dying.load(Relaxed) > DYING {
            return Err(errno::BUSY);
        }
        let room = u32::try_from(room).map_err(|_| errno::NOMEM)?.max(LEAST);
        self.take_pages(tree, room)?;
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

    pub(crate) fn drop_body(&mut self, tree: u8, body: Body) {
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
        let group = maker.and_then(|maker| self.record(maker));
        let group = group.map_or(pid, |maker| maker.group.load(Relaxed));
        record.group.store(group, Relaxed);
        record.event.store(event::NONE, Relaxed);
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
        self.serves_no_more(slot, 0);
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
        self.want_all_slices(slot);
        Ok(next.made)
    }
}
