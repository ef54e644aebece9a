//! What processes may have: pages of their own, pages that are kept for them, limits of trees.
//!
//! Invariant: a page that a process gave and that is not kept yet is within its room, where it was
//! before; one that is kept is its tree's, beside the rooms of all processes in it.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::ENVIRONMENTS;
use postern_aegis::abi::call::PAGES;
use postern_aegis::{books, calls};
use postern_exos_abi::errno::{self, Errno};

use crate::registry::{Registry, refusal};
use crate::tree::What;

/// Pages that come to a process between its gifts and its request at most: its stack's.
const MEANWHILE: u32 = 16;

impl Registry {
    /// Pages are taken for a tree; if there are none left, again when all is free that nobody binds.
    pub(crate) fn take_pages(&mut self, tree: u8, count: u32) -> Result<(), Errno> {
        if self.trees.take(tree, What::Pages, count).is_ok() {
            return Ok(());
        }
        self.sweep();
        self.trees.take(tree, What::Pages, count)
    }

    /// More pages for a process. None: what nobody binds becomes free now.
    pub fn room(&mut self, slot: usize, more: u64) -> Result<u32, Errno> {
        let more = u32::try_from(more).map_err(|_| errno::NOMEM)?;
        let body = self.slots[slot].body.ok_or(errno::SRCH)?;
        let room = body.room.checked_add(more).ok_or(errno::NOMEM)?;
        if more == 0 {
            self.sweep();
            return Ok(room);
        }
        let tree = self.tree(slot);
        self.take_pages(tree, more)?;
        self.set_room(slot, room)
            .inspect_err(|_| self.trees.give(tree, What::Pages, more))
    }

    fn set_room(&mut self, slot: usize, room: u32) -> Result<u32, Errno> {
        let body = self.slots[slot].body.as_mut().ok_or(errno::SRCH)?;
        calls::quota(body.made.environment, PAGES, 2, room).map_err(refusal)?;
        body.room = room;
        Ok(room)
    }

    /// A process and those that it makes from now on have limits of their own.
    pub fn limit(&mut self, slot: usize, what: What, value: u64) -> Result<(), Errno> {
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        let (of, now) = (self.tree(slot), self.slots[slot]);
        if value > self.trees.limit(of, what) {
            return Err(errno::PERM);
        }
        // One for itself, the first time.
        let inside = self.slots.iter();
        let inside = inside.filter(|other| other.tree == of && other.body.is_some());
        let alone = of != 0 && inside.count() == 1;
        let tree = if alone {
            of
        } else {
            let rooms = [now.body, now.next].into_iter().flatten();
            let rooms = rooms.map(|body| body.room).sum();
            self.trees.part(of, [1, rooms, now.slices])?
        };
        self.trees.lower(tree, what, value)?;
        self.slots[slot].tree = tree;
        if let Some(record) = self.record(slot) {
            record.tree.store(tree.into(), Relaxed);
        }
        Ok(())
    }

    /// Keeps pages that a process gave; their numbers stand in its mailbox. What its tree has no room
    /// for is taken from the process's own, where the pages were: it has given them already, so a
    /// refusal would leave it without.
    pub fn keep(&mut self, slot: usize, count: u64, writes: bool) -> Result<[u64; 2], Errno> {
        let mailbox = self.mailbox(slot).ok_or(errno::SRCH)?;
        let body = self.slots[slot].body.ok_or(errno::SRCH)?;
        let count = usize::try_from(count).map_err(|_| errno::INVAL)?;
        let tree = self.tree(slot);
        // Read once, since it may change between two looks; not on the stack, which is small.
        let numbers = self.numbers.get_mut(..count).ok_or(errno::INVAL)?;
        for (to, from) in numbers.iter_mut().zip(&mailbox.numbers) {
            *to = from.load(Relaxed);
        }
        let all = count as u32;
        let narrow = self.take_pages(tree, all).is_err();
        if narrow {
            let room = body.room.checked_sub(all).ok_or(errno::NOMEM)?;
            self.set_room(slot, room)?;
        }
        // Nothing becomes free from here on, so what was given is the same that is kept.
        let by = body.made.environment;
        let kept = self.keeper.keep(&self.numbers[..count], by, tree, writes);
        let rest = all - kept.as_ref().map_or(0, |kept| kept.count);
        if rest > 0 && narrow {
            self.set_room(slot, body.room - all + rest)?;
        } else if rest > 0 {
            self.trees.give(tree, What::Pages, rest);
        }
        kept.map(|kept| [kept.read, kept.write])
    }

    /// What nobody binds any more is free, and given back to the trees.
    pub fn sweep(&mut self) {
        let Registry {
            slots, of, keeper, ..
        } = self;
        keeper.sweep(|environment| {
            let slot = of[usize::from(environment) % ENVIRONMENTS];
            let body = slot
                .checked_sub(1)
                .and_then(|slot| slots[usize::from(slot)].body);
            // Its pages are counted after what it gave was seen: then that is not among them.
            let has = books::environment(environment).pages.load(Relaxed);
            let room = body.filter(|body| body.made.environment == environment);
            room.map_or(0, |body| (body.room + MEANWHILE).saturating_sub(has))
        });
        while let Some((tree, count)) = self.keeper.freed() {
            self.trees.give(tree, What::Pages, count);
            self.trees.close(tree);
        }
    }
}
