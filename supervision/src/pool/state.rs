//! What the threads of a pool share: what lies idle, who waits.
//!
//! Domains are made, reset and dropped outside the lock. Whoever is lent one is counted in its
//! thread's home from the moment that room is kept for it until it lies somewhere again, so after a
//! fork the child knows which domains went with the other threads.

use super::cache::{Item, ThreadCache};
use super::options::{Lendable, Make, Options, PoolCounters, PoolError, Recycle};
use postern_runtime::fork;
use postern_runtime::restart::{FaultStreak, Outlook, RestartRule};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// What somebody who waited gets: a domain, or room to make one.
type Grant<T> = Option<Box<Item<T>>>;

pub(crate) struct Shared<T: Lendable> {
    pub number: u64,
    pub(super) options: Options,
    state: Mutex<PoolState<T>>,
    /// Callers that wait: who puts a domain into a home looks here afterwards.
    waiting: AtomicUsize,
    /// The kind of the domains that are made now; 0 is closed.
    pub(super) kind: AtomicU64,
    waited: AtomicU64,
    pub(super) refused: AtomicU64,
    made: AtomicU64,
    resets: AtomicU64,
    restarts: AtomicU64,
    abandoned: AtomicU64,
}

struct PoolState<T: Lendable> {
    make: Make<T>,
    /// Most domains.
    size: usize,
    /// Domains, also those that are being made.
    total: usize,
    /// The warmest last.
    idle: Vec<Box<Item<T>>>,
    waiters: VecDeque<(u64, Thread)>,
    granted: Vec<(u64, Grant<T>)>,
    homes: Vec<Arc<ThreadCache<T>>>,
    /// Loans of homes that are gone.
    taken: u64,
    next_ticket: u64,
    next_kind: u64,
    process: u64,
}

/// What the lock let a caller have.
enum Found<T: Lendable> {
    Item(Box<Item<T>>),
    Room(Make<T>, u64),
    /// The time until one has rested.
    Nothing(Option<Duration>),
}

impl<T: Lendable> Shared<T> {
    pub(crate) fn new(make: Make<T>, options: Options) -> Shared<T> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Shared {
            number: NUMBERS.fetch_add(1, Relaxed),
            state: Mutex::new(PoolState {
                make,
                size: options.size,
                total: 0,
                idle: Vec::new(),
                waiters: VecDeque::new(),
                granted: Vec::new(),
                homes: Vec::new(),
                taken: 0,
                next_ticket: 0,
                next_kind: 2,
                process: fork::process(),
            }),
            options,
            waiting: 0.into(),
            kind: 1.into(),
            waited: 0.into(),
            refused: 0.into(),
            made: 0.into(),
            resets: 0.into(),
            restarts: 0.into(),
            abandoned: 0.into(),
        }
    }

    fn state(&self) -> fork::Held<'_, PoolState<T>> {
        let mut state = fork::lock_one_of_many(self.number as usize, &self.state);
        if state.process != fork::process() {
            state.process = fork::process();
            state.after_fork();
            self.waiting.store(0, SeqCst);
        }
        state
    }

    /// Makes domains ahead.
    pub(crate) fn warm(&self, count: usize) -> Result<(), PoolError> {
        let make = self.state().make.clone();
        for _ in 0..count {
            let item = self.make(&make, 1)?;
            let mut state = self.state();
            state.total += 1;
            state.idle.push(item);
        }
        Ok(())
    }

    fn make(&self, make: &Make<T>, kind: u64) -> Result<Box<Item<T>>, PoolError> {
        let value = make().map_err(|e| PoolError::Make(e.into()))?;
        self.made.fetch_add(1, Relaxed);
        let streak = FaultStreak::default();
        Ok(Box::new(Item {
            value,
            kind,
            streak,
        }))
    }

    pub(crate) fn add_home(&self, home: Arc<ThreadCache<T>>) {
        let mut state = self.state();
        let all = std::mem::take(&mut state.homes);
        let (forsaken, here): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|home| home.is_forsaken());
        state.homes = here;
        for home in &forsaken {
            state.taken += home.taken.load(Relaxed);
        }
        state.homes.push(home);
        drop(state);
        drop(forsaken);
    }

    pub(super) fn take_shared(&self) -> Result<Box<Item<T>>, PoolError> {
        let now = self.options.clock.now();
        let mut dropped = Vec::new();
        let mut state = self.state();
        let found = self.find(&mut state, now, &mut dropped)?;
        if let Found::Nothing(rests) = found {
            if state.size == 0 {
                return Err(PoolError::Spent);
            }
            if let Some(left) = rests.filter(|_| state.total == state.idle.len()) {
                return Err(PoolError::Resting(left));
            }
            if state.waiters.len() >= self.options.max_waiting {
                return Err(PoolError::Full(state.waiters.len()));
            }
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            state.waiters.push_back((ticket, std::thread::current()));
            self.waiting.fetch_add(1, SeqCst);
            drop(state);
            drop(dropped);
            return self.wait(ticket, rests);
        }
        drop(state);
        drop(dropped);
        self.finish(found)
    }

    /// Something to lend, or room for it. What is of an old kind goes to `dropped`, for the caller
    /// to drop without the lock.
    fn find(
        &self,
        state: &mut PoolState<T>,
        now: Duration,
        dropped: &mut Vec<Box<Item<T>>>,
    ) -> Result<Found<T>, PoolError> {
        let kind = self.kind.load(SeqCst);
        if kind == 0 {
            return Err(PoolError::Closed);
        }
        let mut rests: Option<Duration> = None;
        for i in (0..state.idle.len()).rev() {
            match self.outlook(&state.idle[i], now) {
                Outlook::Rests(left) => rests = Some(rests.map_or(left, |r| r.min(left))),
                _ => return Ok(Found::Item(state.idle.remove(i))),
            }
        }
        if state.total < state.size {
            state.total += 1;
            return Ok(Found::Room(state.make.clone(), kind));
        }
        for home in &state.homes {
            match home.slot.take() {
                Some(item) if item.kind == kind => return Ok(Found::Item(item)),
                Some(item) => {
                    dropped.push(item);
                    return Ok(Found::Room(state.make.clone(), kind));
                }
                None => {}
            }
        }
        Ok(Found::Nothing(rests))
    }

    fn outlook(&self, item: &Item<T>, now: Duration) -> Outlook {
        match item.value.domain().is_poisoned() {
            true => self.options.restart.outlook(&item.streak, now),
            false => Outlook::Now,
        }
    }

    fn finish(&self, found: Found<T>) -> Result<Box<Item<T>>, PoolError> {
        match found {
            Found::Item(item) if !item.value.domain().is_poisoned() => Ok(item),
            Found::Item(item) => match item.value.domain().reset() {
                Ok(()) if !item.value.domain().is_poisoned() => {
                    self.restarts.fetch_add(1, Relaxed);
                    Ok(item)
                }
                _ => {
                    // Its place is still ours.
                    self.abandoned.fetch_add(1, Relaxed);
                    drop(item);
                    let (make, kind) = (self.state().make.clone(), self.kind.load(SeqCst));
                    self.finish(Found::Room(make, kind))
                }
            },
            Found::Room(make, kind) => {
                /// Gives the room back unless it was used: the host's constructor may panic.
                struct Room<'a, T: Lendable>(Option<&'a Shared<T>>);
                impl<T: Lendable> Drop for Room<'_, T> {
                    fn drop(&mut self) {
                        if let Some(pool) = self.0 {
                            pool.place(None);
                        }
                    }
                }
                let mut room = Room(Some(self));
                let item = self.make(&make, kind)?;
                room.0 = None;
                Ok(item)
            }
            Found::Nothing(_) => Err(PoolError::Closed),
        }
    }

    /// Waits for what others give back.
    fn wait(&self, ticket: u64, rests: Option<Duration>) -> Result<Box<Item<T>>, PoolError> {
        self.waited.fetch_add(1, Relaxed);
        let (begin, limit) = (Instant::now(), self.options.max_wait);
        let mut rests = rests;
        let mut dropped = Vec::new();
        loop {
            let now = self.options.clock.now();
            let mut state = self.state();
            let granted = state.granted.iter().position(|(t, _)| *t == ticket);
            let mut result = match granted {
                Some(i) => match state.granted.swap_remove(i).1 {
                    Some(item) => Ok(Found::Item(item)),
                    None => Ok(Found::Room(state.make.clone(), self.kind.load(SeqCst))),
                },
                // Also those that were put into a home before that thread could see that somebody
                // waits.
                None => self.find(&mut state, now, &mut dropped),
            };
            let spent = begin.elapsed();
            match result {
                Ok(Found::Nothing(_)) if state.size == 0 => result = Err(PoolError::Spent),
                Ok(Found::Nothing(r)) if spent < limit => rests = r,
                Ok(Found::Nothing(_)) => result = Err(PoolError::TimedOut(limit)),
                _ => {}
            }
            if !matches!(result, Ok(Found::Nothing(_))) {
                // Who was granted something is not in the queue any more.
                let before = state.waiters.len();
                state.waiters.retain(|(t, _)| *t != ticket);
                if state.waiters.len() < before {
                    self.waiting.fetch_sub(1, SeqCst);
                }
                drop(state);
                drop(dropped);
                return self.finish(result?);
            }
            drop(state);
            let left = limit.saturating_sub(spent);
            std::thread::park_timeout(rests.map_or(left, |r| left.min(r)));
        }
    }

    /// Takes a domain back: cleans it, and puts it where the next one finds it.
    pub(crate) fn give_back(&self, home: &ThreadCache<T>, item: Box<Item<T>>) {
        let kind = item.kind;
        let mut rest = self.clean(item);
        if self.options.per_thread
            && !home.left.load(SeqCst)
            && let Some(item) = rest.take_if(|i| !i.value.domain().is_poisoned())
        {
            // What lay there already (of a second loan of this thread) goes to the others.
            rest = home.slot.swap(Some(item));
            let mine = rest.is_none();
            let wanted = self.waiting.load(SeqCst) != 0
                || kind != self.kind.load(SeqCst)
                || home.left.load(SeqCst);
            if mine && wanted {
                rest = home.slot.swap(None);
            }
            if rest.is_none() {
                return home.release();
            }
        }
        self.place(rest);
        home.release();
    }

    /// Resets, restarts or gives up a domain that was used. `None`: it is gone.
    fn clean(&self, mut item: Box<Item<T>>) -> Option<Box<Item<T>>> {
        if item.kind != self.kind.load(SeqCst) {
            return None;
        }
        let Item { value, streak, .. } = &mut *item;
        let domain = value.domain();
        let mut open = !domain.is_closed();
        if domain.is_poisoned() {
            let now = self.options.clock.now();
            self.options.restart.fault(streak, now);
            match self.options.restart.outlook(streak, now) {
                Outlook::Rests(_) => return Some(item),
                Outlook::Stays => {
                    let mut state = self.state();
                    state.size = state.size.saturating_sub(1);
                    drop(state);
                    open = false;
                }
                Outlook::Now => {
                    open = domain.reset().is_ok() && !domain.is_poisoned();
                    self.restarts.fetch_add(u64::from(open), Relaxed);
                }
            }
        } else if open && self.options.recycle == Recycle::Reset {
            open = domain.reset().is_ok() && !domain.is_poisoned();
            self.resets.fetch_add(u64::from(open), Relaxed);
        }
        self.abandoned.fetch_add(u64::from(!open), Relaxed);
        open.then_some(item)
    }

    /// A domain from a thread that ends.
    pub(crate) fn shelve(&self, item: Box<Item<T>>) {
        match item.kind == self.kind.load(SeqCst) {
            true => self.place(Some(item)),
            false => self.forget(item),
        }
    }

    /// Drops a domain of an old kind.
    pub(super) fn forget(&self, item: Box<Item<T>>) {
        drop(item);
        self.place(None);
    }

    /// Puts a domain, or the room that one has left, where somebody finds it: who waits longest
    /// comes first.
    fn place(&self, item: Option<Box<Item<T>>>) {
        // Dropped when the lock is free again: the host's own code goes with it.
        let mut old = None;
        let mut state = self.state();
        let kind = self.kind.load(SeqCst);
        let item = match item {
            Some(item) if item.kind != kind => {
                old = Some(item);
                None
            }
            item => item,
        };
        let usable = item
            .as_ref()
            .is_none_or(|i| !i.value.domain().is_poisoned());
        let room = item.is_some() || state.total <= state.size;
        let waiter = match usable && room && kind != 0 {
            true => state.waiters.pop_front(),
            false => None,
        };
        match (waiter, item) {
            (Some((ticket, thread)), item) => {
                self.waiting.fetch_sub(1, SeqCst);
                state.granted.push((ticket, item));
                drop(state);
                thread.unpark();
            }
            (None, Some(item)) => state.idle.push(item),
            (None, None) => {
                state.total = state.total.saturating_sub(1);
                if state.size == 0 {
                    state.waiters.iter().for_each(|w| w.1.unpark());
                }
                drop(state);
            }
        }
        drop(old);
    }

    pub(crate) fn replace(&self, make: Make<T>) -> Result<(), PoolError> {
        let kind = {
            let mut state = self.state();
            state.next_kind += 1;
            state.next_kind
        };
        let item = self.make(&make, kind)?;
        let mut state = self.state();
        if self.kind.load(SeqCst) == 0 {
            drop(state);
            return Err(PoolError::Closed);
        }
        self.kind.store(kind, SeqCst);
        let before = std::mem::replace(&mut state.make, make);
        let old = state.empty();
        // One may be too many for a moment: the others go when they come back.
        state.total += 1;
        drop(state);
        drop((old, before));
        self.place(Some(item));
        Ok(())
    }

    pub(crate) fn close(&self) {
        let mut state = self.state();
        self.kind.store(0, SeqCst);
        let old = state.empty();
        let waiters = std::mem::take(&mut state.waiters);
        self.waiting.fetch_sub(waiters.len(), SeqCst);
        drop(state);
        drop(old);
        for (_, thread) in waiters {
            thread.unpark();
        }
    }

    pub(crate) fn counters(&self) -> PoolCounters {
        let state = self.state();
        let at_home = |home: &&Arc<ThreadCache<T>>| !home.slot.is_empty();
        let homes = || state.homes.iter();
        PoolCounters {
            size: state.size,
            in_use: homes()
                .map(|h| h.held.load(SeqCst))
                .sum::<usize>()
                .saturating_sub(state.waiters.len()),
            idle: state.idle.len() + homes().filter(at_home).count(),
            waiting: state.waiters.len(),
            taken: state.taken + homes().map(|h| h.taken.load(Relaxed)).sum::<u64>(),
            waited: self.waited.load(Relaxed),
            refused: self.refused.load(Relaxed),
            made: self.made.load(Relaxed),
            resets: self.resets.load(Relaxed),
            restarts: self.restarts.load(Relaxed),
            abandoned: self.abandoned.load(Relaxed),
        }
    }
}

impl<T: Lendable> PoolState<T> {
    /// Everything that lies idle, for the caller to drop without the lock.
    fn empty(&mut self) -> Vec<Box<Item<T>>> {
        let mut all = std::mem::take(&mut self.idle);
        all.extend(self.homes.iter().filter_map(|home| home.slot.swap(None)));
        self.total = self.total.saturating_sub(all.len());
        all
    }

    /// In the child: what other threads were lent is lost, what lies at theirs is anybody's.
    fn after_fork(&mut self) {
        self.waiters.clear();
        let granted = std::mem::take(&mut self.granted);
        self.idle.extend(granted.into_iter().filter_map(|g| g.1));
        for home in self.homes.iter().filter(|home| home.is_elsewhere()) {
            self.idle.extend(home.slot.swap(None));
            home.held.store(0, SeqCst); // a loan that was moved to the thread that is left is not counted any more
            home.left.store(true, SeqCst);
        }
        let lent: usize = self.homes.iter().map(|h| h.held.load(SeqCst)).sum();
        let at_home = self.homes.iter().filter(|h| !h.slot.is_empty()).count();
        self.total = self.idle.len() + at_home + lent;
    }
}

impl<T: Lendable> Drop for Shared<T> {
    fn drop(&mut self) {
        // Threads still hold their homes.
        let state = self.state.get_mut().unwrap_or_else(|e| e.into_inner());
        for home in &state.homes {
            drop(home.slot.swap(None));
        }
    }
}
