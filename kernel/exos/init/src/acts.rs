//! Who may act on whom, and signals.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::calls;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::request::GROUP;
use postern_exos_abi::signal::{self, COUNT};
use postern_exos_abi::table::{PROCESSES, event, state};

use crate::registry::Registry;

impl Registry {
    /// A signal for a process or a group; for number 0, for the caller and all below it.
    pub fn kill(&mut self, from: usize, words: [u64; 3]) -> Result<(), Errno> {
        let [pid, number, cause] = words;
        let number = u32::try_from(number).map_err(|_| errno::INVAL)?;
        if number >= COUNT {
            return Err(errno::INVAL);
        }
        if pid & GROUP != 0 {
            return self.signal_group(from, pid as u32, number);
        }
        if pid != 0 {
            let to = self.slot_of(pid)?;
            let cause = u32::try_from(cause).ok().filter(|cause| *cause != 0);
            return self.signal_of(from, to, number, cause.unwrap_or(number));
        }
        // Who descends is asked before anybody ends: then children are others'.
        let mut below = [false; PROCESSES];
        for (slot, below) in below.iter_mut().enumerate() {
            *below = slot != from && self.is(slot) && self.descends(slot, from);
        }
        for (slot, _) in below.iter().enumerate().filter(|(_, below)| **below) {
            let _ = self.signal(from, slot, number);
        }
        self.signal(from, from, number)
    }

    /// A signal for one process from another.
    pub fn signal(&mut self, from: usize, to: usize, number: u32) -> Result<(), Errno> {
        self.signal_of(from, to, number, number)
    }

    /// The same; `cause` is what a stop comes of.
    fn signal_of(&mut self, from: usize, to: usize, number: u32, cause: u32) -> Result<(), Errno> {
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
                let (now, status, event) = match stop {
                    true => (state::STOPPED, signal::stopped(cause), event::STOPPED),
                    false => (state::LIVES, signal::CONTINUED, event::CONTINUED),
                };
                if let Some(mailbox) = self.mailbox(to).filter(|_| !stop) {
                    mailbox.sender.store(self.pid(from).into(), Relaxed);
                    mailbox.signals.fetch_or(1 << signal::CONT, Relaxed);
                }
                if record.state.swap(now, Relaxed) != now {
                    record.status.store(status, Relaxed);
                    record.event.store(event, Relaxed);
                    self.tell_parent(to);
                }
                let _ = calls::set_frozen(made.target(), stop);
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

    /// Whether there is a process.
    fn is(&self, slot: usize) -> bool {
        self.environment(slot).is_some() && self.pid(slot) != 0
    }

    /// The environment of a process's parent.
    pub(crate) fn parent_of(&self, slot: usize) -> Option<u16> {
        let parent = self.slot_of(self.parent(slot).into()).ok()?;
        let lives = self.state(parent) == state::LIVES;
        self.environment(parent)
            .filter(|_| lives)
            .map(|made| made.environment)
    }
}
