//! Restarts: what becomes of a domain after a fault, decided by the next call that finds it closed.
//!
//! No thread and no timer are needed: a call that finds its domain poisoned takes the slow path of
//! the gate, and there a [`RestartRule`] says whether the domain begins anew (once for all who
//! wait), rests, or stays as it is. A fault is over only when every thread has left, so a restart
//! waits for them. A domain without a rule stays closed until the host resets it.

mod revive;

pub(crate) use revive::instead;

use crate::fork;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

/// A time that does not go backwards.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<dyn Fn() -> Duration + Send + Sync>>);

impl Clock {
    /// A clock of the host's.
    pub fn of(now: impl Fn() -> Duration + Send + Sync + 'static) -> Clock {
        Clock(Some(Arc::new(now)))
    }

    /// Time since some moment of the past.
    pub fn now(&self) -> Duration {
        static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        match &self.0 {
            Some(now) => now(),
            None => BEGIN.elapsed(),
        }
    }
}

/// What a rule says of a domain that is closed by a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// It may begin anew.
    Now,
    /// It rests for so long.
    Rests(Duration),
    /// It stays closed.
    Stays,
}

/// Faults in a row, as a rule counts them.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultStreak {
    /// How many.
    pub faults: u32,
    /// On the domain's clock: no new beginning before that.
    pub rests_until: Duration,
}

/// Says when a domain that a fault has closed may begin anew: `postern::RestartPolicy`. What it
/// counts is kept for it, for each domain.
pub trait RestartRule: Send + Sync + 'static {
    /// Whether domains ever begin anew by this rule.
    fn restarts(&self) -> bool;

    /// One more fault, at the time `now` of the domain's clock.
    fn fault(&self, streak: &mut FaultStreak, now: Duration);

    /// What becomes of a domain that is closed by a fault.
    fn outlook(&self, streak: &FaultStreak, now: Duration) -> Outlook;
}

/// The restarts of one domain.
pub(crate) struct Restarts {
    rule: Option<Box<dyn RestartRule>>,
    clock: Clock,
    streak: Mutex<FaultStreak>,
    /// Of the domain, for its share of the locks.
    number: usize,
    done: AtomicU64,
    /// How often the domain began; changed while nobody is inside.
    life: AtomicU64,
    /// A fault was of a kind that only the host's reset is for.
    over: AtomicBool,
}

impl Restarts {
    pub(crate) fn new(rule: Option<Box<dyn RestartRule>>, clock: Clock, number: usize) -> Restarts {
        let (streak, done) = (Mutex::default(), AtomicU64::new(0));
        Restarts {
            rule,
            clock,
            streak,
            number,
            done,
            life: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    fn streak(&self) -> fork::Held<'_, FaultStreak> {
        fork::lock_one_of_many(self.number, &self.streak)
    }

    /// Which of its lives the domain is in: the same for as long as somebody is inside.
    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    /// Another life begins; nobody is inside.
    pub(crate) fn begin(&self) {
        let _streak = self.streak();
        self.life.fetch_add(1, Ordering::SeqCst);
    }

    /// Closes the domain with `poison`, and notes the fault if that did. Nobody sees one without
    /// the other. Does nothing if the fault was in a life that is over: a call that was ended has
    /// left already when its fault is told, so the domain may have begun anew. If it `stays`, it is
    /// closed until the host resets it, whatever the rule.
    pub(crate) fn poisoned(&self, life: u64, stays: bool, poison: impl FnOnce() -> bool) -> bool {
        let now = self.clock.now();
        let mut streak = self.streak();
        if life != self.life() {
            return false;
        }
        if stays {
            self.over.store(true, Ordering::SeqCst);
        }
        let done = poison();
        if done && let Some(rule) = &self.rule {
            rule.fault(&mut streak, now);
        }
        done
    }

    /// The domain's own beginning failed.
    pub(crate) fn failed(&self) {
        self.poisoned(self.life(), false, || true);
    }

    /// The host began anew, so earlier faults do not count.
    pub(crate) fn forget(&self) {
        let mut streak = self.streak();
        self.over.store(false, Ordering::SeqCst);
        *streak = FaultStreak::default();
    }

    fn outlook(&self) -> Outlook {
        if self.over.load(Ordering::SeqCst) {
            return Outlook::Stays;
        }
        let now = self.clock.now();
        match &self.rule {
            Some(rule) => rule.outlook(&self.streak(), now),
            None => Outlook::Stays,
        }
    }

    /// Restarts so far.
    pub(crate) fn count(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}
