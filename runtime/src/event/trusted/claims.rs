//! Who looks for events, and takes them: attached threads in the signal's handler, the dispatcher,
//! and the waiter for threads of other processes. Nothing here allocates, frees, locks or waits.

use super::bpf::Signals;
use super::slots::{By, Entered, Found, Slots, token};
use crate::event::elsewhere::Elsewhere;
use postern_gates::upcall::{Claimed, Handled, Sources};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::sync::Arc;

/// Of events that are found in one look.
const BATCH: usize = 16;
/// The token of what was sent and belongs to no event of this process's …
const NOBODYS: u64 = u64::MAX;
/// … and, with a slot of the queue, of what came from there. Others have a generation of 32 bits in
/// the upper half, and a number of few in the lower.
const RELAYED: u64 = 1 << 31;

/// One of those who look: a thread that is attached, or the dispatcher.
pub(crate) struct Claims {
    slots: Arc<Slots>,
    by: By,
    /// Found in the last look and not taken yet: the next one is the last.
    batch: [Found; BATCH],
    left: usize,
    /// By which the kernel's program says that there is something.
    signals: Option<Signals>,
}

impl Claims {
    pub(crate) fn new(slots: &Arc<Slots>, by: By, signals: Option<Signals>) -> Claims {
        Claims {
            slots: slots.clone(),
            by,
            batch: [Found { token: 0, flags: 0 }; BATCH],
            left: 0,
            signals,
        }
    }

    /// The dispatcher was told of an event by its own set.
    pub(crate) fn add(&mut self, token: u64, flags: u32) {
        if self.left < BATCH {
            self.batch[self.left] = Found { token, flags };
            self.left += 1;
        }
    }

    /// Looks, without waiting. False if there is nothing.
    fn look(&mut self) -> bool {
        let nothing = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut found = [nothing; BATCH];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let many = epoll::wait(self.slots.set(), &mut found, Some(&now)).unwrap_or(0);
        if many == 0 {
            self.slots.looked();
            return false;
        }
        // Each priority is read once: it may change meanwhile, and a sort needs one order.
        let mut keys = [0; BATCH];
        for (at, event) in found[..many].iter().enumerate() {
            let (flags, data) = (event.flags, event.data);
            let one = Found {
                token: data.u64(),
                flags: flags.bits(),
            };
            let key = self.slots.priority(one.token);
            let place = keys[..at].partition_point(|&other| other <= key);
            keys.copy_within(place..at, place + 1);
            self.batch.copy_within(place..at, place + 1);
            (keys[place], self.batch[place]) = (key, one);
        }
        self.left = many;
        true
    }
}

impl Claims {
    /// As [`Sources::claim`], of what was found already.
    pub(crate) fn claim_found(&mut self) -> Option<Claimed> {
        while self.left > 0 {
            self.left -= 1;
            let found = self.batch[self.left];
            if let Some(claimed) = self.slots.take(found) {
                if self.slots.queues(claimed.token) {
                    // More may be queued, for which there is no other edge.
                    self.left += 1;
                }
                return Some(claimed);
            }
        }
        None
    }
}

impl Claims {
    /// Takes one of this process's events, which are in the set.
    fn claim_own(&mut self) -> Option<Claimed> {
        loop {
            let claimed = self.claim_found();
            if claimed.is_some() || !self.look() {
                return claimed;
            }
        }
    }

    /// Takes one that waits for whoever is interrupted, of any process. The dispatcher takes only
    /// those of its own back.
    fn claim_relayed(&mut self) -> Option<Claimed> {
        let elsewhere = self.slots.elsewhere()?;
        let Some((taken, offset)) = elsewhere.take(self.by == By::Current) else {
            self.slots.looked_elsewhere();
            return None;
        };
        Some(Claimed {
            event: taken.event,
            data: taken.data,
            offset,
            token: RELAYED | taken.slot as u64,
        })
    }

    fn settle(&self, claimed: Claimed, how: Handled) {
        let Some(elsewhere) = self.slots.elsewhere() else {
            return;
        };
        let slot = (claimed.token & !RELAYED) as usize;
        match self.slots.place(claimed.event) {
            Some(place) => {
                elsewhere.forget(slot);
                self.slots.count_handled(token(place, 0), self.by, how);
            }
            None => {
                elsewhere.settle(slot, how);
                self.slots.tell_ended(self.by, how);
            }
        }
    }

    /// Has this process's events wait for a thread of another one, as many as there is room for.
    /// False: there is none.
    pub(crate) fn relay(&mut self) -> bool {
        let slots = self.slots.clone();
        let Some(elsewhere) = slots.elsewhere() else {
            return false;
        };
        // What became of earlier ones is room again.
        slots.collect();
        let mut any = false;
        while let Some(room) = elsewhere.reserve() {
            let Some(claimed) = self.claim_own() else {
                elsewhere.leave(room);
                break;
            };
            elsewhere.fill(room, claimed.event, claimed.data);
            self.slots.leave(Entered(claimed.token as u32 as usize));
            any = true;
        }
        self.give_back();
        any
    }

    /// What was found and not taken is found again by others.
    fn give_back(&mut self) {
        let left = std::mem::take(&mut self.left);
        if self.slots.process != crate::fork::process() {
            return;
        }
        for found in &self.batch[..left] {
            let Some(entered) = self.slots.enter(found.token) else {
                continue;
            };
            if let Some(descriptor) = self.slots.descriptor(entered) {
                let flags = self.slots.awaits(entered) | EventFlags::ET;
                let data = EventData::new_u64(found.token);
                let _ = epoll::modify(self.slots.set(), descriptor, data, flags);
            }
            self.slots.leave(entered);
        }
    }
}

impl Sources for Claims {
    fn signalled(&mut self) -> bool {
        let taken = self.signals.as_ref().is_some_and(Signals::taken);
        let waits = |elsewhere: &Arc<Elsewhere>| elsewhere.relay.waits(None);
        taken || self.slots.elsewhere().is_some_and(waits)
    }

    fn claim(&mut self) -> Option<Claimed> {
        self.claim_own().or_else(|| self.claim_relayed())
    }

    fn posted(&mut self, event: u32, data: u64) -> Claimed {
        let (offset, token) = match self.slots.enter_number(event) {
            Some((entered, token)) => (self.slots.offset(entered), token),
            // Of another process, or of none.
            None => {
                let handler = self.slots.handler(event);
                (handler.map_or(u32::MAX, |(offset, _)| offset), NOBODYS)
            }
        };
        Claimed {
            event,
            data,
            offset,
            token,
        }
    }

    fn handled(&mut self, claimed: Claimed, how: Handled) {
        match claimed.token {
            NOBODYS => self.slots.tell_ended(self.by, how),
            token if token & RELAYED != 0 => self.settle(claimed, how),
            token => self.slots.handled(token, self.by, how),
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.give_back();
    }
}
