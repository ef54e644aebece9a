//! Who is inside a domain, and how they are made to leave. Whoever changes a window works in [`Inner::exclusive`]: nobody is inside
//! then, and nobody can enter.

use super::{Busy, Inner};
use crate::trusted::control::{BUSY, CLOSED, Control, MOVING, OPEN, POISONED, WANTED};
use crate::trusted::map::MapError;
use crate::trusted::{machine, outcome, shim, signal, slow, thread};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Inner {
    /// Whether any thread is inside, or waits in a service of a call of this domain.
    pub(crate) fn occupied(&self) -> bool {
        self.occupied_by(|_| true)
    }

    /// Whether one of the threads that `counts` is inside.
    fn occupied_by(&self, counts: impl Fn(&thread::Thread) -> bool) -> bool {
        let here: *const Control = &*self.control;
        thread::registry().iter().any(|(index, t)| {
            if !counts(t) {
                return false;
            }
            // Who is still entering has not looked at the state, and will find it closed.
            let inside = !matches!(
                t.mark.load(Ordering::SeqCst),
                thread::OUTSIDE | thread::ENTERING
            ) && std::ptr::eq(t.control.load(Ordering::SeqCst), here);
            inside || self.control.slot(index).waiting.load(Ordering::SeqCst) != 0
        })
    }

    /// Whether whatever was reachable for calls inside before this moment is used by none of them any more.
    pub(crate) fn nobody_inside(&self) -> bool {
        machine::barrier();
        !self.occupied()
    }

    /// Ends the calls inside a closed domain and waits until they have left. Calls of this very thread are not waited for: they
    /// end when the service that closes their domain returns.
    pub(super) fn drain(&self) {
        machine::barrier();
        let me = thread::current();
        slow::forget_left(me);
        if me.mark.load(Ordering::Relaxed) == thread::IN_SERVICE
            && me
                .innermost()
                .is_some_and(|c| std::ptr::eq(c, &*self.control))
        {
            // The window may be gone when the service returns, so it must not return into it.
            shim::end_when_back(me, outcome::ANOTHER, 0, None);
        }
        while self.occupied_by(|t| !std::ptr::eq(t, me)) {
            self.end_all(outcome::ANOTHER);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Runs `work` while nobody is inside and nobody can enter; opens the domain afterwards.
    pub(super) fn exclusive(
        &self,
        work: impl FnOnce(&Inner) -> Result<(), MapError>,
    ) -> Result<(), Busy> {
        let state = &self.control.state;
        let before = loop {
            let before = self.control.settled_state();
            if before == BUSY || before == CLOSED {
                return Err(Busy);
            }
            if state
                .compare_exchange(before, BUSY, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
            {
                break before;
            }
        };
        machine::barrier();
        slow::forget_left(thread::current());
        // Somebody may close the domain meanwhile, and that is for good.
        let put = |to| {
            let _ = state.compare_exchange(BUSY, to, Ordering::SeqCst, Ordering::SeqCst);
        };
        if self.occupied() {
            put(before);
            return Err(Busy);
        }
        let done = work(self);
        put(if done.is_ok() { OPEN } else { POISONED });
        done.map_err(|error| {
            tracing::error!(%error, domain = %self.name, "the domain stays closed");
            Busy
        })
    }

    /// Runs `work` if nobody is inside. Who wants in waits for it, so it takes microseconds and waits for nobody. The domain is
    /// afterwards as it was, or poisoned if `work` says that it is not whole.
    pub(crate) fn while_empty<R>(&self, work: impl FnOnce() -> (R, bool)) -> Option<R> {
        // Before callers wait: it looks at states itself.
        slow::forget_left(thread::current());
        if self.occupied() {
            return None;
        }
        let state = &self.control.state;
        let before = state.load(Ordering::SeqCst);
        if !matches!(before, OPEN | WANTED | POISONED) {
            return None;
        }
        state
            .compare_exchange(before, MOVING, Ordering::SeqCst, Ordering::SeqCst)
            .ok()?;
        machine::barrier();
        // Somebody may close the domain meanwhile, and that is for good.
        let put = |to| {
            let _ = state.compare_exchange(MOVING, to, Ordering::SeqCst, Ordering::SeqCst);
        };
        if self.occupied() {
            put(before);
            return None;
        }
        let (done, whole) = work();
        put(match before {
            _ if !whole => POISONED,
            WANTED => OPEN,
            other => other,
        });
        Some(done)
    }

    /// Asks every thread that is inside to end its call, also those that are just entering.
    pub(super) fn end_all(&self, kind: u32) {
        machine::barrier();
        self.end_inside(kind);
    }

    /// Asks every thread that is seen inside to end its call.
    fn end_inside(&self, kind: u32) {
        let here: *const Control = &*self.control;
        let registry = thread::registry();
        for (_, t) in registry.iter() {
            let innermost = || {
                if let Some((sequence, control)) = t.innermost_call()
                    && std::ptr::eq(control, here)
                {
                    signal::request_end(t, sequence, kind);
                }
            };
            // Before and after, because a call may begin or cease to wait meanwhile.
            innermost();
            for call in t.waiting() {
                let sequence = call.sequence.load(Ordering::SeqCst);
                if sequence != 0 && std::ptr::eq(call.control.load(Ordering::SeqCst), here) {
                    call.end(sequence, kind);
                }
            }
            innermost();
        }
    }

    /// After a fault: nobody enters any more, and who is inside is thrown out; those that are just entering by the watchdog.
    pub(crate) fn poison(&self) {
        if self.control.poison() {
            self.end_inside(outcome::ANOTHER);
        }
    }
}
