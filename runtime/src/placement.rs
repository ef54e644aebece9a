//! The hot window: who sits there, who wants to, and the moves that follow.
//!
//! A domain that asks ([`Placement::Hot`]) comes before those that do not care
//! ([`Placement::Auto`]); among these the one with the most time inside has it. A domain is moved
//! while nobody is inside: at once if that is so now, else by the watchdog or by the next call that
//! finds it so. No call is refused because of a move; it waits for the microseconds that the move
//! takes.
//!
//! Invariant: moves are made under the one lock of this file, so at most one is under way, and none
//! at a fork. Signals are blocked meanwhile, and no code of the host's runs.

mod busiest;
mod state;

pub(crate) use busiest::Busiest;
pub use state::Placement;
pub(crate) use state::PlacementState;

use crate::domain::{Domain, DomainInner, let_go};
use crate::instance::Stays;
use crate::watchdog;
use postern_gates::call_state::CallPhase;
use postern_gates::control::Control;
use postern_gates::inside;
use postern_gates::lifecycle::Phase;
use postern_gates::mask::SignalsBlocked;
use postern_gates::pause::Pause;
use postern_gates::thread;
use postern_gates::window::{HotWindow, Window, hot_window};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// Looks of a call at a domain that is wanted elsewhere, before it enters all the same: less than a
/// millisecond.
const PATIENCE: u32 = 204;
/// Longest time between two attempts to hold back the calls of a domain that is never empty.
const LONGEST: Duration = Duration::from_secs(1);
/// Shortest.
const SHORTEST: Duration = Duration::from_millis(1);

/// Who has the hot window and who wants it.
pub(crate) struct HotWindowOwner {
    occupant: Weak<DomainInner>,
    /// Who asked for it, first come first served.
    asked: Vec<Weak<DomainInner>>,
    /// Who did not ask, and has clearly more time inside than the occupant.
    favourite: Weak<DomainInner>,
    /// When the calls of those concerned are next held back.
    again: Option<Instant>,
    pace: Duration,
}

static OWNER: Mutex<HotWindowOwner> = Mutex::new(HotWindowOwner {
    occupant: Weak::new(),
    asked: Vec::new(),
    favourite: Weak::new(),
    again: None,
    pace: SHORTEST,
});

/// Whether somebody is not where they belong.
static UNSETTLED: AtomicBool = AtomicBool::new(false);

pub(crate) fn owner() -> MutexGuard<'static, HotWindowOwner> {
    OWNER.lock().unwrap_or_else(|e| e.into_inner())
}

/// A move that was made, to be told when no lock is held.
struct Moved {
    inner: Arc<DomainInner>,
    hot: bool,
    time: Duration,
}

/// The lock, held with signals blocked; domains that were looked at live on until it is released.
struct Session {
    owner: Option<MutexGuard<'static, HotWindowOwner>>,
    signals: Option<SignalsBlocked>,
    kept: Vec<Arc<DomainInner>>,
    moved: Vec<Moved>,
    failed: Vec<(Arc<DomainInner>, String)>,
}

impl Session {
    fn open() -> Session {
        let signals = SignalsBlocked::new();
        Session::with(signals, owner())
    }

    fn try_open() -> Option<Session> {
        let signals = SignalsBlocked::new();
        let owner = OWNER.try_lock().ok()?;
        Some(Session::with(signals, owner))
    }

    fn with(signals: SignalsBlocked, owner: MutexGuard<'static, HotWindowOwner>) -> Session {
        Session {
            owner: Some(owner),
            signals: Some(signals),
            kept: Vec::new(),
            moved: Vec::new(),
            failed: Vec::new(),
        }
    }

    fn owner(&mut self) -> &mut HotWindowOwner {
        self.owner.as_mut().expect("released by drop only")
    }

    fn keep(&mut self, weak: &Weak<DomainInner>) -> Option<Arc<DomainInner>> {
        let inner = weak.upgrade()?;
        self.kept.push(inner.clone());
        Some(inner)
    }

    fn occupant(&mut self) -> Option<Arc<DomainInner>> {
        let weak = self.owner().occupant.clone();
        self.keep(&weak).filter(|inner| inner.instance.is_hot())
    }

    /// Who is to have the hot window next.
    fn wishes(&mut self) -> Option<Arc<DomainInner>> {
        let asked = std::mem::take(&mut self.owner().asked);
        let mut first = None;
        for weak in asked {
            let alive = self.keep(&weak).filter(|inner| {
                let moves = inner.place.can_move();
                inner.place.wanted() == Placement::Hot && !inner.instance.is_hot() && moves
            });
            if let Some(inner) = alive {
                first.get_or_insert(inner);
                self.owner().asked.push(weak);
            }
        }
        first.or_else(|| {
            let weak = self.owner().favourite.clone();
            self.keep(&weak)
                .filter(|inner| inner.place.wanted() == Placement::Auto && !inner.instance.is_hot())
        })
    }

    /// Makes the moves that can be made now. True if nothing is left to do.
    fn settle(&mut self) -> bool {
        let settled = self.moves();
        UNSETTLED.store(!settled, Ordering::SeqCst);
        if !settled {
            watchdog::wake();
        }
        if settled {
            let owner = self.owner();
            (owner.again, owner.pace) = (None, SHORTEST);
        }
        settled
    }

    fn moves(&mut self) -> bool {
        if !matches!(hot_window(), HotWindow::Free | HotWindow::Taken) {
            return true;
        }
        let occupant = self.occupant();
        if let Some(inner) = &occupant
            && inner.place.wanted() == Placement::Cold
            && !self.shift(inner, false)
        {
            return !inner.place.can_move();
        }
        let Some(next) = self.wishes() else {
            return true;
        };
        match occupant.filter(|inner| inner.instance.is_hot()) {
            Some(inner) if inner.place.wanted() == Placement::Hot => {
                // The first keeps it; its end brings us back.
                self.owner().favourite = Weak::new();
                return true;
            }
            Some(inner) => {
                // Who did not ask takes it from nobody before it can come in itself.
                if next.place.wanted() == Placement::Auto && next.occupied() {
                    return false;
                }
                if !self.shift(&inner, false) {
                    return !inner.place.can_move();
                }
            }
            None => {}
        }
        if !self.shift(&next, true) {
            return !next.place.can_move();
        }
        let owner = self.owner();
        owner.occupant = Arc::downgrade(&next);
        owner.favourite = Weak::new();
        // Others may have asked, too; they wait for this one's end.
        true
    }

    /// Moves a domain into the hot window, or out of it, if nobody is inside.
    fn shift(&mut self, inner: &Arc<DomainInner>, hot: bool) -> bool {
        let started = Instant::now();
        if inner.occupied() {
            return false;
        }
        // A debugger takes its breakpoints out while it knows where they are.
        let hidden = crate::symbols::hide(inner);
        let moved = inside::while_empty(&inner.control, |nobody| {
            let to = match hot {
                true => Window::take_hot(),
                false => Window::take().ok(),
            };
            let moved = match to {
                Some(window) => inner.instance.move_to(window, &inner.control, nobody),
                None => Err(Stays::Pinned),
            };
            inner.note();
            let whole = !matches!(moved, Err(Stays::Broken(_)));
            (moved, whole)
        });
        if hidden && !matches!(moved, Some(Ok(()))) {
            crate::symbols::show(inner);
        }
        match moved {
            Some(Ok(())) => {
                inner.place.moves.fetch_add(1, Ordering::Relaxed);
                self.moved.push(Moved {
                    inner: inner.clone(),
                    hot,
                    time: started.elapsed(),
                });
                true
            }
            Some(Err(Stays::Refused(error) | Stays::Broken(error))) => {
                inner.place.stuck.store(true, Ordering::Relaxed);
                self.failed.push((inner.clone(), error.to_string()));
                false
            }
            Some(Err(Stays::Pinned)) | None => false,
        }
    }

    /// Sends the next calls of those concerned to the slow path, where they make the move. Each
    /// time later than the last.
    fn hold_back(&mut self) {
        let now = Instant::now();
        let owner = self.owner();
        if owner.again.is_some_and(|again| now < again) {
            return;
        }
        owner.again = Some(now + owner.pace);
        owner.pace = (2 * owner.pace).min(LONGEST);
        for inner in [self.occupant(), self.wishes()].into_iter().flatten() {
            inner.control.lifecycle().want_move();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.owner = None;
        self.signals = None;
        // From here on the host's code may run: subscribers, and what a domain's closures own. A
        // gate may be around us, which takes no panic of theirs.
        for Moved { inner, hot, time } in self.moved.drain(..) {
            let to = if hot { "hot window" } else { "other window" };
            let micros = time.as_micros() as u64;
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let span = tracing::debug_span!("postern.move", domain = %inner.name, image = %inner.image.name, to, micros);
                span.in_scope(|| tracing::debug!("moved"));
            }));
            crate::symbols::show(&inner);
            self.kept.push(inner);
        }
        for (inner, error) in self.failed.drain(..) {
            let _ = catch_unwind(AssertUnwindSafe(
                || tracing::warn!(domain = %inner.name, %error, "the domain cannot be moved and stays where it is"),
            ));
            self.kept.push(inner);
        }
        self.kept.drain(..).for_each(let_go);
    }
}

/// The hot window, for a domain that is being made, if it may have it.
pub(crate) fn take(placement: Placement) -> Option<Window> {
    match placement {
        Placement::Cold => None,
        // Somebody else asked for it.
        Placement::Auto if UNSETTLED.load(Ordering::SeqCst) => None,
        Placement::Auto => Window::take_hot(),
        Placement::Hot => Window::take_hot().or_else(|| {
            if hot_window() != HotWindow::Taken {
                return None;
            }
            let mut session = Session::open();
            let occupant = session.occupant()?;
            if occupant.place.wanted() == Placement::Hot || !session.shift(&occupant, false) {
                return None;
            }
            Window::take_hot()
        }),
    }
}

/// Notes where a new domain has come to lie.
pub(crate) fn seated(inner: &Arc<DomainInner>) {
    if inner.instance.is_hot() {
        Session::open().owner().occupant = Arc::downgrade(inner);
    } else if inner.place.wanted() == Placement::Hot {
        ask(inner);
    }
}

fn ask(inner: &Arc<DomainInner>) {
    let mut session = Session::open();
    let owner = session.owner();
    if !owner
        .asked
        .iter()
        .any(|w| std::ptr::eq(w.as_ptr(), &**inner))
    {
        owner.asked.push(Arc::downgrade(inner));
    }
    if !session.settle() {
        session.hold_back();
    }
}

/// The domain is going: somebody may wait for that.
pub(crate) fn leaves(inner: &DomainInner) {
    if inner.instance.is_hot() && owner().asked.iter().any(|w| w.strong_count() != 0) {
        UNSETTLED.store(true, Ordering::SeqCst);
        watchdog::wake();
    }
}

/// Whether somebody is where they belong, so that [`tick`] has nothing to do.
pub(crate) fn is_settled() -> bool {
    !UNSETTLED.load(Ordering::SeqCst)
}

/// The watchdog's part.
pub(crate) fn tick() {
    if !UNSETTLED.load(Ordering::SeqCst) {
        return;
    }
    if let Some(mut session) = Session::try_open()
        && !session.settle()
    {
        session.hold_back();
    }
}

/// The part of a call that found its domain wanted elsewhere: makes the move if nobody is inside,
/// or will not be in a moment. The domain is open afterwards.
pub(crate) fn at_call(control: &Control) {
    let wanted = || control.lifecycle().now() == Phase::MovePending;
    // A call from a service may be what somebody inside waits for.
    let nested = thread::own_phase() == CallPhase::InService;
    let mut pause = Pause::default();
    while wanted() {
        if let Some(mut session) = Session::try_open() {
            session.settle();
        }
        if nested || pause.count() >= PATIENCE {
            break;
        }
        if wanted() {
            pause.again();
        }
    }
    control.lifecycle().move_settled();
}

/// Makes a domain that did not ask the next one, if the occupant did not ask either.
pub(crate) fn favour(inner: &Arc<DomainInner>) {
    let mut session = Session::open();
    session.owner().favourite = Arc::downgrade(inner);
    if !session.settle() {
        session.hold_back();
    }
}

/// The domain in the hot window.
pub fn hot_domain() -> Option<Domain> {
    let weak = owner().occupant.clone();
    weak.upgrade()
        .filter(|inner| inner.instance.is_hot())
        .map(Domain)
}

impl Domain {
    /// Whether the domain lies in the hot window.
    pub fn is_hot(&self) -> bool {
        self.0.instance.is_hot()
    }

    /// What the domain asks for: [`crate::DomainBuilder::placement`], or what was set last.
    pub fn placement(&self) -> Placement {
        self.0.place.wanted()
    }

    /// Asks for the hot window, or leaves it, from now on. The domain is moved at once if nobody is
    /// inside, or inside whoever has to make room; else when that is so. A call that comes
    /// meanwhile waits for the move; none is refused.
    pub fn set_placement(&self, placement: Placement) {
        let inner = &self.0;
        inner.place.wanted.store(placement as u8, Ordering::SeqCst);
        if placement == Placement::Hot {
            return ask(inner);
        }
        let mut session = Session::open();
        if !session.settle() {
            session.hold_back();
        }
    }
}
