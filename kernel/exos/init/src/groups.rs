//! Process groups: a number in each process's record, which children begin with, and the one that the
//! console is for, with what was typed there while nobody read.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::calls;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::request::typed;
use postern_exos_abi::table::{PROCESSES, TYPED, state};

use crate::registry::Registry;

impl Registry {
    /// The group of a process that lives.
    fn group_of(&self, slot: usize) -> Option<u32> {
        let lives = matches!(self.state(slot), state::LIVES | state::STOPPED | state::NEW);
        let record = self.record(slot).filter(|_| lives)?;
        Some(record.group.load(Relaxed))
    }

    fn is_group(&self, group: u32) -> bool {
        (0..PROCESSES).any(|slot| self.group_of(slot) == Some(group))
    }

    /// Moves the caller or a child of its to a group, or the console to one.
    pub fn set_group(&mut self, caller: usize, pid: u64, group: u64) -> Result<(), Errno> {
        let group = u32::try_from(group).map_err(|_| errno::INVAL)?;
        if pid == 0 {
            let there = self.is_group(group);
            let table = self.table.filter(|_| there).ok_or(errno::PERM)?;
            table.foreground.store(group, Relaxed);
            return Ok(());
        }
        let slot = self.slot_of(pid)?;
        if slot != caller && self.parent(slot) != self.pid(caller) {
            return Err(errno::SRCH);
        }
        if group != self.pid(slot) && !self.is_group(group) {
            return Err(errno::PERM);
        }
        let record = self.record(slot).ok_or(errno::SRCH)?;
        record.group.store(group, Relaxed);
        Ok(())
    }

    /// Does with what was typed what [`typed`] says. Nobody else takes bytes from the kernel: two
    /// who did would each have one in hand, and hand them on in any order. Who is not of the group
    /// that the console is for takes nothing.
    pub fn typed(&mut self, slot: usize, what: u64) -> Result<u64, Errno> {
        let table = self.table.ok_or(errno::AGAIN)?;
        let foreground = table.foreground.load(Relaxed);
        if what == typed::TAKE
            && self.group_of(slot) != Some(foreground)
            && self.is_group(foreground)
        {
            return Err(errno::AGAIN);
        }
        let count = (table.typed.load(Relaxed) as usize).min(TYPED);
        let (kept, free) = table.bytes.split_at(count);
        let next = || calls::read().map_err(|_| errno::AGAIN);
        match (what, kept.first()) {
            (typed::TAKE, None) => next().map(u64::from),
            (typed::TAKE, Some(first)) => {
                let taken = first.load(Relaxed);
                for pair in kept.windows(2) {
                    pair[0].store(pair[1].load(Relaxed), Relaxed);
                }
                table.typed.store(count as u32 - 1, Relaxed);
                Ok(taken.into())
            }
            (typed::LOOK, Some(_)) => Ok(0),
            (typed::LOOK, None) => {
                free[0].store(next()?, Relaxed);
                table.typed.store(1, Relaxed);
                Ok(0)
            }
            (typed::WATCH, _) => {
                for (place, count) in free.iter().zip(count as u32 + 1..) {
                    match next()? {
                        typed::INTERRUPT => return Ok(0),
                        byte => place.store(byte, Relaxed),
                    }
                    table.typed.store(count, Relaxed);
                }
                Err(errno::AGAIN)
            }
            _ => Err(errno::INVAL),
        }
    }

    /// A signal for a group: for its members that the caller may act on, the caller last.
    pub fn signal_group(&mut self, from: usize, group: u32, number: u32) -> Result<(), Errno> {
        let mut result = Err(errno::SRCH);
        let own = self.group_of(from) == Some(group);
        for slot in (0..PROCESSES).filter(|slot| *slot != from) {
            if self.group_of(slot) == Some(group) {
                let sent = self.signal(from, slot, number);
                result = if result.is_ok() { result } else { sent };
            }
        }
        match own {
            true => self.signal(from, from, number),
            false => result,
        }
    }
}
