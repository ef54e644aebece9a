//! Who is inside a domain, and how they are made to leave. Whoever changes a window works in
//! [`DomainInner::exclusive`]: nobody is inside then, and nobody can enter.

use super::{Busy, Domain, DomainInner};
use crate::common::header::Why;
use crate::fault::FaultKind;
use crate::own_threads::mine;
use crate::own_threads::state::{OwnThreads, Stopped};
use postern_gates::control::Control;
use postern_gates::inside::{self, Target};
use postern_gates::lifecycle::Phase;
use postern_gates::map::MapError;
use postern_gates::{machine, outcome, signal, stale, thread};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

impl Domain {
    /// Ends every call that is inside now. Each returns a fault of kind `Interrupted`; the domain
    /// stays usable unless something else poisoned it.
    pub fn interrupt(&self) {
        self.0.end_all(outcome::INTERRUPT);
    }

    /// Lets nobody in any more, ends the calls inside, and waits until they have left: all but
    /// those of this very thread, which end when the service that closes their domain returns, and
    /// those of threads that wait for this one, since one of two services that close each other's
    /// domains must be the first to go on. These, too, end as soon as their services return.
    pub fn close(&self) {
        self.0.control.lifecycle().close();
        drop(self.0.end_threads());
        self.0.drain();
    }
}

impl DomainInner {
    /// Whether any thread is inside, or waits in a call of this domain for a service or a peer.
    pub(crate) fn occupied(&self) -> bool {
        self.occupied_by(|_| true)
    }

    /// Whether one of the threads that `counts` is inside.
    fn occupied_by(&self, counts: impl Fn(&thread::Thread) -> bool) -> bool {
        inside::occupied(Target::domain(&self.control), counts)
    }

    /// Whether whatever was reachable for calls inside before this moment is used by none of them
    /// any more.
    pub(crate) fn nobody_inside(&self) -> bool {
        machine::barrier();
        !self.occupied()
    }

    /// Ends the calls inside a closed domain and waits until they have left. Calls of this very
    /// thread are not waited for, nor those of threads that wait for it: they end when the service
    /// in which they are returns.
    pub(super) fn drain(&self) {
        // Nothing that a closed domain does counts any more, so no service returns into it.
        inside::end_mine(&self.control, outcome::ANOTHER);
        inside::wait(Target::domain(&self.control), || {
            self.end_all(outcome::ANOTHER);
        });
    }

    /// Ends the domain if something of its window is lost, and may be the host's by now: nobody
    /// enters any more, and who is inside is thrown out.
    pub(crate) fn ends_if_torn(&self) {
        if self.instance.whole().is_err() {
            tracing::error!(domain = %self.name, "closed: a part of its memory is not its own any more");
            self.control.lifecycle().close();
            self.end_all(outcome::ANOTHER);
        }
    }

    /// Whether the calling thread is inside, or waits in a service of a call of this domain.
    pub fn occupied_by_me(&self) -> bool {
        self.occupied_by(thread::is_current)
    }

    /// Runs `work` while nobody is inside and nobody else can enter; the calling thread can, if the
    /// domain is open. If `work` says so, the domain is [left](DomainInner::leave_open) then.
    pub fn alone<R>(
        &self,
        work: impl FnOnce() -> R,
        leave: impl FnOnce(&R) -> bool,
    ) -> Result<R, Busy> {
        let mut done = None;
        self.exclusive_from(None, |inner, before| {
            let open = before.admits();
            inner.control.admit_me(open);
            let result = catch_unwind(AssertUnwindSafe(work));
            let leave = result.as_ref().is_ok_and(leave);
            done = Some(result);
            Ok(match inner.control.admit_nobody() {
                // A fault of the thread's own took the domain away from it.
                false if open => Phase::Poisoned,
                _ if open && leave => Phase::Retiring,
                _ => before,
            })
        })?;
        match done {
            Some(Ok(result)) => Ok(result),
            Some(Err(panic)) => resume_unwind(panic),
            None => Err(Busy),
        }
    }

    /// Lets nobody in any more; who is inside goes on.
    pub fn leave_open(&self) {
        self.control.lifecycle().retire();
    }

    /// Lets everybody in again after [`DomainInner::leave_open`].
    pub fn come_back(&self) {
        self.control.lifecycle().readmit();
    }

    /// Closes the domain for good if nobody is inside; otherwise changes nothing. Whether it is
    /// closed.
    pub fn close_if_empty(&self) -> bool {
        let _ = self.exclusive_from(None, |_, _| Ok(Phase::Closed));
        self.control.lifecycle().now() == Phase::Closed
    }

    /// Runs `work` while nobody is inside and nobody can enter, from phase `from` or from any but
    /// closed, which it is told; leaves the domain in the phase that `work` says.
    pub(crate) fn exclusive_from(
        &self,
        from: Option<Phase>,
        work: impl FnOnce(&DomainInner, Phase) -> Result<Phase, MapError>,
    ) -> Result<(), Busy> {
        let exclusive = self.control.lifecycle().begin_exclusive(from).ok_or(Busy)?;
        stale::forget_left();
        if inside::anybody(&self.control) {
            exclusive.undo();
            return Err(Busy);
        }
        let before = exclusive.before();
        let done = catch_unwind(AssertUnwindSafe(|| work(self, before)));
        exclusive.end(match &done {
            Ok(Ok(to)) => *to,
            _ => Phase::Poisoned,
        });
        match done {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                tracing::error!(%error, domain = %self.name, "the domain stays closed");
                Err(Busy)
            }
            // A service that the constructors called: its panic goes on in the host.
            Err(panic) => resume_unwind(panic),
        }
    }

    /// The lists of the domain's own threads: those that its extension started, and those of its
    /// pool.
    fn lists(&self) -> [&OwnThreads; 2] {
        [&self.threads, &self.sandbox.threads]
    }

    /// None of its own threads begins for as long as what is returned is there.
    pub(crate) fn stop_threads(&self) -> [Option<Stopped<'_>>; 2] {
        self.lists().map(|threads| threads.stop())
    }

    /// Whether there are any.
    pub(crate) fn threads_run(&self) -> bool {
        self.lists().iter().any(|threads| threads.run())
    }

    /// Whether one is inside or about to enter.
    pub(crate) fn any_entered(&self) -> bool {
        self.lists().iter().any(|threads| threads.any_entered())
    }

    /// Ends the domain's own threads, those of one list after those of the other.
    pub(crate) fn end_threads(&self) -> [Option<Stopped<'_>>; 2] {
        self.lists().map(|threads| self.end_list(threads))
    }

    /// The same, of those of its pool only.
    pub(crate) fn end_pool(&self) -> Option<Stopped<'_>> {
        self.end_list(&self.sandbox.threads)
    }

    /// Ends the threads of a list, and waits until they are gone: until they have
    /// left the domain, and then a moment more, because on their way out code of the host's may
    /// run, which may wait for the caller. That no thread does which another waits for, either: one
    /// that is inside a call, or is an extension's itself, waits a moment at most. None starts
    /// while what is returned is there.
    fn end_list<'a>(&self, threads: &'a OwnThreads) -> Option<Stopped<'a>> {
        const MOMENT: Duration = Duration::from_secs(1);
        const LOOK: Duration = Duration::from_millis(1);
        let stopped = threads.stop()?;
        stopped.tell_all();
        let me = mine::number_of(&self.threads);
        let bounded = mine::is_own() || stale::nesting() > 0;
        let mut outside_since = None;
        while threads.run() {
            let seen = threads.changes();
            self.sandbox.wake();
            self.end_these(threads, outcome::EXIT);
            if me.is_some() {
                return Some(stopped);
            }
            // One that is about to enter has not left, however long it takes to begin.
            if !bounded && threads.any_entered() {
                outside_since = None;
            } else if outside_since.get_or_insert_with(Instant::now).elapsed() > MOMENT {
                break;
            }
            threads.await_change(seen, LOOK);
        }
        threads.join_finished();
        Some(stopped)
    }

    /// Whether a thread is inside that is not the domain's own.
    pub(super) fn occupied_by_host(&self) -> bool {
        let changes = || self.lists().map(|threads| threads.changes());
        loop {
            let seen = changes();
            let tids = self.lists().map(|threads| threads.tids()).concat();
            let occupied = self.occupied_by(|t| !tids.contains(&t.tid()));
            // Otherwise it may be one that began meanwhile.
            if !occupied || changes() == seen {
                return occupied;
            }
        }
    }

    /// Asks the threads of a list to end their calls.
    fn end_these(&self, threads: &OwnThreads, kind: u32) {
        let tids = threads.tids();
        machine::barrier();
        self.end_inside(kind, |t| tids.contains(&t.tid()));
    }

    /// Asks every thread that is inside to end its call, also those that are just entering.
    pub(crate) fn end_all(&self, kind: u32) {
        machine::barrier();
        self.end_inside(kind, |_| true);
    }

    /// Asks every thread that `counts` and is seen inside to end its call.
    fn end_inside(&self, kind: u32, counts: impl Fn(&thread::Thread) -> bool) {
        let here: &Control = &self.control;
        let registry = thread::registry();
        for (_, t) in registry.iter().filter(|(_, t)| counts(t)) {
            let innermost = || {
                if let Some((sequence, control)) = t.innermost_call()
                    && std::ptr::eq(control, here)
                {
                    signal::request_end(t, sequence, kind);
                }
            };
            // Before and after, because a call may begin or cease to wait meanwhile.
            innermost();
            for (sequence, call) in t.waiting() {
                if call.is_of(here) {
                    call.end(sequence, kind);
                }
            }
            innermost();
        }
    }

    /// After a fault in this [life](crate::restart::Restarts::life) of the domain: nobody enters
    /// any more, and who is inside is thrown out; those that are just entering by the watchdog. If
    /// it `stays` closed, only the host opens it again. With `closed` it was closed when the fault
    /// happened.
    pub(crate) fn poison(&self, life: u64, stays: bool, closed: bool, kind: FaultKind) {
        let close = || {
            // A thread that has the domain for itself: `alone` closes it.
            self.control.admit_nobody();
            self.control.lifecycle().poison() || closed
        };
        if self.restarts.poisoned(life, stays, close) {
            if let Some(seat) = self.instance.seat().filter(|seat| seat.is_here()) {
                let (pid, kind) = (std::process::id(), kind as u32);
                seat.header().poison(Why::Fault { pid, kind });
            }
            self.end_inside(outcome::ANOTHER, |_| true);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fault::FaultKind;
    use crate::sample::{self, AtOnce};

    #[test]
    fn a_fault_of_a_life_that_is_over_closes_nothing() {
        for stays in [true, false] {
            let builder = sample::domain("int n; int next(void) { return ++n; }");
            let domain = builder.restart(AtOnce).build().unwrap();
            let next = domain.func::<fn() -> i32>("next").unwrap();
            assert_eq!(next.call().unwrap(), 1);
            let inner = &domain.0;
            let before = inner.restarts.life();
            domain.reset().unwrap();
            // Told late, after its thread had left and the host began anew.
            inner.poison(before, stays, false, FaultKind::Trap);
            assert!(!domain.is_poisoned());
            assert_eq!((next.call().unwrap(), next.call().unwrap()), (1, 2));
            inner.poison(inner.restarts.life(), stays, false, FaultKind::Trap);
            assert_eq!(next.call().is_err(), stays);
        }
    }
}
