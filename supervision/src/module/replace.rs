//! Replacing the current version: everything that can fail is done first, then one step changes
//! where calls go.

use super::carry::carry;
use super::versions::{ModuleEvent, Version, Versions};
use postern_runtime::fork::ThreadId;
use postern_runtime::{Busy, CallError, Domain, Image, InstantiateError, SymbolError, inner};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why a version was not replaced. Nothing has changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// Another replacement of the module is going on.
    #[error("the module is being replaced by another thread; wait for it")]
    InProgress,
    /// The new domain could not be made.
    #[error("the new version could not be made: {0}")]
    Make(#[from] InstantiateError),
    /// The new image lacks a function that somebody holds, or it has other types.
    #[error("the new version does not serve a function that is in use: {0}")]
    Function(#[from] SymbolError),
    /// The new version could not be prepared.
    #[error("the new version could not be prepared: {0}")]
    Prepare(#[source] Box<dyn Error + Send + Sync>),
    /// The calls inside the old version did not end in time, so that its state could not be handed
    /// over.
    #[error(
        "calls were inside the old version for more than {0:?}, so its state could not be handed over; allow more time with drain(), or interrupt() its domain"
    )]
    Busy(Duration),
    /// The state was not handed over.
    #[error("the state was not handed over: {0}")]
    HandOver(#[source] Box<dyn Error + Send + Sync>),
}

/// A replacement that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replaced {
    /// Number of the version that is current now.
    pub version: u64,
    /// Whether the old version is closed. It is kept while the new one is on probation, and while
    /// calls are inside.
    pub drained: bool,
}

type HandOver<'a> =
    Box<dyn FnOnce(&Domain, &Domain) -> Result<(), Box<dyn Error + Send + Sync>> + 'a>;

type Prepare<'a> = Box<dyn FnOnce(&Domain) -> Result<(), Box<dyn Error + Send + Sync>> + 'a>;

/// How a version is replaced. See [`Module::replacement`](super::Module::replacement).
#[must_use = "nothing happens before apply()"]
pub struct Replacement<'a> {
    module: &'a Arc<Versions>,
    image: Image,
    prepare: Option<Prepare<'a>>,
    hand_over: Option<HandOver<'a>>,
    probation: u32,
    drain: Duration,
    end_stragglers: bool,
}

/// The new version's number, and the domain before.
type Switched = Result<(u64, Domain), ReplaceError>;

impl<'a> Replacement<'a> {
    pub(super) fn new(module: &'a Arc<Versions>, image: &Image) -> Replacement<'a> {
        Replacement {
            module,
            image: image.clone(),
            prepare: None,
            hand_over: None,
            probation: 32,
            drain: Duration::from_secs(1),
            end_stragglers: false,
        }
    }

    /// Called with the new version once it is made, while calls still go to the old one: to
    /// configure it, or to warm it up.
    pub fn prepare<E: Into<Box<dyn Error + Send + Sync>>>(
        mut self,
        prepare: impl FnOnce(&Domain) -> Result<(), E> + 'a,
    ) -> Self {
        self.prepare = Some(Box::new(|new| prepare(new).map_err(Into::into)));
        self
    }

    /// Called with the old and the new version before any call goes to the new one, to hand over
    /// state. Meanwhile the module's calls wait, and nobody is inside the old version; `hand_over`
    /// itself may call both.
    pub fn hand_over<E: Into<Box<dyn Error + Send + Sync>>>(
        mut self,
        hand_over: impl FnOnce(&Domain, &Domain) -> Result<(), E> + 'a,
    ) -> Self {
        self.hand_over = Some(Box::new(|old, new| hand_over(old, new).map_err(Into::into)));
        self
    }

    /// Hands over state by functions of the extension: the old version's `long save(void *area,
    /// size_t room)` writes it into a shared area of `room` bytes and returns its length, or a
    /// negative number to refuse; the new version's `int load(const void *area, size_t length)`
    /// takes it, and returns 0.
    pub fn carry(self, save: &str, load: &str, room: usize) -> Self {
        let (save, load) = (save.to_owned(), load.to_owned());
        self.hand_over(move |old, new| carry(old, new, save, load, room))
    }

    /// If the new version faults in its first `calls`, the old one comes back as it was left, and
    /// the fault is reported. Default:
    /// 32. Those calls cost some hundred nanoseconds more, for they are counted. 0: the old version
    ///     goes at once.
    pub fn probation(mut self, calls: u32) -> Self {
        self.probation = calls;
        self
    }

    /// How long calls inside the old version are waited for: before a hand-over, and, without
    /// probation, after the switch. Default: 1 s.
    pub fn drain(mut self, time: Duration) -> Self {
        self.drain = time;
        self
    }

    /// Calls that are inside the old version when that time is up are ended, with a fault of kind
    /// `AnotherThread`. Otherwise they finish, and the last one closes the version.
    pub fn end_stragglers(mut self) -> Self {
        self.end_stragglers = true;
        self
    }

    /// Makes the new version, and lets calls go to it.
    ///
    /// # Errors
    /// See [`ReplaceError`]; nothing has changed then.
    ///
    /// # Panics
    /// Goes on with a panic of `hand_over`, after calls go to the old version again.
    pub fn apply(mut self) -> Result<Replaced, ReplaceError> {
        match self.make_and_switch() {
            Ok((version, old)) => {
                self.module.replaced.fetch_add(1, Ordering::Relaxed);
                self.module.tell(ModuleEvent::Replaced { version });
                let drained = self.wait(old);
                Ok(Replaced { version, drained })
            }
            Err(error) => {
                self.module.refused.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%error, "module not replaced");
                Err(error)
            }
        }
    }

    fn make_and_switch(&mut self) -> Switched {
        let _turn = Turn::take(self.module)?;
        let new = (self.module.configure)(Domain::builder(&self.image)).build()?;
        self.module.adopt(&new);
        let functions = self.module.state().functions.clone();
        for function in functions {
            function.check(&new)?;
        }
        if let Some(prepare) = self.prepare.take() {
            prepare(&new).map_err(ReplaceError::Prepare)?;
            if new.is_poisoned() {
                return Err(ReplaceError::Prepare(CallError::Poisoned.into()));
            }
        }
        match self.hand_over.take() {
            Some(hand_over) => self.with_state(new, hand_over),
            None => self.switch(new),
        }
    }

    /// Hands the state over and switches, while nobody is inside the old version and nobody can
    /// enter it.
    fn with_state(&self, new: Domain, hand_over: HandOver<'_>) -> Switched {
        let _hold = Hold::take(self.module);
        let old = self.module.state().current.domain.clone();
        let begin = Instant::now();
        let mut once = Some(hand_over);
        let handed_over = loop {
            let done = inner(&old).alone(
                || {
                    let hand_over = once.take().expect("alone() runs this once");
                    hand_over(&old, &new)
                },
                // What it would do from here on would be lost.
                |handed_over| handed_over.is_ok(),
            );
            match done {
                Ok(handed_over) => break handed_over,
                Err(Busy) if old.is_closed() => break Err(CallError::Closed.into()),
                Err(Busy) if begin.elapsed() >= self.drain => {
                    return Err(ReplaceError::Busy(self.drain));
                }
                Err(Busy) => std::thread::sleep(Duration::from_micros(100)),
            }
        };
        let poisoned = || match new.is_poisoned() {
            true => Err(CallError::Poisoned.into()),
            false => Ok(()),
        };
        let switched = handed_over
            .and_then(|()| poisoned())
            .map_err(ReplaceError::HandOver)
            .and_then(|()| self.switch(new.clone()));
        if switched.is_err() {
            inner(&old).come_back();
        }
        switched
    }

    /// The step that changes where calls go.
    fn switch(&self, new: Domain) -> Switched {
        let mut state = self.module.state();
        // Functions that were asked for meanwhile.
        if let Some(error) = state.functions.iter().find_map(|f| f.check(&new).err()) {
            drop(state);
            return Err(error.into());
        }
        state.last_version += 1;
        let number = state.last_version;
        let new = Version {
            number,
            domain: new,
        };
        let old = std::mem::replace(&mut state.current, new);
        let domain = old.domain.clone();
        inner(&domain).leave_open();
        // A version that was itself on probation is the one to come back now; what was kept for it
        // is not needed.
        let before = state.previous.take();
        state.draining.extend(before.map(|(version, _)| version));
        match self.probation {
            0 => state.draining.push(old),
            calls => state.previous = Some((old, calls)),
        }
        state.holding = None;
        state.lead();
        Ok((number, domain))
    }

    /// Waits until nobody is inside the old version; whether it is closed.
    fn wait(&self, old: Domain) -> bool {
        let begin = Instant::now();
        self.module.reap();
        if self.probation != 0 {
            return false;
        }
        while !old.is_closed() {
            if begin.elapsed() >= self.drain {
                if self.end_stragglers {
                    old.close();
                    self.module.reap();
                }
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
            self.module.reap();
        }
        old.is_closed()
    }
}

/// The right to replace the current version; given back when dropped.
struct Turn<'a>(&'a Versions);

impl<'a> Turn<'a> {
    fn take(module: &'a Versions) -> Result<Turn<'a>, ReplaceError> {
        let mut state = module.state();
        if state.replacing.is_some() {
            return Err(ReplaceError::InProgress);
        }
        state.replacing = Some(ThreadId::mine());
        Ok(Turn(module))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().replacing = None;
    }
}

/// The module's calls wait until this is dropped, or a switch is made.
struct Hold<'a>(&'a Versions);

impl<'a> Hold<'a> {
    fn take(module: &'a Versions) -> Hold<'a> {
        let mut state = module.state();
        state.holding = Some(ThreadId::mine());
        state.ask();
        Hold(module)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.holding.take().is_some() {
            state.ask();
        }
    }
}
