//! A domain and its like in other processes: a reset is one decision for all of them.
//!
//! ```text
//!   leader                              every other process
//!   has the turn, nobody inside
//!   Resetting, attempt n         ───►   keeps threads out; somebody inside: n, no ───► leader gives up
//!   waits for all answers        ◄───   nobody inside: n, yes; waits
//!   memory as at first, constructors
//!   Open (or Poisoned), one more ───►   forgets what it has of its own; as the leader says
//! ```
//!
//! Invariant: common memory becomes what it was at first only while every seat that is taken has
//! answered this very attempt with yes, and each of those lets nobody in until the phase has
//! changed, or the leader has lost the turn.

use super::{Busy, DomainInner};
use crate::common::header::{CommonPhase, Header, Member, SEATS, Why};
use crate::common::ledger::CommonTally;
use crate::common::memory::{Seat, TurnOf};
use crate::sandbox_threads;
use postern_gates::lifecycle::Phase;
use postern_gates::outcome;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long the turn, and the others' answers, are waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks whether somebody is still there who would have told.
const LOOK: Duration = Duration::from_millis(10);

/// This process resets the domain of all.
pub(super) struct Lead {
    seat: Seat,
    before: CommonPhase,
    /// Memory may be other than before.
    begun: bool,
    /// Goes last.
    _turn: TurnOf,
}

impl Lead {
    /// From here on memory is changed; if this is dropped without [`Lead::end`], all are poisoned.
    pub(super) fn begins(&mut self) {
        self.begun = true;
    }

    /// The domain begins anew, in all processes.
    pub(super) fn end(self, constructed: bool) {
        let header = self.seat.header();
        header.next_generation();
        let pid = std::process::id();
        header.because(match constructed {
            true => Why::Unknown,
            false => Why::Constructors { pid },
        });
        header.set_phase(match constructed {
            true => CommonPhase::Open,
            false => CommonPhase::Poisoned,
        });
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let header = self.seat.header();
        if header.phase() != CommonPhase::Resetting {
            return;
        }
        match self.begun {
            false => header.undo_reset(self.before),
            true => {
                let pid = std::process::id();
                header.because(Why::Reset { pid });
                header.set_phase(CommonPhase::Poisoned);
            }
        }
    }
}

/// What a process says about an attempt.
fn answer(attempt: u32, yes: bool) -> u32 {
    attempt << 1 | u32::from(yes)
}

impl DomainInner {
    /// Has all other processes that have this domain let nobody in: `None` if it is this one's
    /// alone. This one lets nobody in.
    pub(super) fn lead(&self) -> Result<Option<Lead>, Busy> {
        let Some(seat) = self.instance.seat() else {
            return Ok(None);
        };
        let since = Instant::now();
        let turn = loop {
            match seat.lead() {
                Some(turn) => break turn,
                None if !seat.is_here() || since.elapsed() > PATIENCE => return Err(Busy),
                None => std::thread::sleep(LOOK / 10),
            }
        };
        let header = seat.header();
        let attempt = header.next_attempt();
        let before = header.begin_reset().ok_or(Busy)?;
        let lead = Lead {
            seat: seat.clone(),
            before,
            begun: false,
            _turn: turn,
        };
        header.tell();
        let since = Instant::now();
        loop {
            let seen = header.events();
            let others = (0..SEATS).filter(|&other| other != seat.number());
            let mut waits = false;
            for other in others.filter(|&other| seat.is_taken(other)) {
                let given = header.answer(other);
                if given == answer(attempt, false) {
                    return Err(Busy);
                }
                waits |= given != answer(attempt, true);
            }
            match waits {
                false => {
                    // What the dead have left is over, too, and closes nothing afterwards.
                    seat.bury_dead();
                    return Ok(Some(lead));
                }
                true if since.elapsed() > PATIENCE => return Err(Busy),
                true => header.await_event(seen, LOOK),
            }
        }
    }

    /// Looks at what all have agreed on, and does the same here.
    pub(crate) fn follow(self: &Arc<Self>) {
        let Some(seat) = self.instance.seat().filter(|seat| seat.is_here()) else {
            return;
        };
        // Before the phase, for a reset may end meanwhile.
        let life = self.restarts.life();
        seat.bury_dead();
        self.publish();
        self.events.follow();
        let header = seat.header();
        match header.phase() {
            CommonPhase::Poisoned => self.poison_here(life),
            CommonPhase::Resetting if !seat.leads() => {
                let attempt = header.attempt();
                if header.answer(seat.number()) >> 1 != attempt & (u32::MAX >> 1) {
                    self.step_aside(seat, attempt);
                }
            }
            _ => {}
        }
    }

    /// Tells those who look from outside what this process has done.
    pub(super) fn publish(&self) {
        let Some(seat) = self.instance.seat().filter(|seat| seat.is_here()) else {
            return;
        };
        let upcalls = self.attachments.sums();
        let counters = upcalls.counters;
        let faults = self.faults.iter().map(|count| count.load(Relaxed));
        let tally = CommonTally {
            calls: self.control.calls(),
            faults: faults.sum(),
            delivered: counters.delivered,
            coalesced: counters.coalesced,
            dropped: counters.dropped,
            skipped: counters.skipped,
            ended: counters.ended,
        };
        let ledger = seat.header().ledger();
        ledger.publish(seat.number(), (upcalls.threads, upcalls.waiting), &tally);
    }

    /// A process that had a seat has ended: where it was inside, the domain is poisoned.
    pub(crate) fn has_ended(&self, other: Member) {
        if let Some(seat) = self.instance.seat().filter(|seat| seat.is_here()) {
            let life = self.restarts.life();
            seat.has_ended(other);
            if seat.header().phase() == CommonPhase::Poisoned {
                self.poison_here(life);
            }
        }
    }

    /// Somewhere something closed it, in this [life](crate::restart::Restarts::life) of the domain
    /// or an earlier one.
    pub(crate) fn poison_here(&self, life: u64) {
        let close = || self.control.lifecycle().poison();
        if self.restarts.poisoned(life, false, close) {
            self.end_all(outcome::ANOTHER);
        }
    }

    /// Keeps threads out while another process resets the domain.
    fn step_aside(self: &Arc<Self>, seat: &Seat, attempt: u32) {
        let header = seat.header();
        let say = |yes| header.set_answer(seat.number(), answer(attempt, yes));
        if self.control.lifecycle().now() == Phase::Closed && !self.occupied() {
            return say(true);
        }
        let unchanged = self.stop_threads();
        if self.threads_run() && self.occupied_by_host() {
            return say(false);
        }
        let stopped = self.end_threads();
        let mut said = false;
        let done = self.exclusive_from(None, |inner, before| {
            if inner.any_entered() {
                return Ok(before);
            }
            said = true;
            let life = header.generation();
            say(true);
            let is_left = || Arc::strong_count(self) == 1;
            if !await_decision(header, seat, attempt, is_left) {
                return Ok(Phase::Closed);
            }
            if header.generation() == life {
                return Ok(match header.phase() {
                    CommonPhase::Poisoned => Phase::Poisoned,
                    _ => before,
                });
            }
            inner.restarts.begin();
            inner.threads.begin_anew();
            inner.sandbox.begin_anew();
            inner.system.reset();
            inner.repossessions.clear();
            inner.instance.refresh_own(&inner.instance.pin())?;
            Ok(match header.phase() {
                CommonPhase::Open => Phase::Open,
                _ => Phase::Poisoned,
            })
        });
        drop((unchanged, stopped));
        sandbox_threads::start(self);
        if done.is_err() || !said {
            say(false);
        }
    }
}

/// Waits until the attempt is over; false if this process's domain is left before that, which needs
/// no decision any more. Whoever has the memory may well say for good that it is being reset.
fn await_decision(header: &Header, seat: &Seat, attempt: u32, is_left: impl Fn() -> bool) -> bool {
    loop {
        let seen = header.events();
        if header.phase() != CommonPhase::Resetting || header.attempt() != attempt {
            return true;
        }
        if is_left() {
            return false;
        }
        if !seat.somebody_leads() {
            // Whoever takes the turn ends what was left undone.
            drop(seat.lead());
        }
        header.await_event(seen, LOOK);
    }
}
