//! Restart policies: what becomes of a domain after a fault, decided by the next call that finds it closed.
//!
//! No thread and no timer are needed: a call that finds its domain poisoned takes the slow path of the gate, and there the policy
//! says whether the domain begins anew (once for all who wait), rests, or stays as it is. A fault is over only when every thread
//! has left, so a restart waits for them.

use crate::domain::{self, Inner};
use crate::fork;
use postern_gates::control::Entry;
use postern_gates::lifecycle::Phase;
use postern_gates::outcome::Refusal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

/// What happens after a fault.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RestartPolicy {
    /// The domain stays closed until the host resets it.
    #[default]
    Never,
    /// The next call finds the domain in the image's first state.
    Immediate,
    /// As `Immediate`, but calls are refused for a while, longer after each fault.
    BackOff(BackOff),
}

/// How long a domain rests after faults in a row. A domain that goes without a fault for as long as `most`, after its rest, begins
/// at `first` again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackOff {
    /// Rest after the first fault. Default: 100 ms.
    pub first: Duration,
    /// By how much each further rest is longer. Default: 2.
    pub factor: u32,
    /// Longest rest. Default: 30 s.
    pub most: Duration,
    /// After so many faults in a row the domain stays closed until the host resets it. Default: never.
    pub give_up_after: Option<u32>,
}

impl Default for BackOff {
    fn default() -> Self {
        BackOff {
            first: Duration::from_millis(100),
            factor: 2,
            most: Duration::from_secs(30),
            give_up_after: None,
        }
    }
}

impl BackOff {
    /// The rest after the fault that is number `in_row`, from 1.
    fn rest(&self, in_row: u32) -> Duration {
        let factor = self.factor.saturating_pow(in_row.saturating_sub(1));
        self.first.saturating_mul(factor).min(self.most)
    }
}

/// A time that does not go backwards.
#[derive(Clone, Default)]
pub(crate) struct Clock(Option<Arc<dyn Fn() -> Duration + Send + Sync>>);

impl Clock {
    pub(crate) fn of(now: impl Fn() -> Duration + Send + Sync + 'static) -> Clock {
        Clock(Some(Arc::new(now)))
    }

    /// Time since some moment of the past.
    pub(crate) fn now(&self) -> Duration {
        static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        match &self.0 {
            Some(now) => now(),
            None => BEGIN.elapsed(),
        }
    }
}

/// What the policy says of a domain that is closed by a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// It may begin anew.
    Now,
    /// It rests for so long.
    Rests(Duration),
    /// It stays closed.
    Stays,
}

/// Faults in a row, under one policy.
#[derive(Debug, Default)]
pub(crate) struct Row {
    faults: u32,
    rests_until: Duration,
}

impl Row {
    /// One more fault.
    pub(crate) fn fault(&mut self, policy: &RestartPolicy, now: Duration) {
        let RestartPolicy::BackOff(back_off) = policy else {
            return;
        };
        if now >= self.rests_until.saturating_add(back_off.most) {
            self.faults = 0;
        }
        self.faults = self.faults.saturating_add(1);
        self.rests_until = now.saturating_add(back_off.rest(self.faults));
    }

    pub(crate) fn outlook(&self, policy: &RestartPolicy, now: Duration) -> Outlook {
        match policy {
            RestartPolicy::Never => Outlook::Stays,
            RestartPolicy::Immediate => Outlook::Now,
            RestartPolicy::BackOff(b) if b.give_up_after.is_some_and(|n| self.faults >= n) => {
                Outlook::Stays
            }
            RestartPolicy::BackOff(_) => match self.rests_until.saturating_sub(now) {
                Duration::ZERO => Outlook::Now,
                left => Outlook::Rests(left),
            },
        }
    }
}

/// The restarts of one domain.
pub(crate) struct Restarts {
    policy: RestartPolicy,
    clock: Clock,
    row: Mutex<Row>,
    /// Of the domain, for its share of the locks.
    number: usize,
    done: AtomicU64,
    /// How often the domain began; changed while nobody is inside.
    life: AtomicU64,
    /// A fault was of a kind that only the host's reset is for.
    over: AtomicBool,
}

impl Restarts {
    pub(crate) fn new(policy: RestartPolicy, clock: Clock, number: usize) -> Restarts {
        let (row, done) = (Mutex::default(), AtomicU64::new(0));
        Restarts {
            policy,
            clock,
            row,
            number,
            done,
            life: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    fn row(&self) -> fork::Held<'_, Row> {
        fork::lock_one_of_many(self.number, &self.row)
    }

    /// Which of its lives the domain is in: the same for as long as somebody is inside.
    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    /// Another life begins; nobody is inside.
    pub(crate) fn begin(&self) {
        let _row = self.row();
        self.life.fetch_add(1, Ordering::SeqCst);
    }

    /// Closes the domain with `poison`, and notes the fault if that did. Nobody sees one without the other. Does nothing if the fault
    /// was in a life that is over: a call that was ended has left already when its fault is told, so the domain may have begun anew.
    /// If it `stays`, it is closed until the host resets it, whatever the policy.
    pub(crate) fn poisoned(&self, life: u64, stays: bool, poison: impl FnOnce() -> bool) -> bool {
        let now = self.clock.now();
        let mut row = self.row();
        if life != self.life() {
            return false;
        }
        if stays {
            self.over.store(true, Ordering::SeqCst);
        }
        let done = poison();
        if done {
            row.fault(&self.policy, now);
        }
        done
    }

    /// The domain's own beginning failed.
    pub(crate) fn failed(&self) {
        self.poisoned(self.life(), false, || true);
    }

    /// The host began anew, so earlier faults do not count.
    pub(crate) fn forget(&self) {
        let mut row = self.row();
        self.over.store(false, Ordering::SeqCst);
        *row = Row::default();
    }

    fn outlook(&self) -> Outlook {
        if self.over.load(Ordering::SeqCst) {
            return Outlook::Stays;
        }
        let now = self.clock.now();
        self.row().outlook(&self.policy, now)
    }

    /// Restarts so far.
    pub(crate) fn count(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// A call of `entry` was refused for this reason: another entry to try, perhaps the same one, or the reason that stays.
pub(crate) fn instead(entry: &Entry, refusal: Refusal) -> Result<&Entry, Refusal> {
    if !matches!(refusal, Refusal::Poisoned | Refusal::Busy | Refusal::Closed) {
        return Err(refusal);
    }
    if let Some(switch) = entry.switch()
        && let Some(module) = switch.owner.upgrade()
        && let Some(other) = module.route(switch, entry)
    {
        return Ok(other);
    }
    if refusal == Refusal::Closed {
        return Err(refusal);
    }
    let inner = domain::of(entry.control()).ok_or(refusal)?;
    inner.revive(refusal).map(|()| entry)
}

impl Inner {
    /// Opens the domain as its policy says, or says why not.
    fn revive(&self, refusal: Refusal) -> Result<(), Refusal> {
        /// How long a call waits for others to leave the domain, or to open it.
        const PATIENCE: Duration = Duration::from_millis(100);
        if self.restarts.policy == RestartPolicy::Never || self.occupied_by_me() {
            return Err(refusal);
        }
        let begin = Instant::now();
        loop {
            match self.control.lifecycle.settled() {
                Phase::Open | Phase::MovePending => return Ok(()),
                Phase::Poisoned => match self.restarts.outlook() {
                    Outlook::Rests(left) => return Err(Refusal::Resting(left)),
                    Outlook::Stays => return Err(Refusal::Poisoned),
                    Outlook::Now if self.start_again(Some(Phase::Poisoned)).is_ok() => {
                        self.restarts.done.fetch_add(1, Ordering::Relaxed);
                        tracing::info!(domain = %self.name, "restarted after a fault");
                        // The constructors may have failed.
                        return match self.control.lifecycle.settled() {
                            Phase::Poisoned => Err(Refusal::Poisoned),
                            _ => Ok(()),
                        };
                    }
                    Outlook::Now => {}
                },
                Phase::Exclusive => {}
                _ => return Err(refusal),
            }
            if begin.elapsed() > PATIENCE {
                return Err(Refusal::Busy);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_to_the_most_and_calm_forgets() {
        let ms = Duration::from_millis;
        let policy = RestartPolicy::BackOff(BackOff {
            first: ms(10),
            factor: 3,
            most: ms(100),
            give_up_after: Some(6),
        });
        let (mut row, mut now) = (Row::default(), ms(1_000_000));
        for rest in [10, 30, 90, 100, 100] {
            row.fault(&policy, now);
            assert_eq!(row.outlook(&policy, now), Outlook::Rests(ms(rest)));
            now += ms(rest);
            assert_eq!(row.outlook(&policy, now), Outlook::Now);
        }
        // Calm for as long as the longest rest.
        now += ms(100);
        row.fault(&policy, now);
        assert_eq!(row.outlook(&policy, now), Outlook::Rests(ms(10)));
        for _ in 0..5 {
            row.fault(&policy, now);
        }
        assert_eq!(row.outlook(&policy, now + ms(500)), Outlook::Stays);
        assert_eq!(row.outlook(&RestartPolicy::Immediate, now), Outlook::Now);
        assert_eq!(row.outlook(&RestartPolicy::Never, now), Outlook::Stays);
    }

    #[test]
    fn no_policy_overflows() {
        let policy = RestartPolicy::BackOff(BackOff {
            first: Duration::MAX,
            factor: u32::MAX,
            most: Duration::MAX,
            give_up_after: None,
        });
        let mut row = Row::default();
        for _ in 0..3 {
            row.fault(&policy, Duration::MAX);
        }
        assert_eq!(row.outlook(&policy, Duration::MAX), Outlook::Now);
    }
}
