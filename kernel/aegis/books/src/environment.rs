//! Environments: birth, control, and the mark of death. What becomes of one that has ended is in
//! `reap.rs`, what it may have in `quota.rs`.
//!
//! A number is free, or an environment's from its birth to the last piece of its death. Who made
//! an environment outlives it: one that ends takes its children along, and its own number becomes
//! free after theirs. So a `parent` is never another environment than the maker.
//!
//! Checks of who may act for an environment are made under its lock, as the last piece of its
//! death is, so that nobody acts for another one that got the number meanwhile.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use postern_aegis_abi::call::{
    NAME_EVERYBODY, NAME_NOBODY, RIGHT_CONTROL, RIGHT_READ, RIGHT_WRITE,
};
use postern_aegis_abi::records::{claim, end, stopping};
use postern_aegis_abi::{ENVIRONMENTS, Error, ROOT};

use crate::life::meant;
use crate::quota::LEAST;
use crate::{Books, Hardware};

impl<'a, H: Hardware> Books<'a, H> {
    /// All numbers that environments can have.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u16> {
        ROOT..ENVIRONMENTS as u16
    }

    /// The environment that a call is about (0: the caller), if the caller may act for it: as
    /// itself, as its maker, as its swap server while it is submitted, or with its capability.
    /// For what follows to be true still, the environment's lock is held, or its claim.
    pub fn controls(&self, caller: u16, environment: u16, capability: u64) -> Result<u16, Error> {
        if environment == 0 || environment == caller {
            return Ok(caller);
        }
        if !self.lives(environment) {
            return Err(Error::NoEnvironment);
        }
        let state = self.environment(environment).claim.load(Acquire);
        self.allowed(caller, environment, capability, state)?;
        Ok(environment)
    }

    /// Whether somebody else may act for an environment whose claim is in this state.
    fn allowed(
        &self,
        caller: u16,
        environment: u16,
        capability: u64,
        state: u32,
    ) -> Result<(), Error> {
        let record = self.environment(environment);
        let serves = state == claim::SUBMITTED && record.server.load(Relaxed) == caller;
        let allowed = serves
            || record.parent.load(Relaxed) == caller
            || capability != 0 && self.mint(environment, 0, RIGHT_CONTROL) == capability;
        allowed.then_some(()).ok_or(Error::Denied)
    }

    /// The call: the capability for the caller's pages of a name, or for control of an
    /// environment that the caller controls without one.
    pub fn capability(
        &self,
        caller: u16,
        name: u32,
        right: u64,
        environment: u16,
    ) -> Result<u64, Error> {
        match right {
            RIGHT_READ | RIGHT_WRITE if name > NAME_EVERYBODY => Ok(self.mint(caller, name, right)),
            RIGHT_CONTROL => {
                // Its number is not used anew meanwhile.
                let _lock = self.lock_environment(environment);
                self.controls(caller, environment, 0)?;
                Ok(self.mint(environment, NAME_NOBODY, RIGHT_CONTROL))
            }
            _ => Err(Error::Argument),
        }
    }

    /// Does something to an environment that stands still meanwhile, or is the caller, who may
    /// act for it. [`Error::Busy`] if another processor runs it.
    pub(crate) fn while_claimed<T>(
        &self,
        caller: u16,
        environment: u16,
        capability: u64,
        what: impl FnOnce(u16) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // Asked before the claim is touched: who may not act for it never makes it look busy.
        let environment = self.controls(caller, environment, capability)?;
        if environment == caller {
            return what(caller);
        }
        let claim = &self.environment(environment).claim;
        let state = claim.load(Acquire);
        if !matches!(state, claim::IDLE | claim::FROZEN | claim::SUBMITTED) {
            return Err(Error::Busy);
        }
        let mine = self.hardware.processor() as u32 + 1;
        claim
            .compare_exchange(state, mine, AcqRel, Relaxed)
            .map_err(|_| Error::Busy)?;
        // Asked again: until now it could end, and another one could get its number.
        let done = self
            .allowed(caller, environment, capability, state)
            .and_then(|()| what(environment));
        claim.store(state, Release);
        done
    }

    /// The call: two pages of the caller's become a new environment, which stands still. Two of
    /// the pages reserved for the caller are reserved for it.
    pub fn create(&self, caller: u16, context: u32, table: u32) -> Result<u16, Error> {
        // Before anything is changed, the record of the last one who had the number among it.
        drop(self.lock_unbound([caller, caller], context, Some(table))?);
        self.charge_birth(caller)?;
        let born = self
            .claim_number()
            .ok_or(Error::Exhausted)
            .and_then(|number| {
                let made = self.make(caller, number, context, table);
                if made.is_err() {
                    self.environment(number).claim.store(claim::FREE, Release);
                }
                made.map(|()| number)
            });
        if born.is_err() {
            self.refund_birth(caller, [LEAST, 0, 1, 0]);
        }
        born
    }

    /// Claims a free number: the one that has been free for long, since numbers are given in turn.
    fn claim_number(&self) -> Option<u16> {
        let first = u32::from(ROOT) + 1;
        let all = ENVIRONMENTS as u32 - first;
        let births = self.machine.births.load(Relaxed);
        (0..all)
            .map(|step| (first + (births.wrapping_add(step)) % all) as u16)
            .find(|number| {
                let claim = &self.environment(*number).claim;
                let free = claim.load(Relaxed) == claim::FREE;
                free && claim
                    .compare_exchange(claim::FREE, claim::CHANGING, Acquire, Relaxed)
                    .is_ok()
            })
    }

    /// Fills in the record of a claimed number.
    fn make(&self, caller: u16, number: u16, context: u32, table: u32) -> Result<(), Error> {
        let record = self.environment(number);
        self.blank(number);
        // No birth comes twice: capabilities of the first one would be good for the second.
        let births = self
            .machine
            .births
            .fetch_update(Relaxed, Relaxed, |births| births.checked_add(1))
            .map_err(|_| Error::Exhausted)?;
        record.birth.store(births + 1, Relaxed);
        self.found(caller, number, context, table)?;
        record.parent.store(caller, Relaxed);
        record.pages_reserved.store(LEAST, Relaxed);
        record.pages_limit.store(LEAST, Relaxed);
        self.environment(caller).children.fetch_add(1, Relaxed);
        record.claim.store(claim::FROZEN, Release);
        Ok(())
    }

    /// A record in which nothing is left of who had it before.
    pub(crate) fn blank(&self, number: u16) {
        let record = self.environment(number);
        record.number.store(number, Relaxed);
        record.parent.store(0, Relaxed);
        record.root_table.store(0, Relaxed);
        record.context.store(0, Relaxed);
        record.server.store(0, Relaxed);
        record.children.store(0, Relaxed);
        record
            .first
            .store(postern_aegis_abi::records::NONE, Relaxed);
        for count in [
            &record.pages,
            &record.pages_reserved,
            &record.pages_limit,
            &record.slices,
            &record.slices_reserved,
            &record.slices_limit,
            &record.environments_limit,
            &record.excess,
            &record.forfeits,
            &record.asked_pages,
            &record.asked_slices,
            &record.clock,
            &record.ended,
            &record.holdings,
            &record.holdings_limit,
            &record.frames,
            &record.requests,
        ] {
            count.store(0, Relaxed);
        }
        for time in [
            &record.deadline,
            &record.ran,
            &record.ended_at,
            &record.waits,
            &record.alarm,
            &record.spent,
            &record.whole,
        ] {
            time.store(0, Relaxed);
        }
        record.stopping.store(stopping::NOT, Relaxed);
    }

    /// The call: ends an environment.
    pub fn destroy(&self, caller: u16, environment: u16, capability: u64) -> Result<(), Error> {
        let environment = meant(caller, environment);
        let _lock = self.lock_environment(environment);
        let environment = self.controls(caller, environment, capability)?;
        self.end(environment, end::DESTROYED, 0);
        Ok(())
    }

    /// An environment is to end, for a reason ([`end`]) and at an instruction's address. If it
    /// runs, the processor leaves it: this one when the kernel looks at
    /// [`stopping`](postern_aegis_abi::records::Environment::stopping), another one is interrupted.
    /// What it has is freed by [`Books::reap`]. The first reason stays.
    pub fn end(&self, environment: u16, reason: u32, at: u64) {
        let record = self.environment(environment);
        // The first one says why.
        let ends = self.lives(environment)
            && record
                .ended
                .compare_exchange(end::NOT, reason, AcqRel, Relaxed)
                .is_ok();
        if !ends {
            return;
        }
        record.ended_at.store(at, Relaxed);
        // Only now: whoever sees it dead looks for the reason.
        record.stopping.store(stopping::END, Release);
        self.machine.dying.fetch_add(1, AcqRel);
        self.halt(environment);
    }

    /// Takes the claim of an environment that is to end, if nobody runs it; otherwise interrupts
    /// who does.
    pub(crate) fn halt(&self, environment: u16) {
        let claim = &self.environment(environment).claim;
        for state in [claim::IDLE, claim::FROZEN, claim::SUBMITTED] {
            let _ = claim.compare_exchange(state, claim::ENDING, AcqRel, Relaxed);
        }
        let state = claim.load(Relaxed);
        if claim::RUNNING.contains(&state) && state as usize - 1 != self.hardware.processor() {
            self.hardware.interrupt(state as usize - 1);
        }
    }

    /// The call: an environment's swap server; 0 none.
    pub fn set_server(
        &self,
        caller: u16,
        environment: u16,
        server: u16,
        capability: u64,
    ) -> Result<(), Error> {
        let environment = meant(caller, environment);
        if server == environment {
            return Err(Error::Argument);
        }
        let _locks = self.lock_both(environment, server);
        self.controls(caller, environment, capability)?;
        if server != 0 && !self.lives(server) {
            return Err(Error::NoEnvironment);
        }
        self.environment(environment).server.store(server, Relaxed);
        Ok(())
    }

    /// Whether the processor that a claim names has entered an environment.
    fn runs(&self, environment: u16, claim: u32) -> bool {
        claim::RUNNING.contains(&claim)
            && self
                .machine
                .processor
                .get(claim as usize - 1)
                .is_some_and(|there| there.current.load(Acquire) == environment.into())
    }

    /// The call: an environment stands still, from its next yield on if it runs
    /// ([`Error::Again`], but to the environment itself), or may be entered again.
    pub fn set_frozen(
        &self,
        caller: u16,
        environment: u16,
        frozen: bool,
        capability: u64,
    ) -> Result<(), Error> {
        let environment = meant(caller, environment);
        let _lock = self.lock_environment(environment);
        self.controls(caller, environment, capability)?;
        let record = self.environment(environment);
        let mark = |from, to| record.stopping.compare_exchange(from, to, AcqRel, Acquire);
        let claim = |from, to| record.claim.compare_exchange(from, to, AcqRel, Acquire);
        if !frozen {
            let _ = mark(stopping::FREEZE, stopping::NOT);
            let thawed =
                claim(claim::FROZEN, claim::IDLE).or_else(|_| claim(claim::SUBMITTED, claim::IDLE));
            return match thawed {
                Ok(_) | Err(claim::IDLE) => Ok(()),
                Err(state) if self.runs(environment, state) => Ok(()),
                // Claimed for somebody's call, which gives back the claim that it found.
                Err(_) => Err(Error::Again),
            };
        }
        match claim(claim::IDLE, claim::FROZEN) {
            Ok(_) | Err(claim::FROZEN | claim::SUBMITTED) => {
                let _ = mark(stopping::FREEZE, stopping::NOT);
                Ok(())
            }
            Err(_) => {
                let _ = mark(stopping::NOT, stopping::FREEZE);
                (environment == caller).then_some(()).ok_or(Error::Again)
            }
        }
    }
}
