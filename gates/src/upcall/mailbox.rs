//! What waits to be told to a thread's handler: a few events, each at most once, and counts of all
//! that was done with them.
//!
//! Any thread puts something in, also in a signal handler, and none waits for another: who finds a
//! slot in somebody's hands takes the next one. The thread itself takes out, in the handler of the
//! signal for upcalls, which may have interrupted it while it put something in. Invariant: who has
//! filled a slot rings behind that, and `rung` is taken back before slots are looked at for the
//! last time. So what that look does not find is rung for after it. While the thread calls
//! handlers, and while it is left to itself before the next ones, `rung` stays, and nobody rings.

use crate::outcome::RawFault;
use crate::signal;
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Events that can wait.
pub const SLOTS: usize = 16;

/// A slot is in nobody's hands, and empty.
const EMPTY: u64 = 0;
/// Somebody writes or takes it.
const BUSY: u64 = 1;

/// It has this event.
fn full(event: u32) -> u64 {
    u64::from(event) << 2 | 2
}

#[derive(Default)]
struct Slot {
    state: AtomicU64,
    data: AtomicU64,
    /// Of those that wait, the highest is told first.
    priority: AtomicU32,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// The thread is interrupted for it.
    Sent,
    /// The same event waited already: its data is the later one's.
    Coalesced,
    /// No place was left.
    Dropped,
    /// The thread is not attached any more.
    Detached,
}

/// How often what has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpcallCounters {
    /// Handlers that returned.
    pub delivered: u64,
    /// Events whose data took the place of an earlier one's.
    pub coalesced: u64,
    /// Events for which there was no place.
    pub dropped: u64,
    /// Events that came when the domain let nobody in.
    pub skipped: u64,
    /// Handlers that were ended.
    pub ended: u64,
    /// Handlers that had to wait, and went on on a thread of their domain's.
    pub promoted: u64,
}

impl UpcallCounters {
    /// Each with that of the other, as `how` says.
    fn with(self, other: UpcallCounters, how: impl Fn(u64, u64) -> u64) -> UpcallCounters {
        UpcallCounters {
            delivered: how(self.delivered, other.delivered),
            coalesced: how(self.coalesced, other.coalesced),
            dropped: how(self.dropped, other.dropped),
            skipped: how(self.skipped, other.skipped),
            ended: how(self.ended, other.ended),
            promoted: how(self.promoted, other.promoted),
        }
    }

    /// What both have counted.
    pub fn and(self, other: UpcallCounters) -> UpcallCounters {
        self.with(other, u64::saturating_add)
    }

    /// What was counted since they were `before`, and nothing where that is more.
    pub fn since(self, before: UpcallCounters) -> UpcallCounters {
        self.with(before, u64::saturating_sub)
    }
}

/// Of one attachment.
#[derive(Default)]
pub struct Mailbox {
    slots: [Slot; SLOTS],
    rung: AtomicBool,
    /// The kernel's number of the thread; 0 once it is not attached any more.
    tid: AtomicU32,
    pub(super) delivered: AtomicU64,
    coalesced: AtomicU64,
    dropped: AtomicU64,
    pub(super) skipped: AtomicU64,
    pub(super) ended: AtomicU64,
    pub(super) promoted: AtomicU64,
    fault: KeptFault,
}

impl Mailbox {
    /// The thread with this number is interrupted from now on. What waited for another one is
    /// dropped.
    pub(super) fn open(&self, tid: u32) {
        while self.take().is_some() {
            self.dropped.fetch_add(1, Relaxed);
        }
        self.rung.store(false, SeqCst);
        self.tid.store(tid, SeqCst);
    }

    /// From now on nobody is interrupted.
    pub(super) fn close(&self) {
        self.tid.store(0, SeqCst);
    }

    /// Has the thread interrupted for an event. Of several that wait, those of the highest priority
    /// are told first.
    pub fn post(&self, event: u32, value: u64, priority: u8) -> Posted {
        if self.tid.load(SeqCst) == 0 {
            return Posted::Detached;
        }
        let posted = if self.fill(full(event), event, value, priority) {
            self.coalesced.fetch_add(1, Relaxed);
            Posted::Coalesced
        } else if self.fill(EMPTY, event, value, priority) {
            Posted::Sent
        } else {
            self.dropped.fetch_add(1, Relaxed);
            Posted::Dropped
        };
        // Also where nothing was put in: what waits may not have been rung for, for want of room in
        // the kernel.
        self.ring();
        posted
    }

    /// Fills the first slot that is in this state.
    fn fill(&self, state: u64, event: u32, data: u64, priority: u8) -> bool {
        let taken = |slot: &&Slot| {
            slot.state
                .compare_exchange(state, BUSY, SeqCst, SeqCst)
                .is_ok()
        };
        let Some(slot) = self.slots.iter().find(taken) else {
            return false;
        };
        slot.data.store(data, SeqCst);
        slot.priority.store(u32::from(priority), SeqCst);
        slot.state.store(full(event), SeqCst);
        true
    }

    /// Interrupts the thread, unless it is about to be.
    pub(super) fn ring(&self) {
        while !self.rung.swap(true, SeqCst) {
            let (tid, signal) = (self.tid.load(SeqCst), signal::upcall_signal());
            // A thread that ended meanwhile is not found, and one that got its number is not
            // attached, or looks into a mailbox of its own.
            // SAFETY: sends a signal for which a handler is installed to a thread of this process.
            let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) };
            if sent == 0 {
                return;
            }
            // The kernel queues no more signals; who posts next tries again. Or another thread is
            // attached since then, and who posted meanwhile has found it rung for.
            self.rung.store(false, SeqCst);
            if self.tid.load(SeqCst) == tid {
                return;
            }
        }
    }

    /// Whoever posts does not ring: the thread looks, or is rung for later.
    pub(super) fn hold(&self) {
        self.rung.store(true, SeqCst);
    }

    /// Whoever posts rings from here on.
    pub(super) fn answer(&self) {
        self.rung.store(false, SeqCst);
    }

    /// Takes an event out: of those with the highest priority, the first.
    pub(super) fn take(&self) -> Option<(u32, u64)> {
        loop {
            let waits = |slot: &&Slot| !matches!(slot.state.load(SeqCst), EMPTY | BUSY);
            let priority = |slot: &&Slot| slot.priority.load(SeqCst);
            let slot = self.slots.iter().rev().filter(waits).max_by_key(priority)?;
            let state = slot.state.load(SeqCst);
            let mine = |state| {
                let taken = slot.state.compare_exchange(state, BUSY, SeqCst, SeqCst);
                taken.is_ok()
            };
            if matches!(state, EMPTY | BUSY) || !mine(state) {
                // Somebody replaces its data just now, or has; and rings behind that.
                continue;
            }
            let data = slot.data.load(SeqCst);
            slot.state.store(EMPTY, SeqCst);
            return Some(((state >> 2) as u32, data));
        }
    }

    /// How many events wait.
    pub fn waiting(&self) -> u32 {
        let states = self.slots.iter().map(|slot| slot.state.load(SeqCst));
        states
            .filter(|state| !matches!(*state, EMPTY | BUSY))
            .count() as u32
    }

    /// How often what has happened so far.
    pub fn counters(&self) -> UpcallCounters {
        UpcallCounters {
            delivered: self.delivered.load(Relaxed),
            coalesced: self.coalesced.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            ended: self.ended.load(Relaxed),
            promoted: self.promoted.load(Relaxed),
        }
    }

    /// Keeps what an upcall ended with, if nothing is kept.
    pub(super) fn keep(&self, fault: EndedUpcall) {
        self.fault.put(fault);
    }

    /// Takes what the first upcall ended with that nobody has asked about.
    pub fn take_fault(&self) -> Option<EndedUpcall> {
        self.fault.take()
    }
}

/// How an upcall ended that did not return.
#[derive(Clone, Copy)]
pub struct EndedUpcall {
    /// What the handler or the gate saw.
    pub fault: RawFault,
    /// Which of its lives the domain was in.
    pub life: u64,
    /// The domain lets nobody in any more since then.
    pub closed: bool,
}

/// One such, that the thread leaves in a signal handler and any other takes.
#[derive(Default)]
struct KeptFault {
    /// [`EMPTY`], [`BUSY`], or 2: there is one.
    state: AtomicU64,
    fault: UnsafeCell<Option<EndedUpcall>>,
}

// SAFETY: the cell is touched only by who has changed the state to BUSY.
unsafe impl Sync for KeptFault {}

impl KeptFault {
    fn put(&self, fault: EndedUpcall) {
        if self
            .state
            .compare_exchange(EMPTY, BUSY, SeqCst, SeqCst)
            .is_ok()
        {
            // SAFETY: the state is BUSY by this thread.
            unsafe { *self.fault.get() = Some(fault) };
            self.state.store(2, SeqCst);
        }
    }

    fn take(&self) -> Option<EndedUpcall> {
        self.state.compare_exchange(2, BUSY, SeqCst, SeqCst).ok()?;
        // SAFETY: as above.
        let fault = unsafe { (*self.fault.get()).take() };
        self.state.store(EMPTY, SeqCst);
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_wait_once_each_and_what_has_no_place_is_counted() {
        let mailbox = Mailbox::default();
        mailbox.open(u32::MAX);
        for event in 0..SLOTS as u32 {
            assert_eq!(mailbox.post(event, 1, 0), Posted::Sent);
        }
        assert_eq!(mailbox.post(3, 7, 0), Posted::Coalesced);
        assert_eq!(mailbox.post(99, 7, 0), Posted::Dropped);
        assert_eq!(mailbox.waiting(), SLOTS as u32);
        let mut taken: Vec<_> = std::iter::from_fn(|| mailbox.take()).collect();
        taken.sort_unstable();
        let expected = (0..SLOTS as u32).map(|event| (event, if event == 3 { 7 } else { 1 }));
        assert_eq!(taken, expected.collect::<Vec<_>>());
        mailbox.close();
        assert_eq!(mailbox.post(1, 1, 0), Posted::Detached);
        let counters = mailbox.counters();
        assert_eq!((counters.coalesced, counters.dropped), (1, 1));
    }

    #[test]
    fn the_highest_priority_is_told_first() {
        let mailbox = Mailbox::default();
        mailbox.open(u32::MAX);
        for (event, priority) in [(1, 0), (2, 9), (3, 200), (4, 9)] {
            mailbox.post(event, 0, priority);
        }
        let taken: Vec<_> = std::iter::from_fn(|| mailbox.take()).collect();
        assert_eq!(taken, [(3, 0), (2, 0), (4, 0), (1, 0)]);
    }

    #[test]
    fn the_first_end_is_kept() {
        let mailbox = Mailbox::default();
        let ended = |life| EndedUpcall {
            fault: RawFault::default(),
            life,
            closed: true,
        };
        assert!(mailbox.take_fault().is_none());
        mailbox.keep(ended(1));
        mailbox.keep(ended(2));
        assert_eq!(mailbox.take_fault().map(|e| e.life), Some(1));
        assert!(mailbox.take_fault().is_none());
    }
}
