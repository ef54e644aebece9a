//! A domain's beginnings: its constructors, and a reset.

use super::{Busy, Domain, DomainInner, let_go};
use crate::call::{self, FuncType};
use crate::common::follower::{Looks, Watch};
use crate::common::header::{CommonPhase, Why};
use crate::common::memory::TurnOf;
use crate::error::CallError;
use crate::event::elsewhere::Elsewhere;
use crate::own_threads::mine;
use crate::sandbox_threads;
use postern_gates::lifecycle::Phase;
use std::sync::Arc;

impl Domain {
    /// Back to the image's first state: private pages dropped, fault forgotten, counters kept.
    ///
    /// # Errors
    /// [`Busy`] while threads are inside; the static constructors' own error otherwise is reported
    /// as a fault of the next call.
    pub fn reset(&self) -> Result<(), Busy> {
        let span = tracing::debug_span!("postern.reset", domain = %self.0.name, image = %self.0.image.name);
        let _entered = span.enter();
        self.0.start_again(None)?;
        self.0.restarts.forget();
        Ok(())
    }
}

impl DomainInner {
    /// Runs the static constructors, if there are any. The domain is in `phase`, and they are let
    /// in.
    pub(super) fn initialise(&self, phase: Phase) -> Result<(), CallError> {
        let Some(export) = self.image.tables.export("__postern_init") else {
            return Ok(());
        };
        let nothing = <fn() as FuncType>::signature();
        let entry = self.entry(export.offset, &nothing);
        call::run(&match phase {
            Phase::Exclusive => entry.in_exclusive(),
            _ => entry,
        })
    }

    /// Runs them if no process has in this memory, and from now on does as the others do.
    pub(super) fn begin_in_common(self: &Arc<Self>, turn: TurnOf) -> Result<(), CallError> {
        let Some(seat) = self.instance.seat() else {
            return Ok(());
        };
        let header = seat.header();
        let handler = <fn(u32, u64) as FuncType>::signature();
        let tables = &self.image.tables;
        let elsewhere = Elsewhere::new(seat.memory(), seat.number(), tables, &handler);
        self.events.set_elsewhere(elsewhere);
        if header.phase() == CommonPhase::New {
            header.set_phase(CommonPhase::Constructing);
            let begun = self.initialise(Phase::Open);
            if begun.is_err() {
                let pid = std::process::id();
                header.poison(Why::Constructors { pid });
                return begun;
            }
            header.set_phase(CommonPhase::Open);
        }
        let domain = Arc::downgrade(self);
        let look = move |look: &dyn Fn(&Arc<DomainInner>)| {
            let Some(inner) = domain.upgrade() else {
                return false;
            };
            look(&inner);
            let_go(inner);
            true
        };
        let at_end = look.clone();
        let looks = Looks {
            told: move || look(&|inner| inner.follow()),
            ended: move |other| at_end(&|inner| inner.has_ended(other)),
        };
        let watch = Watch::begin(seat.memory(), seat.number(), looks);
        let Ok(watch) = watch else {
            return Err(CallError::NoWatchdog);
        };
        let _ = self.watch.set(watch);
        if header.phase() == CommonPhase::Poisoned {
            self.poison_here(self.restarts.life());
        }
        drop(turn);
        Ok(())
    }

    /// Back to the image's first state, from phase `from` or from any in which somebody may. If the
    /// static constructors fail, the domain is poisoned.
    pub(crate) fn start_again(&self, from: Option<Phase>) -> Result<(), Busy> {
        // Threads of its own end with the program, unless it is to go on. None starts meanwhile.
        let unchanged = self.stop_threads();
        if self.threads_run()
            && (mine::number_of(&self.threads).is_some() || self.occupied_by_host())
        {
            return Err(Busy);
        }
        let stopped = self.end_threads();
        let mut enters = false;
        let done = self.exclusive_from(from, |inner, before| {
            // Only where the caller could not wait for a thread that was about to.
            enters = inner.any_entered();
            if enters {
                return Ok(before);
            }
            let Ok(mut lead) = inner.lead() else {
                enters = true;
                return Ok(before);
            };
            if let Some(lead) = &mut lead {
                lead.begins();
            }
            inner.restarts.begin();
            inner.threads.begin_anew();
            inner.sandbox.begin_anew();
            inner.system.reset();
            inner.repossessions.clear();
            inner.return_my_data_stack();
            inner.instance.refresh()?;
            if let Some(code) = inner.code.get() {
                code.first_values(&inner.instance.pin());
            }
            // Constructors may start some, which enter once the domain is open.
            drop((unchanged, stopped));
            let begun = inner.initialise(Phase::Exclusive);
            if begun.is_err() {
                inner.restarts.failed();
            }
            if let Some(lead) = lead {
                lead.end(begun.is_ok());
            }
            Ok(match begun {
                Ok(()) => Phase::Open,
                Err(_) => Phase::Poisoned,
            })
        });
        // Those of the pool ended with the others.
        sandbox_threads::start(self);
        done?;
        if enters { Err(Busy) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::sample;
    use std::time::Duration;

    const SOURCE: &str = "int n; int next(void) { return ++n; }";

    /// What a thread is in that has looked whether it may enter, and has no processor then.
    #[test]
    fn a_reset_waits_for_a_thread_that_is_about_to_enter() {
        let domain = sample::domain(SOURCE).own_threads(1).build().unwrap();
        let next = domain.func::<fn() -> i32>("next").unwrap();
        assert_eq!(next.call().unwrap(), 1);
        let threads = &domain.0.threads;
        let number = threads.reserve().ok().unwrap();
        assert!(threads.enters(number, 1));
        std::thread::scope(|scope| {
            let reset = scope.spawn(|| domain.reset());
            std::thread::sleep(Duration::from_millis(1200));
            assert!(!reset.is_finished());
            threads.gone(number, false);
            reset.join().unwrap().unwrap();
        });
        assert_eq!(next.call().unwrap(), 1);
    }

    /// Whoever is inside a call does not wait for long, and then has reset nothing.
    #[test]
    fn a_reset_from_a_service_is_busy_then() {
        let domain = sample::domain(SOURCE).own_threads(1).build().unwrap();
        let next = domain.func::<fn() -> i32>("next").unwrap();
        assert_eq!(next.call().unwrap(), 1);
        let number = domain.0.threads.reserve().ok().unwrap();
        assert!(domain.0.threads.enters(number, 1));
        let to_reset = domain.clone();
        let resets = move |_: &crate::Caller<'_>| i32::from(to_reset.reset().is_ok());
        let source = "int resets(void); int call(void) { return resets(); }";
        let other = sample::domain(source).service("resets", resets);
        let other = other.deadline(None).build().unwrap();
        let call = other.func::<fn() -> i32>("call").unwrap();
        assert_eq!(call.call().unwrap(), 0);
        assert_eq!(next.call().unwrap(), 2);
        domain.0.threads.gone(number, false);
        assert_eq!(call.call().unwrap(), 1);
        assert_eq!(next.call().unwrap(), 1);
    }
}
