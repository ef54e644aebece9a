//! What waits for a thread of a domain's pool: handlers that were suspended, and functions that the
//! extension wants called. Any thread puts something in, also in a handler of a signal, and waits
//! for nobody; threads of the pool take out.
//!
//! A handler has run in part, and may hold locks of its domain's: one with which nobody goes on has
//! ended inside. A function has not begun.
//!
//! Invariant: a place is touched by who has changed its state to FILLING or TAKEN. A place for a
//! handler always has a data stack that nobody else has: that of the handler that waits there, or
//! a spare one for the interrupted thread, or for whoever resumes it.

use crate::machine::{self, InChild};
use crate::upcall::suspended::{MOST_CALLS, Registers, Suspended};
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Nobody's, and empty.
const FREE: u32 = 0;
/// Somebody writes.
const FILLING: u32 = 1;
/// Something waits there.
const READY: u32 = 2;
/// A thread of the pool has it.
const TAKEN: u32 = 3;
/// The same, and what was there has ended.
const OVER: u32 = 4;

/// What each place has.
#[derive(Default)]
struct Place {
    state: AtomicU32,
    /// Who has the lowest came first.
    ticket: AtomicU64,
    /// Of its domain, in which it came.
    life: AtomicU64,
    /// Offset of the function.
    function: AtomicU32,
}

impl Place {
    fn changes(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange(from, to, SeqCst, SeqCst)
            .is_ok()
    }

    fn waits(&self) -> bool {
        self.state.load(SeqCst) == READY
    }
}

/// A place for a handler.
struct Slot {
    place: Place,
    /// Where its data stack begins.
    stack: AtomicU32,
    handler: UnsafeCell<Suspended>,
}

/// A place for a function that is to be called.
#[derive(Default)]
struct Task {
    place: Place,
    argument: AtomicU32,
}

// SAFETY: the cell is touched only by who has changed the state to FILLING or TAKEN.
unsafe impl Sync for Slot {}

/// How often what has happened, and how much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Handlers that were suspended, for a thread to go on with them.
    pub promoted: u64,
    /// Functions that were put in.
    pub spawned: u64,
    /// Handlers with which a thread went on.
    pub resumed: u64,
    /// Handlers with which no thread went on: the domain was reset or closed, or refused it.
    pub ended: u64,
    /// Functions that no thread called, for the same reasons.
    pub skipped: u64,
    /// Handlers and functions for which there was no place.
    pub full: u64,
    /// Threads that are in a handler or a function now.
    pub busy: u32,
    /// Most that ever waited at once.
    pub longest: u32,
}

/// Of one domain.
pub struct Pool {
    slots: Box<[Slot]>,
    tasks: Box<[Task]>,
    /// Changes with whatever begins to wait: threads sleep on it.
    news: AtomicU32,
    tickets: AtomicU64,
    /// Of the domain.
    life: AtomicU64,
    /// There are threads.
    open: AtomicBool,
    waiting: AtomicU32,
    longest: AtomicU32,
    busy: AtomicU32,
    promoted: AtomicU64,
    spawned: AtomicU64,
    resumed: AtomicU64,
    ended: AtomicU64,
    skipped: AtomicU64,
    full: AtomicU64,
}

impl Pool {
    /// With a place for a handler for each of these data stacks, and this many for functions.
    pub fn new(stacks: &[u32], task_count: usize) -> Pool {
        let slot = |&stack: &u32| Slot {
            place: Place::default(),
            stack: stack.into(),
            handler: UnsafeCell::new(Suspended {
                registers: Registers::default(),
                calls: 0,
                returns: [0; MOST_CALLS],
            }),
        };
        Pool {
            slots: stacks.iter().map(slot).collect(),
            tasks: (0..task_count).map(|_| Task::default()).collect(),
            news: AtomicU32::new(0),
            tickets: AtomicU64::new(0),
            life: AtomicU64::new(0),
            open: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
            longest: AtomicU32::new(0),
            busy: AtomicU32::new(0),
            promoted: AtomicU64::new(0),
            spawned: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            full: AtomicU64::new(0),
        }
    }

    /// Threads take out from now on, or none does any more.
    pub fn opens(&self, open: bool) {
        self.open.store(open, SeqCst);
    }

    /// How often what has happened so far.
    pub fn counters(&self) -> PoolCounters {
        PoolCounters {
            promoted: self.promoted.load(Relaxed),
            spawned: self.spawned.load(Relaxed),
            resumed: self.resumed.load(Relaxed),
            ended: self.ended.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            full: self.full.load(Relaxed),
            busy: self.busy.load(Relaxed),
            longest: self.longest.load(Relaxed),
        }
    }

    /// Has a thread call the function at `function` with `argument`. False if there is no place.
    /// Signal handlers may call this.
    pub fn spawn(&self, function: u32, argument: u32) -> bool {
        let free = |task: &&Task| task.place.changes(FREE, FILLING);
        let tasks = Some(&self.tasks).filter(|_| self.is_open());
        let Some(task) = tasks.and_then(|tasks| tasks.iter().find(free)) else {
            self.full.fetch_add(1, Relaxed);
            return false;
        };
        task.argument.store(argument, SeqCst);
        self.spawned.fetch_add(1, Relaxed);
        self.ready(&task.place, function);
        true
    }

    fn is_open(&self) -> bool {
        self.open.load(SeqCst)
    }

    /// Puts a handler of `function` in that `fill` writes, with the data stack that begins at
    /// `stack`: the one that takes its place. `None` if there is no place.
    pub(crate) fn suspend(
        &self,
        function: u32,
        stack: u32,
        fill: impl FnOnce(&mut Suspended),
    ) -> Option<u32> {
        let free = |slot: &&Slot| slot.place.changes(FREE, FILLING);
        let slots = Some(&self.slots).filter(|_| self.is_open());
        let Some(slot) = slots.and_then(|slots| slots.iter().find(free)) else {
            self.full.fetch_add(1, Relaxed);
            return None;
        };
        // SAFETY: the state is FILLING by this thread.
        fill(unsafe { &mut *slot.handler.get() });
        let spare = slot.stack.swap(stack, SeqCst);
        self.promoted.fetch_add(1, Relaxed);
        self.ready(&slot.place, function);
        Some(spare)
    }

    /// What was written waits from here on.
    fn ready(&self, place: &Place, function: u32) {
        place.function.store(function, SeqCst);
        place.life.store(self.life(), SeqCst);
        let ticket = self.tickets.fetch_add(1, SeqCst);
        place.ticket.store(ticket, SeqCst);
        let waiting = self.waiting.fetch_add(1, SeqCst) + 1;
        self.longest.fetch_max(waiting, SeqCst);
        place.state.store(READY, SeqCst);
        self.news.fetch_add(1, SeqCst);
        machine::wake(&self.news);
    }

    /// Of the domain: it changes with each reset.
    fn life(&self) -> u64 {
        self.life.load(SeqCst)
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        let slots = self.slots.iter().map(|slot| &slot.place);
        slots.chain(self.tasks.iter().map(|task| &task.place))
    }

    /// Another life of the domain begins, and nobody is inside: what waits is not for this one.
    /// Data stacks begin anew, too. Says how many handlers that has ended.
    pub fn begin_anew(&self) -> u32 {
        self.life.fetch_add(1, SeqCst);
        let end = |place: &Place, counter: &AtomicU64| {
            let waits = place.changes(READY, TAKEN);
            if waits {
                self.waiting.fetch_sub(1, SeqCst);
                counter.fetch_add(1, Relaxed);
                place.state.store(FREE, SeqCst);
            }
            waits
        };
        for task in &self.tasks {
            end(&task.place, &self.skipped);
        }
        let handlers = self
            .slots
            .iter()
            .filter(|slot| end(&slot.place, &self.ended));
        handlers.count() as u32
    }

    /// In the child after fork: none of the threads is here, and nothing is half written. Whether
    /// a handler waited, with which nobody goes on here.
    pub fn after_fork(&self, _: &InChild) -> bool {
        self.forget()
    }

    fn forget(&self) -> bool {
        self.opens(false);
        self.life.fetch_add(1, SeqCst);
        let waits = |slot: &Slot| !matches!(slot.place.state.load(SeqCst), FREE | OVER);
        let any = self.slots.iter().any(waits);
        for place in self.places() {
            place.state.store(FREE, SeqCst);
        }
        self.waiting.store(0, SeqCst);
        self.busy.store(0, SeqCst);
        any
    }

    /// A number that changes when something begins to wait.
    pub fn news(&self) -> u32 {
        self.news.load(SeqCst)
    }

    /// Sleeps unless that number has changed since.
    pub fn sleep(&self, since: u32) {
        machine::wait(&self.news, since);
    }

    /// Has all threads look again.
    pub fn wake_all(&self) {
        self.news.fetch_add(1, SeqCst);
        machine::wake_all(&self.news);
    }

    /// Takes out what came first.
    pub fn take(&self) -> Option<Job<'_>> {
        loop {
            let of = |place: &Place| place.ticket.load(SeqCst);
            let slots = self.slots.iter().filter(|slot| slot.place.waits());
            let slot = slots.min_by_key(|slot| of(&slot.place));
            let tasks = self.tasks.iter().filter(|task| task.place.waits());
            let task = tasks.min_by_key(|task| of(&task.place));
            let place = match (slot, task) {
                (None, None) => return None,
                (Some(slot), Some(task)) if of(&task.place) < of(&slot.place) => &task.place,
                (Some(slot), _) => &slot.place,
                (None, Some(task)) => &task.place,
            };
            if !place.changes(READY, TAKEN) {
                continue;
            }
            self.waiting.fetch_sub(1, SeqCst);
            self.busy.fetch_add(1, SeqCst);
            let (function, life) = (place.function.load(SeqCst), place.life.load(SeqCst));
            let handler = slot.filter(|slot| core::ptr::eq(&slot.place, place));
            return Some(Job {
                pool: self,
                place,
                function,
                life,
                what: match (handler, task) {
                    (Some(slot), _) => What::Handler(slot),
                    (None, task) => What::Function(task.map_or(0, |t| t.argument.load(SeqCst))),
                },
                exchanged: Cell::new(false),
                done: false,
            });
        }
    }
}

/// What a thread of the pool has taken out, until it is dropped.
pub struct Job<'a> {
    pool: &'a Pool,
    place: &'a Place,
    function: u32,
    life: u64,
    what: What<'a>,
    exchanged: Cell<bool>,
    done: bool,
}

enum What<'a> {
    Handler(&'a Slot),
    Function(u32),
}

impl<'a> Job<'a> {
    /// Offset of the function: the handler's, or the one that is to be called.
    pub fn function(&self) -> u32 {
        self.function
    }

    /// The argument of a function that is to be called; `None` of a handler.
    pub fn argument(&self) -> Option<u32> {
        match self.what {
            What::Handler(_) => None,
            What::Function(argument) => Some(argument),
        }
    }

    /// Whether the domain has begun anew since.
    pub fn is_over(&self) -> bool {
        self.life != self.pool.life()
    }

    /// It was gone on with, to whatever end.
    pub fn done(&mut self) {
        self.done = true;
        let _ = self.place.changes(TAKEN, OVER);
        if matches!(self.what, What::Handler(_)) {
            self.pool.resumed.fetch_add(1, Relaxed);
        }
    }

    /// The data stack of the handler's place: its own until it is exchanged, then the thread's
    /// former one.
    pub fn stack(&self) -> Option<u32> {
        match self.what {
            What::Handler(slot) => Some(slot.stack.load(SeqCst)),
            What::Function(_) => None,
        }
    }

    /// Exchanges it, once, with that of the calling thread, which is `with`.
    pub(crate) fn exchange_stack(&self, with: &AtomicU32) {
        if let What::Handler(slot) = self.what
            && !self.exchanged.replace(true)
        {
            let own = with.swap(slot.stack.load(SeqCst), SeqCst);
            slot.stack.store(own, SeqCst);
        }
    }

    /// What there is of the handler.
    pub(crate) fn handler(&self) -> Option<&'a Suspended> {
        match self.what {
            // SAFETY: the state is TAKEN by this thread, until this is dropped.
            What::Handler(slot) => Some(unsafe { &*slot.handler.get() }),
            What::Function(_) => None,
        }
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        match self.what {
            _ if self.done => {}
            What::Handler(_) => drop(self.pool.ended.fetch_add(1, Relaxed)),
            What::Function(_) => drop(self.pool.skipped.fetch_add(1, Relaxed)),
        }
        let _ = self.place.changes(TAKEN, FREE) || self.place.changes(OVER, FREE);
        // A child of a fork in which this is dropped has counted anew.
        let busy = |n: u32| n.checked_sub(1);
        let _ = self.pool.busy.fetch_update(SeqCst, SeqCst, busy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_first_is_taken_first_and_what_has_no_place_is_counted() {
        let pool = Pool::new(&[100, 200], 2);
        assert!(!pool.spawn(1, 1), "there are no threads");
        pool.opens(true);
        assert!(pool.spawn(1, 10));
        let spare = pool.suspend(2, 300, |handler| handler.calls = 7);
        assert_eq!(spare, Some(100));
        assert!(pool.spawn(3, 30));
        assert!(!pool.spawn(4, 40));
        assert_eq!(pool.suspend(5, 100, |_| {}), Some(200));
        assert_eq!(pool.suspend(6, 200, |_| {}), None);
        let mut taken = Vec::new();
        while let Some(mut job) = pool.take() {
            taken.push((job.function(), job.argument(), job.stack()));
            assert!(job.function() != 2 || job.handler().is_some_and(|h| h.calls == 7));
            job.done();
        }
        let expected = [
            (1, Some(10), None),
            (2, None, Some(300)),
            (3, Some(30), None),
            (5, None, Some(100)),
        ];
        assert_eq!(taken, expected);
        let counters = pool.counters();
        assert_eq!((counters.full, counters.longest, counters.busy), (3, 4, 0));
        assert_eq!((counters.promoted, counters.resumed), (2, 2));
        assert_eq!((counters.spawned, counters.skipped), (2, 0));
    }

    #[test]
    fn a_forked_child_knows_whether_a_handler_waited() {
        let pool = Pool::new(&[100], 1);
        pool.opens(true);
        pool.spawn(1, 1);
        assert!(!pool.forget(), "a function has not begun");
        pool.opens(true);
        pool.suspend(1, 200, |_| {});
        assert!(pool.forget());
        pool.opens(true);
        pool.suspend(1, 100, |_| {});
        let mut job = pool.take().unwrap();
        job.done();
        assert!(!pool.forget(), "it has ended");
        drop(job);
        assert!(pool.take().is_none() && pool.counters().busy == 0);
    }

    #[test]
    fn nothing_is_taken_over_into_another_life() {
        let pool = Pool::new(&[100], 1);
        pool.opens(true);
        pool.suspend(1, 200, |_| {});
        let job = pool.take().unwrap();
        pool.spawn(2, 2);
        assert_eq!(pool.begin_anew(), 0, "a thread has the handler");
        assert!(job.is_over() && pool.take().is_none());
        drop(job);
        assert_eq!((pool.counters().skipped, pool.counters().ended), (1, 1));
        // The place is free again, with the stack that it had.
        assert_eq!(pool.suspend(3, 300, |_| {}), Some(200));
        assert_eq!(pool.begin_anew(), 1);
        assert_eq!((pool.counters().skipped, pool.counters().ended), (1, 2));
    }
}
