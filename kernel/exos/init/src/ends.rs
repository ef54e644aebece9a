//! How processes end, and how that is told.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::ENVIRONMENTS;
use postern_aegis::books;
use postern_aegis::records::{claim, end};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::signal;
use postern_exos_abi::table::{PROCESSES, event, state};

use crate::making::Made;
use crate::registry::{FREE, Registry};
use crate::tree::What;

impl Registry {
    /// An environment is no process's any more; its number may be another's already.
    pub(crate) fn is_no_more(&mut self, slot: usize, made: Made) {
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
        self.serves_no_more(slot, status);
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
        } else {
            self.tell_parent(slot);
        }
    }

    /// A process's parent is told that it ended, was stopped or goes on.
    pub(crate) fn tell_parent(&self, slot: usize) {
        let parent = self.slot_of(self.parent(slot).into()).ok();
        if let Some(mailbox) = parent.and_then(|parent| self.mailbox(parent)) {
            mailbox.sender.store(self.pid(slot).into(), Relaxed);
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
        let record = self.record(slot).ok_or(errno::CHILD)?;
        if self.state(slot) != state::ENDED {
            return match record.event.swap(event::NONE, Relaxed) {
                event::NONE => Err(errno::AGAIN),
                _ => Ok([record.status.load(Relaxed).into(), 0]),
            };
        }
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
