//! Where the calls of a module go: to the current version; while state is handed over, nowhere yet;
//! and back to the version before when a new one faults in its first calls.
//!
//! Ordinary calls never come here: their entry lets them in. Those that a gate refuses ask
//! [`Versions::route`], and so does every call while the switches say *ask*: during a hand-over,
//! and during a probation, whose calls are counted here.

use super::versions::{Function, ModuleEvent, ModuleState, Version, Versions};
use postern_gates::entry::Entry;
use postern_gates::switch::{Destinations, Route, Switch};
use postern_image::Signature;
use postern_runtime::fork::{self, Held, ThreadId};
use postern_runtime::{Domain, Fault, Supervisor, SymbolError, inner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

impl Function {
    /// The entry of a version that has the function.
    fn entry(&self, domain: &Domain) -> Result<Entry, SymbolError> {
        inner(domain).entry_of(&self.name, &self.signature, self.c)
    }

    /// Whether a version has it.
    pub(super) fn check(&self, domain: &Domain) -> Result<(), SymbolError> {
        self.entry(domain).map(drop)
    }
}

impl ModuleState {
    /// Whether calls ask where to go.
    fn asks(&self) -> bool {
        self.previous.is_some() || self.holding.is_some()
    }

    /// Sends every function to the current version.
    pub(super) fn lead(&self) {
        for function in &self.functions {
            // A version becomes current only if it has them all.
            if let Ok(entry) = function.entry(&self.current.domain) {
                function.switch.go(entry, self.asks());
            }
        }
    }

    /// After a change of what calls have to ask for.
    pub(super) fn ask(&self) {
        for function in &self.functions {
            function.switch.ask(self.asks());
        }
    }

    /// Every version's domain.
    fn domains(&self) -> Vec<Domain> {
        let previous = self.previous.iter().map(|(version, _)| version);
        std::iter::once(&self.current)
            .chain(previous)
            .chain(&self.draining)
            .map(|version| version.domain.clone())
            .collect()
    }
}

impl Versions {
    /// The state; what a thread that a fork left behind was doing is given up.
    pub(super) fn state(&self) -> Held<'_, ModuleState> {
        let mut state = fork::lock_one_of_many(self.number, &self.state);
        let elsewhere = |id: &Option<ThreadId>| id.is_some_and(|id| !id.is_here());
        if elsewhere(&state.replacing) {
            state.replacing = None;
        }
        if elsewhere(&state.holding) {
            state.holding = None;
            inner(&state.current.domain).come_back();
            state.ask();
        }
        state
    }

    /// Makes a domain one of this module's.
    pub(super) fn adopt(self: &Arc<Self>, domain: &Domain) {
        let supervisor: Arc<dyn Supervisor> = self.clone();
        inner(domain).supervise(Arc::downgrade(&supervisor));
    }

    /// Reports an event. A panic of the host's handler stops here: the thread may be in a gate.
    pub(super) fn tell(&self, event: ModuleEvent) {
        match &event {
            ModuleEvent::RolledBack { from, to, fault } => {
                let fault = fault.as_ref().map(|f| f.kind.name());
                tracing::warn!(from, to, fault, "module rolled back");
            }
            other => tracing::info!(event = ?other, "module"),
        }
        if let Some(handler) = &self.on_event
            && catch_unwind(AssertUnwindSafe(|| handler(&event))).is_err()
        {
            tracing::error!(event = ?event, "the handler of a module's events panicked");
        }
    }

    /// The switch of a function, made at the first time.
    pub(super) fn function(
        self: &Arc<Self>,
        name: &str,
        signature: Signature,
        c: bool,
    ) -> Result<Arc<Switch>, SymbolError> {
        let mut state = self.state();
        let current = &state.current.domain;
        let known = |f: &&Function| f.name == name && f.signature == signature && f.c == c;
        if let Some(function) = state.functions.iter().find(known) {
            return Ok(function.switch.clone());
        }
        let owner: Weak<Versions> = Arc::downgrade(self);
        let entry = inner(current).entry_of(name, &signature, c)?;
        let function = Function {
            name: name.to_owned(),
            signature,
            c,
            switch: Arc::new(Switch::new(owner, entry, state.asks())),
        };
        if let Some((previous, _)) = &state.previous {
            function.check(&previous.domain)?;
        }
        let switch = function.switch.clone();
        state.functions.push(function);
        Ok(switch)
    }

    /// Lets the version before come back, if the current one is on probation (and is number
    /// `from`).
    pub(super) fn roll_back(&self, from: Option<u64>, fault: Option<&Arc<Fault>>) -> bool {
        let mut state = self.state();
        if from.is_some_and(|from| from != state.current.number) {
            return false;
        }
        let Some((previous, _)) = state.previous.take() else {
            return false;
        };
        inner(&previous.domain).come_back();
        let left = std::mem::replace(&mut state.current, previous);
        inner(&left.domain).leave_open();
        let (from, to) = (left.number, state.current.number);
        state.draining.push(left);
        state.lead();
        drop(state);
        self.rolled_back.fetch_add(1, Ordering::Relaxed);
        let fault = fault.cloned();
        self.tell(ModuleEvent::RolledBack { from, to, fault });
        true
    }

    /// Ends the probation of the current version: it stays.
    pub(super) fn confirm(&self) {
        let mut state = self.state();
        let Some((previous, _)) = state.previous.take() else {
            return;
        };
        let version = state.current.number;
        state.draining.push(previous);
        state.ask();
        drop(state);
        self.tell(ModuleEvent::Confirmed { version });
    }

    /// For a call that returned into a module whose functions lead elsewhere by now: it may have
    /// been the last one inside.
    #[cold]
    pub(crate) fn late(&self) {
        self.reap();
    }

    /// Closes the versions that everybody has left.
    pub(super) fn reap(&self) {
        let versions = std::mem::take(&mut self.state().draining);
        let (closed, inside): (Vec<_>, Vec<_>) = versions
            .into_iter()
            .partition(|version| inner(&version.domain).close_if_empty());
        if !inside.is_empty() {
            self.state().draining.extend(inside);
        }
        for Version { number, domain } in closed {
            drop(domain);
            self.tell(ModuleEvent::Drained { version: number });
        }
    }
}

impl Route for Versions {
    /// `None`: the current version itself refuses.
    fn route<'a>(&self, to: &'a Destinations, entry: &Entry) -> Option<&'a Entry> {
        let mut waited = false;
        loop {
            let mut state = self.state();
            if let Some(by) = state.holding {
                // Who is inside cannot wait: the hand-over waits for it to leave.
                let versions = state.domains();
                drop(state);
                let inside = versions.iter().any(|d| inner(d).occupied_by_me());
                if by == ThreadId::mine() || inside {
                    let real = to.real();
                    return (!std::ptr::eq(real, entry)).then_some(real);
                }
                if !std::mem::replace(&mut waited, true) {
                    self.held.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_micros(50));
                continue;
            }
            let real = to.real();
            let current = &state.current;
            // Closed by a fork, for instance; before a fault of its own closes it, `faulted` is
            // called.
            if state.previous.is_some() && current.domain.is_poisoned() {
                let from = current.number;
                drop(state);
                self.roll_back(Some(from), None);
                continue;
            }
            if std::ptr::eq(real, entry) {
                return None;
            }
            match &mut state.previous {
                Some((_, 0)) => {
                    drop(state);
                    self.confirm();
                    self.reap();
                }
                Some((_, left)) => {
                    *left -= 1;
                    return Some(real);
                }
                None => return Some(real),
            }
        }
    }
}

impl Supervisor for Versions {
    /// A fault of the current version ends its probation: the version before comes back.
    fn faulted(&self, domain: u64, fault: &Arc<Fault>) {
        let state = self.state();
        let current = state.current.domain.id() == domain;
        let number = state.current.number;
        drop(state);
        if current {
            self.roll_back(Some(number), Some(fault));
        }
    }
}
