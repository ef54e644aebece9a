//! Process groups: a number in each process's record, which children begin with, and the one that the
//! console is for, with what was typed there while nobody read.

use core::sync::atomic::Ordering::Relaxed;

use postern_exos_abi::errno::{self, Errno};
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

    /// Takes a byte that was typed while nobody read, or leaves one.
    pub fn typed(&mut self, word: u64) -> Result<u64, Errno> {
        let table = self.table.ok_or(errno::AGAIN)?;
        let count = (table.typed.load(Relaxed) as usize).min(TYPED);
        let Some(left) = word.checked_sub(1) else {
            let taken = table.bytes[..count].first().ok_or(errno::AGAIN)?;
            let taken = taken.load(Relaxed);
            for pair in table.bytes[..count].windows(2) {
                pair[0].store(pair[1].load(Relaxed), Relaxed);
            }
            table.typed.store(count as u32 - 1, Relaxed);
            return Ok(taken.into());
        };
        let left = u8::try_from(left).map_err(|_| errno::INVAL)?;
        let place = table.bytes.get(count).ok_or(errno::AGAIN)?;
        place.store(left, Relaxed);
        table.typed.store(count as u32 + 1, Relaxed);
        Ok(0)
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
