//! A domain's lifecycle: one word of its control block, which says whether its gates let calls in.
//!
//! ```text
//!                    open          want_move
//!        Closed ────────────► Open ─────────► MovePending          gates let calls in at Open only; at MovePending
//!      (a new block)           │  ◄─────────       │              the slow path does
//!                              │    move_settled   │
//!                              └────────┬──────────┘
//!              ┌──────────────┬─────────┴───────┬────────────────┐
//!           retire          poison        begin_exclusive    begin_move         each from Open and MovePending;
//!              ▼              ▼                 ▼                ▼              poison also from Retiring, and
//!          Retiring       Poisoned          Exclusive         Moving            begin_exclusive from Retiring and Poisoned,
//!              │                                │                │              begin_move from Poisoned
//!           readmit                      Exclusive::end      Moving::end
//!              ▼                                ▼                ▼
//!            Open                   Open, Poisoned, Retiring,   as before (MovePending: Open),
//!                                   Closed, or as before        or Poisoned
//!
//!        any ──close──► Closed, for good: a block that is used again has another generation
//! ```
//!
//! | transition | from | to | who |
//! |---|---|---|---|
//! | [`open`](Lifecycle::open) | Closed | Open | the builder, once, by its block |
//! | [`want_move`](Lifecycle::want_move) | Open | MovePending | placement, under its lock |
//! | [`move_settled`](Lifecycle::move_settled) | MovePending | Open | the call that found it so, moved or not |
//! | [`begin_move`](Lifecycle::begin_move) | Open, MovePending, Poisoned | Moving | who has seen nobody inside; for microseconds |
//! | [`Moving::end`] | Moving | as before, Open, Poisoned | the same |
//! | [`begin_exclusive`](Lifecycle::begin_exclusive) | Open, MovePending, Retiring, Poisoned | Exclusive | reset, restart, replacement, closing of what is empty |
//! | [`Exclusive::end`] | Exclusive | what its work says | the same |
//! | [`orphaned`](Lifecycle::orphaned) | Exclusive | Poisoned | a forked child, in which that thread is not |
//! | [`retire`](Lifecycle::retire) | Open, MovePending | Retiring | a module whose next version takes the calls |
//! | [`readmit`](Lifecycle::readmit) | Retiring | Open | the same, when it goes back |
//! | [`poison`](Lifecycle::poison) | Open, MovePending, Retiring | Poisoned | whoever's call ended in a fault |
//! | [`close`](Lifecycle::close) | any | Closed | the host, and the end of the last handle |
//!
//! **Orderings.** Every transition is sequentially consistent, because its other half is in threads
//! that look at this word after they have said where they are ([`super::call_state`]): a transition
//! that keeps calls out is complete only with a barrier to all threads (`machine::barrier`) and a
//! look at their call states behind it. Gates read the word by a plain load after that barrier's
//! other half. A transition that lets calls in publishes what was done before it: gates read what
//! they use of the control block after this word.

use super::atomic::Atomic;
use super::pause::Pause;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::SeqCst;

/// What a domain's gates do with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// They let calls in.
    Open = 0,
    /// A call ended in a fault: nobody enters before a reset.
    Poisoned = 1,
    /// Closed for a moment by reset or by another exclusive operation; only its owner enters, and
    /// who waits in there.
    Exclusive = 2,
    /// Closed for good.
    Closed = 3,
    /// Closed for a moment because its window is moved. Whoever wants in waits: it opens whatever
    /// happens. Mover and waiters wait for nothing that the other holds.
    Moving = 4,
    /// Open; but gates send calls to the slow path, so that one of them moves the domain's window
    /// when nobody is inside.
    MovePending = 5,
    /// Another version takes the calls: who is inside goes on, nobody else enters.
    Retiring = 6,
}

impl Phase {
    /// The phase with this number; those that there are not are closed.
    pub fn of(number: u32) -> Phase {
        match number {
            0 => Phase::Open,
            1 => Phase::Poisoned,
            2 => Phase::Exclusive,
            4 => Phase::Moving,
            5 => Phase::MovePending,
            6 => Phase::Retiring,
            _ => Phase::Closed,
        }
    }

    /// Whether calls from outside are let in, at once or by the slow path.
    pub fn admits(self) -> bool {
        matches!(self, Phase::Open | Phase::MovePending)
    }
}

/// The word. Gates compare it, with the domain's generation behind it, with what an entry expects.
#[repr(transparent)]
pub struct Lifecycle<A = AtomicU32>(A);

impl<A: Atomic<u32>> Lifecycle<A> {
    /// Closed, in a model's word.
    #[cfg(test)]
    pub(super) fn new(word: A) -> Lifecycle<A> {
        word.store(Phase::Closed as u32, SeqCst);
        Lifecycle(word)
    }

    /// The phase of this moment.
    pub fn now(&self) -> Phase {
        Phase::of(self.0.load(SeqCst))
    }

    /// The phase, once no move is under way.
    pub fn settled(&self) -> Phase {
        let mut pause = Pause::default();
        loop {
            match self.now() {
                Phase::Moving => A::wait(&mut pause),
                phase => return phase,
            }
        }
    }

    fn change(&self, from: Phase, to: Phase) -> bool {
        let done = self.0.compare_exchange(from as u32, to as u32, SeqCst);
        done.is_ok()
    }

    /// Changes a phase that `from` names to `to`, once no move is under way. Whether it did.
    fn change_settled(&self, from: &[Phase], to: Phase) -> Option<Phase> {
        loop {
            let phase = self.settled();
            if !from.contains(&phase) {
                return None;
            }
            if self.change(phase, to) {
                return Some(phase);
            }
        }
    }

    /// Closed → Open: a new domain is complete. [`super::control::Block::open`] does it once.
    pub(super) fn open(&self) {
        self.0.swap(Phase::Open as u32, SeqCst);
    }

    /// Any → Closed, for good: no transition leads out of it. Who is inside is still inside.
    pub fn close(&self) {
        self.0.swap(Phase::Closed as u32, SeqCst);
    }

    /// Open, MovePending, Retiring → Poisoned, after a fault. True if this call did it. A domain
    /// that somebody has for itself is not touched: that one says what becomes of it.
    pub fn poison(&self) -> bool {
        let from = [Phase::Open, Phase::MovePending, Phase::Retiring];
        self.change_settled(&from, Phase::Poisoned).is_some()
    }

    /// The same without waiting for anybody: for signal handlers, which may have interrupted who
    /// moves the domain, or whom the mover waits for. True if this call did it.
    #[cfg(any(test, feature = "linux"))]
    pub(crate) fn poison_now(&self) -> bool {
        let from = [Phase::Open, Phase::MovePending, Phase::Retiring];
        // More than once, because the phase may go to and fro between these.
        (0..4).any(|_| {
            from.iter()
                .any(|&phase| self.change(phase, Phase::Poisoned))
        })
    }

    /// Open, MovePending → Retiring.
    pub fn retire(&self) {
        self.change_settled(&[Phase::Open, Phase::MovePending], Phase::Retiring);
    }

    /// Retiring → Open.
    pub fn readmit(&self) {
        self.change_settled(&[Phase::Retiring], Phase::Open);
    }

    /// Open → MovePending.
    pub fn want_move(&self) {
        self.change(Phase::Open, Phase::MovePending);
    }

    /// MovePending → Open: it was moved, or will not be just now.
    pub fn move_settled(&self) {
        self.change(Phase::MovePending, Phase::Open);
    }

    /// → Exclusive, from the phase `from`, or from any but Exclusive and Closed; waits for moves.
    /// From here on nobody enters but as the slow path allows; who had before is seen inside after
    /// a barrier to all threads.
    pub fn begin_exclusive(&self, from: Option<Phase>) -> Option<Exclusive<'_, A>> {
        let any = [
            Phase::Open,
            Phase::MovePending,
            Phase::Retiring,
            Phase::Poisoned,
        ];
        let only = from.map(|from| [from]);
        let from = only.as_ref().map_or(&any[..], |only| &only[..]);
        debug_assert!(from.iter().all(|phase| any.contains(phase)));
        let before = self.change_settled(from, Phase::Exclusive)?;
        let lifecycle = self;
        Some(Exclusive { lifecycle, before })
    }

    /// Open, MovePending, Poisoned → Moving. As [`Lifecycle::begin_exclusive`]; but whoever wants
    /// in waits, so the end must come soon and wait for nobody.
    pub(crate) fn begin_move(&self) -> Option<Moving<'_, A>> {
        let before = self.now();
        let may = matches!(before, Phase::Open | Phase::MovePending | Phase::Poisoned);
        if !may || !self.change(before, Phase::Moving) {
            return None;
        }
        let lifecycle = self;
        Some(Moving { lifecycle, before })
    }

    /// Exclusive → Poisoned, in a forked child, where the thread is not that had the domain for
    /// itself.
    pub fn orphaned(&self) {
        self.change(Phase::Exclusive, Phase::Poisoned);
    }
}

/// A domain is Exclusive, and who has this says what comes then. (A domain whose holder forgets
/// that stays closed.)
#[must_use = "the domain stays closed until `end`"]
pub struct Exclusive<'a, A: Atomic<u32> = AtomicU32> {
    lifecycle: &'a Lifecycle<A>,
    before: Phase,
}

impl<A: Atomic<u32>> Exclusive<'_, A> {
    /// The phase before.
    pub fn before(&self) -> Phase {
        self.before
    }

    /// Exclusive → `to`, unless somebody closed the domain meanwhile: that is for good.
    pub fn end(self, to: Phase) {
        self.lifecycle.change(Phase::Exclusive, to);
    }

    /// Exclusive → as it was: somebody is inside.
    pub fn undo(self) {
        let before = self.before;
        self.end(before);
    }
}

/// A domain is Moving, and who has this says when it is not any more.
#[must_use = "callers wait until `end`"]
pub struct Moving<'a, A: Atomic<u32> = AtomicU32> {
    lifecycle: &'a Lifecycle<A>,
    before: Phase,
}

impl<A: Atomic<u32>> Moving<'_, A> {
    /// Moving → as it was, with nothing pending any more; Poisoned if the domain is not `whole`.
    /// Unless somebody closed it meanwhile.
    pub fn end(self, whole: bool) {
        let to = match self.before {
            _ if !whole => Phase::Poisoned,
            Phase::MovePending => Phase::Open,
            other => other,
        };
        self.lifecycle.change(Phase::Moving, to);
    }

    /// Moving → as it was: somebody is inside.
    pub fn undo(self) {
        self.lifecycle.change(Phase::Moving, self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Phase::*;

    const ALL: [Phase; 7] = [
        Open,
        Poisoned,
        Exclusive,
        Closed,
        Moving,
        MovePending,
        Retiring,
    ];

    fn at(phase: Phase) -> Lifecycle {
        Lifecycle(AtomicU32::new(phase as u32))
    }

    #[test]
    fn a_phase_has_its_number() {
        assert!(ALL.iter().all(|&phase| Phase::of(phase as u32) == phase));
        assert_eq!(Phase::of(7), Closed);
    }

    /// The table in the head of this file.
    #[test]
    fn transitions_go_where_the_table_says() {
        type Transition = (fn(&Lifecycle), &'static [Phase], Option<Phase>);
        let table: [Transition; 11] = [
            (
                |l| {
                    l.poison_now();
                },
                &[Open, MovePending, Retiring],
                Some(Poisoned),
            ),
            (|l| l.want_move(), &[Open], Some(MovePending)),
            (|l| l.move_settled(), &[MovePending], Some(Open)),
            (|l| l.retire(), &[Open, MovePending], Some(Retiring)),
            (|l| l.readmit(), &[Retiring], Some(Open)),
            (|l| l.orphaned(), &[Exclusive], Some(Poisoned)),
            (
                |l| {
                    l.poison();
                },
                &[Open, MovePending, Retiring],
                Some(Poisoned),
            ),
            (
                |l| {
                    if let Some(e) = l.begin_exclusive(None) {
                        e.end(Retiring);
                    }
                },
                &[Open, MovePending, Retiring, Poisoned],
                Some(Retiring),
            ),
            (
                |l| {
                    if let Some(e) = l.begin_exclusive(None) {
                        e.undo();
                    }
                },
                &[Open, MovePending, Retiring, Poisoned],
                None,
            ),
            (
                |l| {
                    if let Some(m) = l.begin_move() {
                        m.end(false);
                    }
                },
                &[Open, MovePending, Poisoned],
                Some(Poisoned),
            ),
            (
                |l| {
                    if let Some(m) = l.begin_move() {
                        m.undo();
                    }
                },
                &[Open, MovePending, Poisoned],
                None,
            ),
        ];
        for (transition, from, to) in table {
            // Most of them would wait for a move to end.
            for phase in ALL.into_iter().filter(|&phase| phase != Moving) {
                let lifecycle = at(phase);
                transition(&lifecycle);
                let moved = from.contains(&phase);
                assert_eq!(lifecycle.now(), to.filter(|_| moved).unwrap_or(phase));
            }
        }
    }

    #[test]
    fn nothing_leads_out_of_closed() {
        let lifecycle = at(Open);
        let exclusive = lifecycle.begin_exclusive(Some(Open)).unwrap();
        lifecycle.close();
        exclusive.end(Open);
        assert_eq!(lifecycle.now(), Closed);
        let lifecycle = at(MovePending);
        let moving = lifecycle.begin_move().unwrap();
        lifecycle.close();
        moving.end(true);
        assert_eq!(lifecycle.now(), Closed);
        assert!(lifecycle.begin_exclusive(None).is_none() && lifecycle.begin_move().is_none());
    }

    #[test]
    fn a_move_that_was_made_is_pending_no_more() {
        let lifecycle = at(MovePending);
        lifecycle.begin_move().unwrap().end(true);
        assert_eq!(lifecycle.now(), Open);
        assert!(lifecycle.begin_exclusive(Some(Poisoned)).is_none());
    }
}
