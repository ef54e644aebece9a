//! What a thread has for upcalls, and how it comes to the domain's handlers and back: from the
//! signal's handler on, on the upcalls' own control stack.

use super::clock::Clock;
use super::frame::{self, Frame};
use super::gate;
use super::interrupted::Interrupted;
use super::mailbox::{EndedUpcall, Mailbox, SLOTS};
use super::pool::Pool;
use super::source::{Claimed, Handled, Sources};
use super::suspended::{PROMOTION, Promotion};
use crate::control::Control;
use crate::entry::Entry;
use crate::lifecycle::Phase;
use crate::machine;
use crate::mask;
use crate::memory;
use crate::outcome::{self, RawFault};
use crate::signal;
use crate::text::Text;
use crate::thread::{self, Extra, Thread};
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The event of a signal that brings none: of the kernel's own, whose code is the data.
pub const OTHER: u32 = u32::MAX;
/// Most handlers that follow each other before the thread gets on.
const ROW: usize = 2 * SLOTS;
/// Least nanoseconds that it has for itself then.
const PAUSE: u64 = 100_000;

/// Signals that interrupted a thread which was not attached.
static STRAYS: AtomicU64 = AtomicU64::new(0);

/// How many signals for upcalls came to threads that were not attached.
pub fn strays() -> u64 {
    STRAYS.load(Relaxed)
}

/// What a thread has for upcalls. Only the thread itself touches it.
#[repr(C)]
pub(super) struct State {
    /// First: [`Clock::of`] finds it there.
    pub(super) clock: Clock,
    /// Second: the gate finds it there.
    pub(super) promotion: Promotion,
    pub(super) entry: Entry,
    /// Where the upcalls' data stack begins.
    pub(super) stack: u32,
    pub(super) mailbox: Arc<Mailbox>,
    /// Where handlers wait that are suspended.
    pub(super) pool: Option<Arc<Pool>>,
    /// Which of its lives the domain is in.
    pub(super) life: Box<dyn Fn() -> u64 + Send + Sync>,
    pub(super) extra: *mut Extra,
    /// [`signal::generation`] when the thread's signals were looked at.
    pub(super) checked: u64,
    pub(super) frame: Frame,
    pub(super) interrupted: Option<Interrupted>,
    /// An event that came with the signal.
    pub(super) direct: Option<(u32, u64)>,
    /// Other events than the mailbox's, with the text that has their handlers.
    pub(super) sources: Option<(Box<dyn Sources>, Arc<Text>)>,
    /// There may be some of these.
    pub(super) look: bool,
    /// Handlers in this row, which begins with the signal, and when that was.
    pub(super) handlers: usize,
    pub(super) begun: u64,
    /// What the handler that runs was called for.
    pub(super) running: Option<Claimed>,
    /// What `clock.allowed` points to.
    pub(super) _allowed: Box<[u8]>,
}

const _: () = assert!(offset_of!(State, promotion) == PROMOTION);

/// The calling thread's state for upcalls, while it is attached.
///
/// # Safety
/// No other reference to it is in use: the signal's handler, what it calls, and the way out of
/// ended upcalls, which comes back to none of them, are all that make one.
unsafe fn state<'a>(thread: &Thread) -> Option<&'a mut State> {
    let state = thread.upcall.load(Relaxed).cast::<State>();
    // SAFETY: null, or what `Attached::new` stored and only this thread takes away; and the
    // caller's promise.
    unsafe { state.as_mut() }
}

/// The handler of the signal.
///
/// # Safety
/// Called by the kernel.
pub(super) unsafe extern "C" fn on_upcall(_: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let thread = thread::current();
    // SAFETY: the signal is blocked while its handler, and the upcall, run.
    let state = unsafe { state(thread) };
    let Some(state) = state.filter(|_| !thread.in_upcall()) else {
        STRAYS.fetch_add(1, Relaxed);
        return;
    };
    // SAFETY: the kernel's own pointers, of this very frame.
    unsafe {
        if !state.frame.keep(context.cast()) {
            state.mailbox.skipped.fetch_add(1, Relaxed);
            return;
        }
        let by_kernel = matches!((*info).si_code, libc::SI_KERNEL | libc::SI_USER);
        let sources = state.sources.as_mut();
        state.look |= sources.is_some_and(|(sources, _)| sources.signalled() || by_kernel);
        // A signal that the kernel sends to whoever runs says only that there is something.
        if !by_kernel || state.sources.is_none() {
            state.direct = event_of(&*info);
        }
        state.frame.keep_rest(&*context.cast::<ucontext_t>());
    }
    // SAFETY: the stack is the upcalls' own, and nothing is on it: upcalls do not nest.
    unsafe { gate::postern_upcall_switch((&raw mut *state).cast(), state.frame.top(), run) }
}

/// What a signal brings with it. Those of [`Mailbox::ring`] bring nothing.
fn event_of(info: &siginfo_t) -> Option<(u32, u64)> {
    match info.si_code {
        libc::SI_TKILL | libc::SI_USER => None,
        libc::SI_QUEUE | libc::SI_TIMER => {
            // SAFETY: signals with these codes have a value.
            let value = unsafe { info.si_value() }.sival_ptr as u64;
            Some((value as u32, value >> 32))
        }
        code => Some((OTHER, u64::from(code as u32))),
    }
}

impl State {
    /// All events that there are, but no more than a row's, and back to the interrupted thread.
    fn rest(&mut self, thread: &Thread) -> ! {
        loop {
            let taken = machine::monotonic().saturating_sub(self.begun);
            let full = self.handlers == ROW || self.handlers > 0 && taken > self.clock.limit();
            let claimed = if full { None } else { self.next() };
            if let Some(claimed) = claimed {
                self.handlers += 1;
                self.running = Some(claimed);
                self.one(thread, claimed);
                continue;
            }
            if full && (self.look || self.mailbox.waiting() > 0) {
                // The thread is to get on, too, for as long as this took: else an extension whose
                // handlers send their own client events would have all of its time. (What a look
                // for other events has found, nobody else finds.)
                self.clock.ring_after(taken.max(PAUSE));
                break;
            }
            // Who posts from here on rings. What was posted just before is looked for.
            self.mailbox.answer();
            if self.mailbox.waiting() == 0 {
                break;
            }
            self.mailbox.hold();
        }
        self.finish(thread)
    }

    /// The next event.
    fn next(&mut self) -> Option<Claimed> {
        let posted = self.direct.take().or_else(|| self.mailbox.take());
        match (&mut self.sources, posted) {
            (Some((sources, _)), Some((event, data))) => Some(sources.posted(event, data)),
            (Some((sources, _)), None) if self.look => {
                let claimed = sources.claim();
                self.look = claimed.is_some();
                claimed
            }
            (None, Some((event, data))) => Some(Claimed {
                event,
                data,
                offset: self.entry.offset(),
                token: 0,
            }),
            _ => None,
        }
    }

    /// Tells what became of the event for which a handler was to be called.
    fn handled(&mut self, how: Handled) {
        match how {
            Handled::Returned => &self.mailbox.delivered,
            Handled::Promoted => &self.mailbox.promoted,
            Handled::Skipped => &self.mailbox.skipped,
            Handled::Ended => &self.mailbox.ended,
        }
        .fetch_add(1, Relaxed);
        if let (Some((sources, _)), Some(claimed)) = (&mut self.sources, self.running.take()) {
            sources.handled(claimed, how);
        }
    }

    /// Whether the thread, and the function, are such that it may be called.
    fn may_call(&mut self, offset: u32) -> bool {
        let now = signal::generation();
        if self.checked != now {
            if signal::check_thread().is_err() {
                return false;
            }
            self.checked = now;
        }
        let sources = self.sources.as_ref();
        sources.is_none_or(|(_, text)| text.is_start(offset))
    }

    fn one(&mut self, thread: &Thread, claimed: Claimed) {
        let Claimed {
            event,
            data,
            offset,
            ..
        } = claimed;
        if self.may_call(offset) {
            self.entry.offset.store(offset, Relaxed);
            let control = self.entry.control();
            let generation = (self.entry.expected() >> 32) as u32;
            // Who finds a move wanted enters: nobody moves a domain that somebody is in.
            let phase = match control.lifecycle.now() {
                Phase::MovePending => Phase::MovePending,
                _ => Phase::Open,
            };
            let expected = Control::word(phase, generation);
            let entry = (&raw const self.entry).cast();
            self.clock.arm();
            self.push(thread);
            // SAFETY: the entry is one of its domain, whose text may be entered there; the words of
            // the thread are as the gate expects them, and `pop` follows, or `ended`.
            let closed =
                unsafe { gate::postern_upcall_enter(entry, self.stack, event, data, expected) };
            self.pop(thread);
            if closed == 0 {
                self.handled(Handled::Returned);
                return;
            }
        }
        self.handled(Handled::Skipped);
    }

    /// Puts the handler that the gate has suspended into the pool. False if there is no room.
    fn promote(&mut self, thread: &Thread) -> bool {
        let Some(pool) = &self.pool else {
            return false;
        };
        let (rsp, frame) = (self.promotion.rsp, thread.frame.load(Relaxed));
        // Below the frame is the gate's own return address.
        let calls = ((frame - rsp) / 8 - 1) as usize;
        let registers = self.promotion.registers;
        let spare = pool.suspend(self.entry.offset(), self.stack, |handler| {
            handler.registers = registers;
            handler.calls = calls as u32;
            for (k, place) in handler.returns[..calls].iter_mut().enumerate() {
                // SAFETY: between the handler's stack pointer and the frame.
                *place = unsafe { memory::host_word(frame - 16 - 8 * k as u64) } as u32;
            }
        });
        self.stack = spare.unwrap_or(self.stack);
        spare.is_some()
    }

    /// The upcall's call begins.
    fn push(&mut self, thread: &Thread) {
        let low = self.frame.low();
        self.interrupted = Some(Interrupted::push(thread, &self.entry, self.extra, low));
    }

    /// The interrupted call is the innermost again.
    fn pop(&mut self, thread: &Thread) {
        if let Some(interrupted) = self.interrupted.take() {
            interrupted.pop(thread, self.entry.control());
        }
    }

    /// Back to the interrupted instruction.
    fn finish(&mut self, thread: &Thread) -> ! {
        // Of a thread that is in no call, the number is a former one's.
        let sequence = thread.sequence.load(Relaxed);
        if thread.call_state.own().is_settled() && thread.end_request().is_for(sequence) {
            mask::change(libc::SIG_BLOCK, frame::bit(signal::abort_signal()));
            signal::remind(thread);
        }
        self.frame.go_back()
    }
}

/// Behind the handler, on the upcalls' control stack.
///
/// # Safety
/// Called by the handler, with the thread's state.
unsafe extern "C" fn run(state: *mut c_void) -> ! {
    // SAFETY: the handler's reference is not used any more.
    let state = unsafe { &mut *state.cast::<State>() };
    state.frame.take_signals();
    // Who posts does not ring: the thread looks.
    state.mailbox.hold();
    (state.handlers, state.begun) = (0, machine::monotonic());
    state.rest(thread::current())
}

/// As [`run`], behind an upcall that was ended.
///
/// # Safety
/// Called by [`ended`], with the thread's state.
unsafe extern "C" fn go_on(state: *mut c_void) -> ! {
    // SAFETY: the frames of who had it are left for good.
    let state = unsafe { &mut *state.cast::<State>() };
    state.rest(thread::current())
}

/// Where the gate goes on when it has suspended a handler: for the thread, the upcall is over.
///
/// # Safety
/// Called by the upcall gate, on the upcalls' control stack, below the handler's return addresses.
pub(super) unsafe extern "C" fn suspend(thread: &Thread) -> ! {
    // SAFETY: whoever had it has called the gate, which does not return to it.
    let Some(state) = (unsafe { state(thread) }) else {
        unreachable!("an upcall runs only while its thread is attached");
    };
    if !state.promote(thread) {
        let kind = outcome::NO_SANDBOX_THREAD;
        thread.abort_kind.store(kind, Relaxed);
        ended(thread);
    }
    state.pop(thread);
    state.handled(Handled::Promoted);
    // SAFETY: what is on that stack is the handler's no more: it was copied.
    unsafe { gate::postern_upcall_switch((&raw mut *state).cast(), state.frame.top(), go_on) }
}

/// The thread was left to itself for a while: the events that wait are rung for, unless handlers
/// run again already, at whose end somebody looks.
pub(super) fn ring_again(thread: &Thread) {
    let state = thread.upcall.load(Relaxed).cast::<State>();
    if state.is_null() || thread.in_upcall() {
        return;
    }
    // SAFETY: what `Attached::new` stored and only this thread takes away. An upcall may have been
    // interrupted here, between two handlers, but it does not change which mailbox it is.
    let mailbox = unsafe { &(*state).mailbox };
    mailbox.answer();
    mailbox.ring();
}

/// The way out of upcalls that were ended, by whatever: from `postern_aborted`, on the upcalls'
/// control stack.
pub(crate) fn ended(thread: &Thread) -> ! {
    // SAFETY: whoever had it has called the gate, which does not return to it.
    let Some(state) = (unsafe { state(thread) }) else {
        unreachable!("an upcall runs only while its thread is attached");
    };
    let kind = thread.abort_kind.swap(0, Relaxed);
    let kept = &mut thread.extra().fault;
    let fault = match std::mem::take(&mut kept.kind) == kind {
        true => RawFault { kind, ..*kept },
        // Ended at a gate or in a service: no signal context belongs to it.
        false => RawFault {
            kind,
            ..RawFault::default()
        },
    };
    let control = state.entry.control();
    let closes = !matches!(kind, outcome::INTERRUPT | outcome::ANOTHER);
    let (life, closed) = ((state.life)(), closes && control.lifecycle.poison_now());
    state.mailbox.keep(EndedUpcall {
        fault,
        life,
        closed,
    });
    state.handled(Handled::Ended);
    state.pop(thread);
    // SAFETY: what is on that stack is left for good.
    unsafe { gate::postern_upcall_switch((&raw mut *state).cast(), state.frame.top(), go_on) }
}
