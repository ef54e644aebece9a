//! A model of how calls begin and end while other threads close, reset or move a domain, or ask for
//! a call's end. `loom` runs it in every order in which threads can see each other's stores (with a
//! bounded number of preemptions).
//!
//! What is modelled by itself: domains' lifecycles, threads' call states, the look at who is
//! inside, the reading of another thread's call, the wishes that calls end and the decision of the
//! signal handler are the functions that the runtime runs, on loom's words. What the gates do in
//! assembly is written down here beside the instructions; and so are `slow::push` and
//! `slow::leave`, by the order of their stores. The barrier to all threads is a sequentially
//! consistent fence, and so is, at the one place where it matters, the half of it that the other
//! threads get: a fence between their store of the call state and their load of the lifecycle. (The
//! gates have none there. A thread that runs gets it by the barrier's interrupt, somewhere between
//! two instructions; if that is before the store, the load sees the lifecycle, and if it is after
//! the store, whoever sent the barrier sees the call: as with a fence between both.) A signal is
//! taken at any of the points that are named so. Windows are cells that loom finds being used by
//! two threads at once.
//!
//! That it can fail was tried. Found were:
//! - of the orderings: a `publish` without its fence, no barrier before the look at who is inside,
//!   a `leave` that is relaxed (as it was), and a gate that looks at the lifecycle before it
//!   publishes its call;
//! - of resets without a barrier: a thread that does not count its data stack, or has no fence
//!   behind that, and a reset without a fence;
//! - of the transitions: an end of Exclusive that overwrites Closed, a move that begins from
//!   Exclusive;
//! - of the readings: `holds` that looks at `nested` once, or not at who waits; `one_call` that
//!   takes the phase Entering, or does not compare the number again; an abort that does not look
//!   whether the call waits; `end_inside` that does not look at the innermost call twice;
//! - of the registry: a thread whose memory goes before it is taken out.
//!
//! - of upcalls: one that does not show the call that it interrupts, or does not count it in its
//!   domain; that does not change `upcalls` when it begins; or does not look for a wish at its end,
//!   in the record and in the thread's own words.
//!
//! Not found were a peer gate that looks for a wish before it hides its record, for which the
//! second look of `end_inside` makes up; and a `one_call` that does not compare `nested`, which
//! takes more switches than are tried here, and so does an upcall that does not change `upcalls`
//! when it ends: `soundness/tests/step/reader.rs` tries all.

mod orders;

use super::atomic::Atomic;
use super::call_state::{CallState, CallWord, Interrupted, OnAbort, holds, one_call};
use super::end_request::EndRequest;
use super::lifecycle::{Lifecycle, Phase};
use super::pause::Pause;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::sync::atomic::Ordering::{self, AcqRel, Release, SeqCst};

macro_rules! loom {
    ($atomic:ty, $value:ty) => {
        impl Atomic<$value> for $atomic {
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }
            fn store_ahead(&self, value: $value) {
                self.store(value, Release);
                fence(SeqCst);
            }
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.swap(value, order)
            }
            fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                order: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(from, to, order, order)
            }
            fn fence(order: Ordering) {
                fence(order);
            }
            fn wait(_: &mut Pause) {
                thread::yield_now();
            }
        }
    };
}
loom!(AtomicU32, u32);
loom!(AtomicU64, u64);

/// Every order with at most so many preemptions.
fn model(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

/// As `machine::barrier`.
fn barrier() {
    fence(SeqCst);
}

/// A domain: its control block, and its window, which calls read and whoever has it for itself
/// writes.
struct Domain {
    number: u64,
    lifecycle: Lifecycle<AtomicU32>,
    /// `Control::stacks_given`
    stacks_given: AtomicU32,
    window: UnsafeCell<u32>,
}

impl Domain {
    fn open(number: u64) -> Arc<Domain> {
        let lifecycle = Lifecycle::new(AtomicU32::new(0));
        lifecycle.open();
        let window = UnsafeCell::new(0);
        Arc::new(Domain {
            number,
            lifecycle,
            stacks_given: AtomicU32::new(0),
            window,
        })
    }

    /// What a call does in there.
    fn use_window(&self) -> u32 {
        // SAFETY: reads a number; loom says if somebody writes meanwhile.
        self.window.with(|value| unsafe { *value })
    }

    /// What a reset does in there.
    fn write_window(&self) {
        // SAFETY: writes a number; loom says if somebody is there meanwhile.
        self.window.with_mut(|value| unsafe { *value += 1 });
    }
}

/// What is asked for.
const WISH: u32 = 3;

/// Numbers of nested calls never meet the others.
const NESTED: u64 = 1 << 63;

/// Numbers of upcalls have this bit, too.
const UPCALL: u64 = 1 << 62;

/// A thread's words, and its one record.
struct Thread {
    call_state: CallState<AtomicU32>,
    sequence: AtomicU64,
    nested: AtomicU64,
    upcalls: AtomicU64,
    control: AtomicU64,
    request: AtomicU64,
    request_kind: AtomicU32,
    /// The abort signal was sent.
    signal: AtomicBool,
    /// `Record::sequence`, `control`, `request` and `request_kind`.
    waits: AtomicU64,
    waits_control: AtomicU64,
    waits_request: AtomicU64,
    waits_kind: AtomicU32,
    /// `ThreadSlot::waiting` of the waiting call's domain.
    waiting: AtomicU32,
}

/// A call was ended: its number.
#[derive(Debug, PartialEq, Eq)]
struct Ended(u64);

impl Thread {
    fn new() -> Arc<Thread> {
        Arc::new(Thread::outside())
    }

    fn outside() -> Thread {
        Thread {
            call_state: CallState::new(AtomicU32::new(0)),
            sequence: AtomicU64::new(0),
            nested: AtomicU64::new(NESTED),
            upcalls: AtomicU64::new(0),
            control: AtomicU64::new(0),
            request: AtomicU64::new(0),
            request_kind: AtomicU32::new(0),
            signal: AtomicBool::new(false),
            waits: AtomicU64::new(0),
            waits_control: AtomicU64::new(0),
            waits_request: AtomicU64::new(0),
            waits_kind: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
        }
    }

    fn word(&self, word: CallWord) -> u64 {
        match word {
            CallWord::Nested => {
                let nested = self.nested.load(SeqCst);
                nested.wrapping_add(self.upcalls.load(SeqCst) << 32)
            }
            CallWord::Sequence => self.sequence.load(SeqCst),
            CallWord::State => self.call_state.seen() as u64,
            CallWord::Control => self.control.load(SeqCst),
        }
    }

    /// As `inside::Target::holds` of a whole domain.
    fn is_inside(&self, domain: &Domain) -> bool {
        let here = || self.control.load(SeqCst) == domain.number;
        let waits =
            || self.waits_control.load(SeqCst) == domain.number && self.waiting.load(SeqCst) != 0;
        holds(|word| self.word(word), waits, here, false)
    }

    fn end_request(&self) -> EndRequest<'_, AtomicU64, AtomicU32> {
        EndRequest::new(&self.request, &self.request_kind)
    }

    fn record_request(&self) -> EndRequest<'_, AtomicU64, AtomicU32> {
        EndRequest::new(&self.waits_request, &self.waits_kind)
    }

    /// A point at which a signal may be taken, of an instruction at which a call that is Inside can
    /// be ended, or not. As `signal::on_abort`.
    fn point(&self, abortable: bool) -> Result<(), Ended> {
        if !self.signal.swap(false, AcqRel) {
            return Ok(());
        }
        let wish = self.end_request();
        let (wanted, kind) = (wish.wanted(), wish.kind());
        let sequence = self.sequence.load(SeqCst);
        let found = Interrupted {
            phase: self.call_state.own(),
            sequence,
            wanted,
            waits: wanted != 0 && self.waits.load(SeqCst) == wanted,
            abortable,
        };
        match found.decide() {
            OnAbort::ToRecord => self.record_request().put(wanted, kind),
            OnAbort::Now => {
                assert_eq!(kind, WISH);
                wish.done(wanted);
                return Err(Ended(sequence));
            }
            OnAbort::WhenServiceReturns => {
                unreachable!("no call of this model is in a service then")
            }
            OnAbort::Nothing => return Ok(()),
        }
        wish.done(wanted);
        Ok(())
    }

    /// `ENTRY_GATE` of `gate.s`, up to its `call`. Whether the domain let the call in.
    fn enter(&self, domain: &Domain) -> Result<bool, Ended> {
        self.call_state.begin_entering(); // mov fs:[T_CALL_STATE], ENTERING
        let number = self.sequence.load(SeqCst) + 1;
        self.sequence.store(number, Release); // inc fs:[T_SEQUENCE]
        self.point(false)?;
        self.control.store(domain.number, Release); // mov fs:[T_CONTROL], r10
        self.call_state.publish(); // mov fs:[T_CALL_STATE], INSIDE
        self.point(true)?; // postern_marked
        if domain.lifecycle.now() != Phase::Open {
            // cmp rbx, [r10 + C_LIFECYCLE]
            self.call_state.leave(); // postern_unmark
            return Ok(false);
        }
        Ok(true)
    }

    /// The same behind its `call`; and where ended calls arrive.
    fn leave(&self) {
        self.call_state.leave(); // mov fs:[T_CALL_STATE], OUTSIDE
    }

    /// A whole call.
    fn call(&self, domain: &Domain) -> Result<bool, Ended> {
        let entered = self.enter(domain).and_then(|entered| {
            if entered {
                domain.use_window();
                self.point(true)?;
            }
            Ok(entered)
        });
        if entered != Ok(false) {
            self.leave();
        }
        entered
    }

    /// `postern_peer`, or `slow::push`, up to the new call's publication, after which it is in
    /// `to`. `None` if that did not let it in.
    fn begin_nested(&self, from: &Domain) -> u64 {
        let sequence = self.sequence.load(SeqCst);
        self.waits_control.store(from.number, Release); // mov [R_CONTROL], rax
        self.waits.store(sequence, Release); // mov [R_SEQUENCE], r14: shown
        self.waiting.store(1, Release); // inc [C_SLOTS + 4]
        let number = self.nested.load(SeqCst) + 1;
        self.nested.store(number, Release); // mov fs:[T_NESTED], r14
        self.call_state.begin_entering(); // mov fs:[T_CALL_STATE], ENTERING
        self.sequence.store(number, Release); // mov fs:[T_SEQUENCE], r14
        sequence
    }

    fn enter_nested(&self, to: &Domain) -> bool {
        self.control.store(to.number, Release); // mov fs:[T_CONTROL], rbx
        self.call_state.publish(); // mov fs:[T_CALL_STATE], INSIDE: postern_peer_marked
        to.lifecycle.now() == Phase::Open // cmp rax, [rbx + C_LIFECYCLE]
    }

    /// `postern_peer_returned` and `postern_peer_unmark`, or `slow::pop` and `leave`: the call in
    /// `from`, whose number was `sequence`, is the innermost again.
    fn end_nested(&self, from: &Domain, sequence: u64) -> Result<(), Ended> {
        self.call_state.begin_entering(); // mov fs:[T_CALL_STATE], ENTERING
        let number = self.nested.load(SeqCst) + 1;
        self.nested.store(number, Release); // inc fs:[T_NESTED]
        self.control.store(from.number, Release); // mov fs:[T_CONTROL], r11
        self.sequence.store(sequence, Release); // mov fs:[T_SEQUENCE], r9
        self.point(false)?;
        self.call_state.publish(); // mov fs:[T_CALL_STATE], INSIDE: postern_peer_back
        self.point(true)?;
        self.waiting.store(0, Release); // dec [C_SLOTS + 4]
        self.waits.store(0, Release); // mov [R_SEQUENCE], 0: not shown any more
        fence(SeqCst);
        match self.record_request().is_for(sequence) {
            // cmp r9, [R_REQUEST]: postern_peer_request, which reads the kind
            true => {
                assert_eq!(self.record_request().kind(), WISH);
                Err(Ended(sequence))
            }
            false => Ok(()),
        }
    }

    /// An upcall into `to`, as `State::push`, the upcall gate and `State::pop` of `upcall.rs`,
    /// wherever the thread is. Whether `to` let it in.
    fn upcall(&self, to: &Domain) -> bool {
        let phase = self.call_state.own();
        let (sequence, control) = (self.sequence.load(SeqCst), self.control.load(SeqCst));
        let settled = phase.is_settled();
        let shown = settled && self.waits.load(SeqCst) == 0;
        if shown {
            self.waits_control.store(control, Release);
            self.waits.store(sequence, Release);
        }
        if settled {
            let waiting = self.waiting.load(SeqCst);
            self.waiting.store(waiting + 1, Release);
        }
        let number = self.upcalls.load(SeqCst) + 1;
        self.upcalls.store(number, Release);
        self.call_state.begin_entering();
        self.sequence.store(NESTED | UPCALL | number, Release);
        self.control.store(to.number, Release);
        assert_eq!(self.point(false), Ok(()));
        self.call_state.publish(); // mov fs:[T_CALL_STATE], INSIDE: postern_upcall_marked
        let entered = to.lifecycle.now() == Phase::Open; // cmp r8, [r10 + C_LIFECYCLE]
        if entered {
            to.use_window();
        }
        self.call_state.begin_entering();
        self.upcalls.store(number + 1, Release);
        self.control.store(control, Release);
        self.sequence.store(sequence, Release);
        self.call_state.back_to(phase);
        if settled {
            let waiting = self.waiting.load(SeqCst);
            self.waiting.store(waiting - 1, Release);
        }
        if shown {
            self.waits.store(0, Release);
            fence(SeqCst);
            let wish = self.record_request();
            if wish.is_for(sequence) {
                wish.done(sequence);
                self.end_request().put(sequence, WISH);
            }
        }
        if settled && self.end_request().is_for(sequence) {
            // As `State::finish`: it comes when the thread is where it was.
            self.signal.swap(true, AcqRel);
        }
        entered
    }

    /// As `quiesce::end_inside`, of one thread: who calls it holds the registry.
    fn end_inside(&self, domain: &Domain) {
        let innermost = || {
            if let Some((sequence, control)) = one_call(|word| self.word(word))
                && control == domain.number
            {
                self.ask(sequence);
            }
        };
        innermost();
        let waiting = self.waits.load(SeqCst);
        if waiting != 0 && self.waits_control.load(SeqCst) == domain.number {
            self.record_request().put(waiting, WISH);
        }
        innermost();
    }

    /// As `signal::request_end`.
    fn ask(&self, sequence: u64) {
        if self.sequence.load(SeqCst) == sequence && self.end_request().ask(sequence, WISH) {
            self.signal.swap(true, AcqRel); // tgkill
        }
    }
}

/// A call of `thread` in `from` that calls `to`, and comes back.
fn nested(thread: &Thread, from: &Domain, to: &Domain) {
    if thread.enter(from) != Ok(true) {
        return;
    }
    from.use_window();
    let sequence = thread.begin_nested(from);
    if thread.enter_nested(to) {
        to.use_window();
    }
    assert_eq!(thread.end_nested(from, sequence), Ok(()));
    from.use_window();
    thread.leave();
}

/// As `exclusive_from`, whose work writes.
fn reset(domain: &Domain, thread: &Thread) -> bool {
    let Some(exclusive) = domain.lifecycle.begin_exclusive(None) else {
        return false;
    };
    barrier();
    if thread.is_inside(domain) {
        exclusive.undo();
        return false;
    }
    domain.write_window();
    exclusive.end(Phase::Open);
    true
}

/// As `exclusive_from` where `inside::anybody` looks at data stacks alone; otherwise it does
/// nothing here.
fn reset_without_barrier(domain: &Domain) -> bool {
    let Some(exclusive) = domain.lifecycle.begin_exclusive(None) else {
        return false;
    };
    fence(SeqCst);
    if domain.stacks_given.load(SeqCst) != 0 {
        exclusive.undo();
        return false;
    }
    domain.write_window();
    exclusive.end(Phase::Open);
    true
}

/// As `while_empty`, whose work writes.
fn move_window(domain: &Domain, thread: &Thread) -> bool {
    let Some(moving) = domain.lifecycle.begin_move() else {
        return false;
    };
    barrier();
    if thread.is_inside(domain) {
        moving.undo();
        return false;
    }
    domain.write_window();
    moving.end(true);
    true
}
