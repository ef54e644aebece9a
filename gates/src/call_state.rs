//! Where a thread is with its innermost call: one word of the thread's state, which the gates write
//! with plain stores.
//!
//! ```text
//!                                   ┌───────────────────────── abort, or the full gate's way out ──► Leaving ──┐
//!             entry gate, plan      │ publish                                                                  │
//!   Outside ───────────────► Entering ───────► Inside ───────── service gate ─────────► InService              │
//!      ▲                      ▲ ▲  ▲            │  │ ▲ ◄─────── its way back ──────────  │  ▲                 │
//!      │                      │ │  └─ peer ─────┘  │ │                                   │  │                 │
//!      │                      │ └──── gate: there and back                               │  │                 │
//!      │                      └───────── a service calls an extension (push) ────────────┘  │                 │
//!      │                                                                                    │                 │
//!      └───── the fast path's return; `leave` of the outermost call ──┬── `leave` of any other (pop, by Entering)
//!                                                                     └────────────────────────────────────────┘
//! ```
//!
//! What a phase promises to who sees it:
//!
//! | phase | the call's number, domain and frame | a fault here | an abort signal here |
//! |---|---|---|---|
//! | Outside | are a former call's | the host's | the call is over |
//! | Entering | are being written | the host's | is put off |
//! | Inside | are the innermost call's | the extension's, in text or an abortable part of the gates | ends the call there |
//! | InService | are the innermost call's | the host's | ends it when the service returns |
//! | Leaving | are the innermost call's | the host's | the call is over |
//!
//! **Upcalls** (`upcall.rs`) come between any two instructions: from whatever phase to Entering, on
//! to a call of their own, by Entering back to that phase. Who sees the phase sees the innermost
//! call's, as always; the interrupted one waits, if it was there to be seen.
//!
//! **Orderings.** Only the thread itself writes the word. What it has written before shows to
//! others in the order of its stores: the gates' are plain (on this processor as good as
//! `Release`), and Rust's are `Release`. Who reads another thread's word reads it `SeqCst`. The one
//! place where a store must be seen before a load is made is between [`CallState::publish`] and the
//! look at the domain's [lifecycle](super::lifecycle): Rust has a fence there, the gates have none,
//! and whoever keeps calls out sends a barrier to all threads between their transition and their
//! look at this word.

use super::atomic::Atomic;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

/// Where a thread is with its innermost call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CallPhase {
    /// In no call.
    Outside = 0,
    /// In an extension, or in a gate with `frame` valid.
    Inside = 1,
    /// In a service that an extension called.
    InService = 2,
    /// The call is being left.
    Leaving = 3,
    /// A gate or the slow path is writing the state of a new call, or of one that waited; whoever
    /// was inside still is.
    Entering = 4,
}

impl CallPhase {
    /// The phase with this number. There are no others; whoever finds one keeps away.
    pub fn of(number: u32) -> CallPhase {
        match number {
            0 => CallPhase::Outside,
            1 => CallPhase::Inside,
            2 => CallPhase::InService,
            3 => CallPhase::Leaving,
            _ => CallPhase::Entering,
        }
    }

    /// Whether number and domain beside it are those of one call.
    pub fn is_settled(self) -> bool {
        !matches!(self, CallPhase::Outside | CallPhase::Entering)
    }
}

/// The word.
#[repr(transparent)]
pub struct CallState<A = AtomicU32>(A);

impl<A: Atomic<u32>> CallState<A> {
    /// Outside, in a model's word.
    #[cfg(test)]
    pub(super) fn new(word: A) -> CallState<A> {
        word.store(CallPhase::Outside as u32, SeqCst);
        CallState(word)
    }

    /// For the thread itself, and its signal handlers.
    pub fn own(&self) -> CallPhase {
        CallPhase::of(self.0.load(Relaxed))
    }

    /// For other threads: what they read after it is no older.
    pub fn seen(&self) -> CallPhase {
        CallPhase::of(self.0.load(SeqCst))
    }

    /// Outside, InService (a new call), Inside, InService, Leaving (a waiting call comes back) →
    /// Entering: from here on the thread's state is written.
    pub(crate) fn begin_entering(&self) {
        self.0.store(CallPhase::Entering as u32, Release);
    }

    /// Entering → Inside. The thread's state is complete before, and what it reads of its domain's
    /// lifecycle after this is no older: with the fence, either this sees that the domain has
    /// closed, or who closed it sees this.
    pub(crate) fn publish(&self) {
        self.0.store(CallPhase::Inside as u32, Release);
        A::fence(SeqCst);
    }

    /// The same as gates do it: without the fence.
    #[cfg(test)]
    pub(crate) fn publish_without_fence(&self) {
        self.0.store(CallPhase::Inside as u32, Release);
    }

    /// Entering → InService: a call that waited is the innermost again.
    pub(crate) fn back_in_service(&self) {
        self.0.store(CallPhase::InService as u32, Release);
    }

    /// Inside → InService, in the handler of a signal: what follows is a service's
    /// ([`super::safe_point`]).
    #[cfg(feature = "linux")]
    pub(crate) fn begin_service(&self) {
        self.0.store(CallPhase::InService as u32, Release);
    }

    /// InService → Inside: that is over. All signals are blocked until the thread is in text.
    #[cfg(feature = "linux")]
    pub(crate) fn end_service(&self) {
        self.0.store(CallPhase::Inside as u32, Release);
    }

    /// Entering → the phase in which an upcall found the thread.
    #[cfg(any(test, feature = "linux"))]
    pub(crate) fn back_to(&self, phase: CallPhase) {
        self.0.store(phase as u32, Release);
    }

    /// Inside, InService, Leaving → Outside. Whoever sees that sees all that the call did.
    pub(crate) fn leave(&self) {
        self.0.store(CallPhase::Outside as u32, Release);
    }

    /// Any → Outside, of a thread that is not in the registry any more: nobody looks.
    pub(crate) fn forget(&self) {
        self.0.store(CallPhase::Outside as u32, SeqCst);
    }
}

/// What others read of a thread that goes on meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallWord {
    /// `nested`: at least the number of the last nested call; and how many upcalls have begun or
    /// ended.
    Nested,
    /// `sequence`: the innermost call's number.
    Sequence,
    /// `call_state`
    State,
    /// `control`: the innermost call's domain.
    Control,
}

fn phase(read: &mut impl FnMut(CallWord) -> u64) -> CallPhase {
    CallPhase::of(read(CallWord::State) as u32)
}

/// Number and domain of one and the same call, which was the innermost one at some moment of the
/// reading, by a function that reads the words of a thread, which goes on meanwhile.
///
/// When a call begins, the thread writes Entering, number, domain, Inside, in this order, and a new
/// `nested` before that if another call will wait for it. When a waiting call becomes the innermost
/// again, it writes Entering, a new `nested`, number and domain, and the phase. Only then do
/// numbers come back.
///
/// So, `nested` being the same at both ends, a return can have written number and domain in between
/// only if Entering was written before; then it had done with them when the phase was read as
/// another. From there on calls only began, each with a number that there never was: if the number
/// is the same at last, it was all that time, and so was the domain, which is written after it.
pub fn one_call(mut read: impl FnMut(CallWord) -> u64) -> Option<(u64, u64)> {
    let nested = read(CallWord::Nested);
    let sequence = read(CallWord::Sequence);
    if !phase(&mut read).is_settled() {
        return None;
    }
    let control = read(CallWord::Control);
    let same = read(CallWord::Sequence) == sequence && read(CallWord::Nested) == nested;
    same.then_some((sequence, control))
}

/// Whether a thread is inside something: waits there in a call (`waits`), or is in its innermost
/// call (of which `meant` looks at what the phase does not say); with `services`, only in a service
/// of that call. True also of one that leaves, or begins to wait, meanwhile.
///
/// Who begins to wait between the two looks has begun a call, and is looked at again. Who ceases to
/// wait is inside. Who is still entering has not looked at the domain's lifecycle, and will find it
/// closed.
pub fn holds(
    mut read: impl FnMut(CallWord) -> u64,
    waits: impl Fn() -> bool,
    meant: impl Fn() -> bool,
    services: bool,
) -> bool {
    loop {
        let begun = read(CallWord::Nested);
        let waiting = waits();
        let phase = phase(&mut read);
        let marked = phase == CallPhase::InService || !services && phase.is_settled();
        if waiting || marked && meant() {
            return true;
        }
        if read(CallWord::Nested) == begun {
            return false;
        }
    }
}

/// What an abort signal finds: the thread's own phase and innermost call, and the call that
/// somebody wants ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupted {
    /// The thread's phase when the signal came.
    pub phase: CallPhase,
    /// Number of the innermost call.
    pub sequence: u64,
    /// Number of the call that is to end, or 0.
    pub wanted: u64,
    /// That call waits for another one.
    pub waits: bool,
    /// The interrupted instruction is one at which the innermost call can be ended: text, or an
    /// abortable part of the gates.
    pub abortable: bool,
}

/// What the abort signal's handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnAbort {
    /// Leaves the wish in the waiting call's record: whoever pops that looks there.
    ToRecord,
    /// Lets the service gate end the call when the service returns.
    WhenServiceReturns,
    /// Ends the call here.
    Now,
    /// Nothing: the wish is for a call that is over, or it comes again. The signal may be for
    /// another copy of this library.
    Nothing,
}

impl Interrupted {
    /// Decides. A wish is for one number, and no number comes twice in a thread, so it ends that
    /// call or none.
    pub fn decide(&self) -> OnAbort {
        match self.phase {
            _ if self.wanted == 0 => OnAbort::Nothing,
            // It began to wait meanwhile, or is just about to, or to cease.
            _ if self.waits => OnAbort::ToRecord,
            _ if self.wanted != self.sequence => OnAbort::Nothing,
            CallPhase::InService => OnAbort::WhenServiceReturns,
            CallPhase::Inside if self.abortable => OnAbort::Now,
            // Inside, elsewhere: a signal handler of the host interrupted the extension. The
            // watchdog will remind.
            _ => OnAbort::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CallPhase::*;

    #[test]
    fn a_phase_has_its_number() {
        for phase in [Outside, Inside, InService, Leaving, Entering] {
            assert_eq!(CallPhase::of(phase as u32), phase);
        }
    }

    #[test]
    fn a_wish_ends_the_call_whose_number_it_has() {
        let found = |phase, wanted, abortable| Interrupted {
            phase,
            sequence: 7,
            wanted,
            waits: false,
            abortable,
        };
        assert_eq!(found(Inside, 7, true).decide(), OnAbort::Now);
        assert_eq!(found(Inside, 7, false).decide(), OnAbort::Nothing);
        assert_eq!(
            found(InService, 7, false).decide(),
            OnAbort::WhenServiceReturns
        );
        for phase in [Outside, Inside, InService, Leaving, Entering] {
            for wanted in [0, 6, 8] {
                assert_eq!(found(phase, wanted, true).decide(), OnAbort::Nothing);
            }
            let waits = Interrupted {
                waits: true,
                ..found(phase, 3, true)
            };
            assert_eq!(waits.decide(), OnAbort::ToRecord);
        }
        for phase in [Outside, Leaving, Entering] {
            assert_eq!(found(phase, 7, true).decide(), OnAbort::Nothing);
        }
    }
}
