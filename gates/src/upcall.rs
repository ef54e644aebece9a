//! Upcalls: a real-time signal interrupts a thread at any instruction (the host's, a gate's, a
//! service's, another extension's, the slow path's, the allocator's), runs the handler of a domain
//! there, and the thread goes on exactly as it was.
//!
//! A thread attaches ahead of time: all that an upcall needs is made then, and on the signal's way
//! nothing is allocated, locked or waited for. The signal's handler copies the kernel's frame of
//! the interrupted thread away from the signal stack, which faults of the upcall need, goes on on a
//! control stack of the upcalls' own, and ends by `rt_sigreturn` from the copy: so all registers,
//! the vector state, the mask and the signal stack come back as the kernel has saved them. What it
//! has not saved are the gs base and errno, which are kept here, and the words of [`Thread`].
//!
//! **What is kept of the thread's state**: every word that a call writes ([`Words`]), but for those
//! that other threads write. Extra is exchanged as a whole, so an upcall's fault, messages and x87
//! environment are apart from the interrupted call's, whatever half of it is written.
//!
//! **What others see** ([`super::call_state`]): an upcall is a call like a nested one. If the
//! interrupted call could be seen (its phase is settled), it waits meanwhile: its record is shown
//! and its domain counts it, by the order of stores of `nesting::push`, also where a gate was just
//! writing that record; what the gate had written there comes back. If it could not (Outside,
//! Entering), there is nothing to show. Behind that, and before the upcall's number and domain are
//! written, `upcalls` changes, and again before the interrupted call's come back; readers take it
//! as a part of `nested`. That word itself stays as it is, for the thread may have been interrupted
//! between reading and writing it. Numbers of upcalls are made of `upcalls`, with a bit that no
//! nested call's has: none comes twice.
//!
//! **Wishes** that the interrupted call end, which come meanwhile, are in its record or in the
//! thread's own words. At the end the abort signal is sent once more, blocked until the thread is
//! where it was: so it finds the interrupted instruction, and decides there.
//!
//! An upcall takes no lock, but it may have interrupted who holds one. So it must end by itself
//! ([`clock`]), and its end is told later, by an ordinary thread ([`mailbox`]): in the handler the
//! domain is poisoned by one word. Upcalls do not nest: the signal is blocked. Calls of domains by
//! an upcall's services are refused (`Thread::deciding`), and only services may be called that the
//! host has named (`upcall.s`).
//!
//! A handler that calls another one is ended; or if its domain has threads for that, it is
//! suspended where it calls ([`suspended`]), waits for one of them ([`pool`]), and goes on there as
//! an ordinary call ([`super::resume`]). For the interrupted thread it has returned.

pub(crate) mod clock;
pub(crate) mod gate;
mod mailbox;
pub(crate) mod pool;
mod source;
pub(crate) mod suspended;

#[cfg(feature = "testing")]
pub use gate::bounds;
pub use mailbox::{EndedUpcall, Mailbox, Posted, UpcallCounters};
pub use pool::{Job, Pool, PoolCounters};
pub use source::{Claimed, Handled, Sources};

use super::above::above;
use super::block::Block;
use super::call_state::CallPhase;
use super::control::{Control, ServiceEntry};
use super::entry::{Entry, Manner};
use super::gate::FACT_GS;
use super::host::{MXCSR_DEFAULT, X87_CONTROL};
use super::lifecycle::Phase;
use super::machine;
use super::map::{self, Mapping};
use super::mask::{self, FAULTS};
use super::memory;
use super::outcome::{self, RawFault, Refusal};
use super::record::Record;
use super::register;
use super::signal;
use super::text::Text;
use super::thread::{self, Extra, NESTED, Thread, X87};
use clock::Clock;
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use mailbox::SLOTS;
use postern_image::Signature;
use std::arch::asm;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};
use std::time::Duration;
use suspended::{PROMOTION, Promotion};
use thiserror::Error;

/// The event of a signal that brings none: of the kernel's own, whose code is the data.
pub const OTHER: u32 = u32::MAX;
/// Numbers of upcalls have this bit besides that of nested calls.
const UPCALL: u64 = 1 << 62;
/// Most handlers that follow each other before the thread gets on.
const ROW: usize = 2 * SLOTS;
/// Least nanoseconds that it has for itself then.
const PAUSE: u64 = 100_000;
/// Bytes of the control stack, for the handler's return addresses and for services.
const STACK: usize = 256 << 10;
/// Of these, what services leave to the gates' own code.
const MARGIN: u64 = 16 << 10;
/// What a handler needs of a signal stack besides the system's frame.
const HANDLER: usize = 12 << 10;
const PAGE: usize = 4096;

/// Signals that interrupted a thread which was not attached.
static STRAYS: AtomicU64 = AtomicU64::new(0);

/// How many signals for upcalls came to threads that were not attached.
pub fn strays() -> u64 {
    STRAYS.load(Relaxed)
}

/// Why a thread cannot have upcalls.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AttachError {
    /// It cannot enter extensions at all, or not this domain.
    #[error("the thread cannot enter the domain: {0:?}")]
    Refused(Refusal),
    /// It has upcalls already, or is in one.
    #[error("the thread is attached already: a thread has one attachment; drop that first")]
    Attached,
    /// The function may not be entered.
    #[error("offset {0:#x} is no function of the domain")]
    NoFunction(u32),
    /// The configuration names none.
    #[error("no signal brings upcalls in this process: `Config::upcall_signal` chooses one")]
    NoSignal,
    /// It would never come.
    #[error("the thread blocks signal {0}, which brings upcalls: unblock it before attaching")]
    Blocked(i32),
    /// Somebody else's.
    #[error(
        "signal {0} has a handler of the host's: `Config::upcall_signal` chooses another one for upcalls"
    )]
    HandlerTaken(i32),
    /// The host's own is too small.
    #[error(
        "the thread's signal stack has {present} bytes, and upcalls need {needed}: give it a larger one, or none"
    )]
    SignalStack {
        /// Bytes that it has.
        present: usize,
        /// Bytes that two frames and two handlers need.
        needed: usize,
    },
    /// [`FACT_GS`]
    #[error("upcalls need the gs base: not with `Config::restore_gs`")]
    Gs,
    /// The kernel's.
    #[error("{what}: {reason}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The kernel's reason.
        reason: String,
    },
}

impl From<Refusal> for AttachError {
    fn from(refusal: Refusal) -> AttachError {
        AttachError::Refused(refusal)
    }
}

fn system(what: &'static str) -> AttachError {
    let reason = std::io::Error::last_os_error().to_string();
    AttachError::System { what, reason }
}

// What the kernel reads and writes of a frame on this processor. Behind the mask in libc's
// structure is what the kernel has not.
const UCONTEXT: usize = 304;
const _: () = assert!(
    offset_of!(ucontext_t, uc_sigmask) + 8 == UCONTEXT && offset_of!(ucontext_t, uc_mcontext) == 40
);
/// Where the first 512 bytes of the vector state say how long it is, if this word is there.
const SW_BYTES: usize = 464;
const MAGIC: u32 = 0x4650_5853;
/// Its length without that.
const LEGACY: usize = 512;

macro_rules! words {
    ($($name:ident: $value:ty),* $(,)?) => {
        /// The words of [`Thread`] that calls write and no other thread does, but for those that
        /// say where the thread is.
        struct Words { $($name: $value),* }

        impl Words {
            fn of(thread: &Thread) -> Words {
                Words { $($name: thread.$name.load(Relaxed)),* }
            }

            /// In this order: the number is the last of what others read.
            fn give_back(&self, thread: &Thread) {
                $( thread.$name.store(self.$name, Release); )*
            }
        }
    };
}

words! {
    stack_low: u64,
    stack_span: u64,
    stack_size: u64,
    pending: u64,
    abort_kind: u32,
    service_r15: u32,
    service_rsp: u64,
    service: *mut ServiceEntry,
    context: u64,
    foreign: u32,
    mxcsr: u32,
    mxcsr_now: u32,
    plan_r15: u32,
    plan_rsp: u64,
    service_gate: u64,
    extra: *mut Extra,
    record: *mut Record,
    peer_failed: u64,
    peer_error: u32,
    deciding: u32,
    chained: u32,
    host_gs: u64,
    awaits: *mut Control,
    host_rsp: u64,
    frame: u64,
    control: *mut Control,
    sequence: u64,
}

/// The call that an upcall has interrupted.
struct Interrupted {
    phase: CallPhase,
    words: Words,
    /// The record of the interrupted call, and what stood there, if it was not shown before.
    shown: Option<(*const Record, *mut Control, *mut ServiceEntry)>,
    /// The first record that is not shown, and its limit: others look for the upcall's there.
    own: (*const Record, u64),
    /// What other processes saw the thread inside, of the upcall's domain if that is a common one.
    inside: u32,
}

/// What a thread has for upcalls. Only the thread itself touches it.
#[repr(C)]
struct State {
    /// First: [`Clock::of`] finds it there.
    clock: Clock,
    /// Second: the gate finds it there.
    promotion: Promotion,
    entry: Entry,
    /// Where the upcalls' data stack begins.
    stack: u32,
    mailbox: Arc<Mailbox>,
    /// Where handlers wait that are suspended.
    pool: Option<Arc<Pool>>,
    /// Which of its lives the domain is in.
    life: Box<dyn Fn() -> u64 + Send + Sync>,
    extra: *mut Extra,
    /// [`signal::generation`] when the thread's signals were looked at.
    checked: u64,
    places: Places,
    interrupted: Option<Interrupted>,
    kernel: Kernel,
    /// An event that came with the signal.
    direct: Option<(u32, u64)>,
    /// Other events than the mailbox's, with the text that has their handlers.
    sources: Option<(Box<dyn Sources>, Arc<Text>)>,
    /// There may be some of these.
    look: bool,
    /// Handlers in this row, which begins with the signal, and when that was.
    handlers: usize,
    begun: u64,
    /// What the handler that runs was called for.
    running: Option<Claimed>,
    /// What `clock.allowed` points to.
    _allowed: Box<[u8]>,
}

const _: () = assert!(offset_of!(State, promotion) == PROMOTION);

/// What is kept of the interrupted thread besides its frame and its words.
#[derive(Default)]
struct Kernel {
    errno: c_int,
    gs: u64,
    /// The signal stack is of no use during the upcall: this is the mask for it, which waits for
    /// another stack.
    mask: Option<u64>,
    /// The interrupted thread has no free signal stack.
    moves: bool,
}

/// Memory, with pages without access between.
struct Places {
    /// Another signal stack: lowest address and bytes.
    signal_stack: (usize, usize),
    /// The control stack.
    control_stack: (usize, usize),
    /// Copies of frames.
    frame: (usize, usize),
    _memory: Mapping,
}

impl Places {
    fn new() -> Result<Places, AttachError> {
        let refused = |_| AttachError::Refused(Refusal::NoMemory);
        let pages = |bytes: usize| bytes.next_multiple_of(PAGE);
        let frame = frame_bytes();
        let (signal_stack, save) = (pages(needed().max(64 << 10)), pages(frame + 2 * PAGE));
        let all = 4 * PAGE + signal_stack + STACK + save;
        map::room(7).map_err(refused)?;
        let memory = Mapping::reserve(all).map_err(refused)?;
        let mut at = 0;
        let mut place = |bytes: usize| -> Result<(usize, usize), AttachError> {
            let start = at + PAGE;
            at = start + bytes;
            memory.open(start..at).map_err(refused)?;
            Ok((memory.address() + start, bytes))
        };
        Ok(Places {
            signal_stack: place(signal_stack)?,
            control_stack: place(STACK)?,
            frame: place(save)?,
            _memory: memory,
        })
    }

    fn top(&self) -> u64 {
        (self.control_stack.0 + self.control_stack.1) as u64
    }

    /// Where the copy of the kernel's context is; the vector state is at the beginning.
    fn context(&self) -> usize {
        self.frame.0 + self.frame.1 - UCONTEXT.next_multiple_of(64)
    }

    /// Room for the vector state.
    fn room(&self) -> usize {
        self.context() - self.frame.0
    }
}

/// Most bytes that the kernel puts on a signal stack.
fn frame_bytes() -> usize {
    // SAFETY: getauxval has no preconditions; a missing entry reads 0.
    (unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize).max(PAGE)
}

/// Bytes of a signal stack on which an upcall's signal may come on top of a handler's frame.
fn needed() -> usize {
    2 * (frame_bytes() + HANDLER)
}

/// A mask of signals as the kernel has it.
fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// The signals that an upcall takes.
fn taken() -> u64 {
    FAULTS.into_iter().map(bit).sum::<u64>() | bit(signal::abort_signal())
}

/// Changes the calling thread's mask; in signal handlers, too.
fn change_mask(how: c_int, mask: u64) {
    // SAFETY: the kernel reads eight bytes.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const mask,
            0usize,
            8usize,
        )
    };
}

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
unsafe extern "C" fn on_upcall(_: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let thread = thread::current();
    // SAFETY: the signal is blocked while its handler, and the upcall, run.
    let state = unsafe { state(thread) };
    let Some(state) = state.filter(|_| !thread.in_upcall()) else {
        STRAYS.fetch_add(1, Relaxed);
        return;
    };
    // SAFETY: the kernel's own pointers, of this very frame.
    unsafe {
        if !state.keep_frame(context.cast()) {
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
        state.keep_rest(&*context.cast::<ucontext_t>());
    }
    // SAFETY: the stack is the upcalls' own, and nothing is on it: upcalls do not nest.
    unsafe { gate::postern_upcall_switch((&raw mut *state).cast(), state.places.top(), run) }
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
    /// Copies what `rt_sigreturn` reads. False if there is no room, which the kernel's own measure
    /// excludes.
    ///
    /// # Safety
    /// The address is that of the kernel's context.
    unsafe fn keep_frame(&mut self, context: *const u8) -> bool {
        let (to, room) = (self.places.context() as *mut u8, self.places.room());
        let vectors = self.places.frame.0 as *mut u8;
        // SAFETY: the kernel has laid the context there, and the vector state where it says, of the
        // length that stands in it; the copy is this state's own memory, with `room` for it.
        unsafe {
            let from = (*context.cast::<ucontext_t>())
                .uc_mcontext
                .fpregs
                .cast::<u8>();
            let mut bytes = 0;
            if !from.is_null() {
                let word = |at: usize| from.add(at).cast::<u32>().read_unaligned();
                bytes = match word(SW_BYTES) {
                    MAGIC => word(SW_BYTES + 4) as usize,
                    _ => LEGACY,
                };
            }
            if bytes > room {
                return false;
            }
            to.copy_from_nonoverlapping(context, UCONTEXT);
            if bytes != 0 {
                vectors.copy_from_nonoverlapping(from, bytes);
                let place = to.add(offset_of!(ucontext_t, uc_mcontext) + 23 * 8);
                place.cast::<*mut u8>().write(vectors);
            }
        }
        true
    }

    /// Notes what is not in the frame, and what kind of stack and mask the upcall needs.
    fn keep_rest(&mut self, context: &ucontext_t) {
        const AUTODISARM: u32 = 1 << 31;
        let stack = &context.uc_stack;
        let rsp = context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize;
        let low = stack.ss_sp as usize;
        let flags = stack.ss_flags as u32;
        let moves = flags & (libc::SS_DISABLE as u32 | AUTODISARM) != 0
            || (low..=low + stack.ss_size).contains(&rsp);
        // SAFETY: the kernel's mask is the first word of libc's.
        let before = unsafe { (&raw const context.uc_sigmask).cast::<u64>().read() };
        let mut gs;
        // SAFETY: reads the gs base; the processor has the instruction (`machine::unsupported`).
        unsafe { asm!("rdgsbase {}", out(reg) gs, options(nomem, nostack, preserves_flags)) };
        let mut mask = None;
        if moves || before & taken() != 0 {
            mask = Some(!taken());
            // Not even the abort signal comes between this stack and the next one.
            change_mask(libc::SIG_SETMASK, u64::MAX);
        }
        self.kernel = Kernel {
            // SAFETY: errno's location is thread-local and always valid.
            errno: unsafe { *libc::__errno_location() },
            gs,
            mask,
            moves,
        };
    }

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

    /// The upcall's call begins; the interrupted one waits, if it was to be seen.
    fn push(&mut self, thread: &Thread) {
        let phase = thread.call_state.own();
        let mut shown = None;
        if phase.is_settled() {
            // SAFETY: a registered thread has its own record.
            let record = unsafe { &*thread.record.load(Relaxed) };
            if record.sequence.load(Relaxed) == 0 {
                let control = record.control.load(Relaxed);
                let service = record.service.load(Relaxed);
                shown = Some((&raw const *record, control, service));
                let service = match phase {
                    CallPhase::InService => thread.service.load(Relaxed),
                    _ => std::ptr::null_mut(),
                };
                record.control.store(thread.control.load(Relaxed), Release);
                record.service.store(service, Release);
                let sequence = thread.sequence.load(Relaxed);
                record.sequence.store(sequence, Release);
            }
            self.count(thread, thread.control.load(Relaxed), 1);
        }
        let number = thread.upcalls.load(Relaxed) + 1;
        thread.upcalls.store(number, Release);
        thread.call_state.begin_entering();
        // From here on no abort signal for the interrupted call changes these.
        let words = Words::of(thread);
        let own = thread.waiting().count();
        let own = &thread.records()[own];
        let limit = own.limit.load(Relaxed);
        own.limit.store(0, Release);
        self.interrupted = Some(Interrupted {
            phase,
            words,
            shown,
            own: (own, limit),
            inside: self.entry.control().noted_inside(thread.index()),
        });
        let low = self.places.control_stack.0 as u64 + MARGIN;
        thread.stack_low.store(low, Relaxed);
        thread.stack_span.store(0, Relaxed);
        thread.stack_size.store(0, Relaxed);
        thread.foreign.store(0, Relaxed);
        thread.pending.store(0, Relaxed);
        thread.abort_kind.store(0, Relaxed);
        thread.mxcsr.store(MXCSR_DEFAULT, Relaxed);
        thread.service_gate.store(gate::service(), Relaxed);
        thread.extra.store(self.extra, Relaxed);
        thread
            .record
            .store(std::ptr::from_ref(own).cast_mut(), Relaxed);
        thread.deciding.store(1, Relaxed);
        thread.chained.store(0, Relaxed);
        // It does not wait while it does this.
        thread.awaits.store(std::ptr::null_mut(), SeqCst);
        thread.host_rsp.store(0, Relaxed);
        thread.sequence.store(NESTED | UPCALL | number, Release);
        let control = std::ptr::from_ref(self.entry.control()).cast_mut();
        thread.control.store(control, Release);
    }

    /// The interrupted call is the innermost again, where it was.
    fn pop(&mut self, thread: &Thread) {
        let Some(interrupted) = self.interrupted.take() else {
            return;
        };
        let Interrupted {
            phase,
            words,
            shown,
            own,
            inside,
        } = interrupted;
        // The upcall is not over before this: the word is there still.
        self.entry.control().note_inside(thread.index(), inside);
        thread.call_state.begin_entering();
        thread
            .upcalls
            .store(thread.upcalls.load(Relaxed) + 1, Release);
        // SAFETY: records of this thread, which it has until it is unregistered.
        unsafe { (*own.0).limit.store(own.1, Release) };
        words.give_back(thread);
        thread.call_state.back_to(phase);
        if !phase.is_settled() {
            return;
        }
        self.count(thread, words.control, u32::MAX);
        if let Some((record, control, service)) = shown {
            // SAFETY: as above.
            let record = unsafe { &*record };
            record.sequence.store(0, Release);
            // Whoever wishes the end of this call from here on sees that it is the innermost;
            // whoever did before is seen.
            fence(SeqCst);
            record.control.store(control, Release);
            record.service.store(service, Release);
            let wish = record.end_request();
            if wish.is_for(words.sequence) {
                let kind = wish.kind();
                wish.done(words.sequence);
                thread.end_request().put(words.sequence, kind);
            }
        }
    }

    /// Counts that a call of this domain's waits on the thread, or does not any more.
    fn count(&self, thread: &Thread, control: *mut Control, n: u32) {
        // SAFETY: control blocks are never unmapped, and a call that can be seen has one.
        let waiting = unsafe { &(*control).slot(thread.index()).waiting };
        waiting.store(waiting.load(Relaxed).wrapping_add(n), Release);
    }

    /// Back to the interrupted instruction.
    fn finish(&mut self, thread: &Thread) -> ! {
        // Of a thread that is in no call, the number is a former one's.
        let sequence = thread.sequence.load(Relaxed);
        if thread.call_state.own().is_settled() && thread.end_request().is_for(sequence) {
            change_mask(libc::SIG_BLOCK, bit(signal::abort_signal()));
            signal::remind(thread);
        }
        // SAFETY: errno's location is valid. The gs base is what it was. At the address of the copy
        // `rt_sigreturn` finds what the kernel has saved, in the shape in which it saved it.
        unsafe {
            *libc::__errno_location() = self.kernel.errno;
            asm!(
                "wrgsbase {gs}",
                "mov rsp, {context}",
                "mov eax, {sigreturn}",
                "syscall",
                "ud2",
                gs = in(reg) self.kernel.gs,
                context = in(reg) self.places.context(),
                sigreturn = const libc::SYS_rt_sigreturn,
                options(noreturn)
            )
        }
    }
}

/// Behind the handler, on the upcalls' control stack.
///
/// # Safety
/// Called by the handler, with the thread's state.
unsafe extern "C" fn run(state: *mut c_void) -> ! {
    // SAFETY: the handler's reference is not used any more.
    let state = unsafe { &mut *state.cast::<State>() };
    if let Some(mask) = state.kernel.mask {
        if state.kernel.moves {
            let (start, bytes) = state.places.signal_stack;
            let stack = libc::stack_t {
                ss_sp: start as *mut _,
                ss_flags: 0,
                ss_size: bytes,
            };
            // SAFETY: the range is this state's own. `rt_sigreturn` brings back the one before.
            unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) };
        }
        change_mask(libc::SIG_SETMASK, mask);
    }
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
unsafe extern "C" fn suspend(thread: &Thread) -> ! {
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
    unsafe { gate::postern_upcall_switch((&raw mut *state).cast(), state.places.top(), go_on) }
}

/// The thread was left to itself for a while: the events that wait are rung for, unless handlers
/// run again already, at whose end somebody looks.
pub(crate) fn ring_again(thread: &Thread) {
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
    unsafe { gate::postern_upcall_switch((&raw mut *state).cast(), state.places.top(), go_on) }
}

/// Installs the handler, once there is somebody to call.
fn install() -> Result<(), AttachError> {
    let number = signal::upcall_signal();
    if number == 0 {
        return Err(AttachError::NoSignal);
    }
    let ours = on_upcall as *const () as usize;
    // SAFETY: zeros are a valid sigaction, which the call fills; the handler is async-signal-safe
    // and runs on an alternate stack.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(number, std::ptr::null(), &mut action) != 0 {
            return Err(system("look at the signal for upcalls"));
        }
        match action.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {}
            handler if handler == ours => return Ok(()),
            _ => return Err(AttachError::HandlerTaken(number)),
        }
        action.sa_sigaction = ours;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigfillset(&mut action.sa_mask);
        for signal in FAULTS.into_iter().chain([signal::abort_signal()]) {
            libc::sigdelset(&mut action.sa_mask, signal);
        }
        if libc::sigaction(number, &action, std::ptr::null_mut()) != 0 {
            return Err(system("install the handler of the signal for upcalls"));
        }
    }
    Ok(())
}

/// Which functions of a domain are called.
pub enum Handlers {
    /// The one at this offset.
    One(u32),
    /// For each event its own. The mailbox is in nobody's use, and may have been another thread's.
    Of(Box<dyn Sources>, Arc<Mailbox>),
}

/// The calling thread takes upcalls into a domain until this is dropped. It stays on that thread.
pub struct Attached {
    state: *mut State,
    mailbox: Arc<Mailbox>,
    control: &'static Control,
    generation: u32,
    here: PhantomData<*const ()>,
}

impl Attached {
    /// Attaches the calling thread to one function of two integers, or to those of `handlers`, with
    /// a data stack that begins at `stack` and is nobody else's. The services for whose number
    /// `allows` says so are those that handlers may call: they neither allocate nor take locks. A
    /// handler that calls another one goes on in the domain's `pool`, if there is one. `life` says
    /// which of its lives the domain is in, and is as careful. Handlers run for at most once to
    /// twice `longest`.
    ///
    /// # Errors
    /// [`AttachError`]
    pub fn new(
        block: &Block,
        (handlers, stack): (Handlers, u32),
        allows: impl Fn(usize) -> bool,
        longest: Duration,
        pool: Option<Arc<Pool>>,
        life: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Attached, AttachError> {
        let thread = thread::current();
        if thread.in_upcall() || !thread.upcall.load(Relaxed).is_null() {
            return Err(AttachError::Attached);
        }
        let (offset, mailbox, sources) = match handlers {
            Handlers::One(offset) if !block.is_start(offset) => {
                return Err(AttachError::NoFunction(offset));
            }
            Handlers::One(offset) => (offset, Arc::new(Mailbox::default()), None),
            Handlers::Of(sources, mailbox) => {
                let text = block.text().ok_or(AttachError::NoFunction(0))?;
                (0, mailbox, Some((sources, text)))
            }
        };
        if block.facts() & FACT_GS != 0 {
            return Err(AttachError::Gs);
        }
        if thread.extra.load(Relaxed).is_null() {
            let here = 0u8;
            register::register(thread, &raw const here as u64)?;
        }
        if thread.extra().ending {
            return Err(AttachError::Refused(Refusal::ThreadTable));
        }
        register::look(thread)?;
        let (present, needed) = (mask::signal_stack_bytes(), needed());
        if present < needed {
            return Err(AttachError::SignalStack { present, needed });
        }
        install()?;
        if mask::is_blocked(signal::upcall_signal()) {
            return Err(AttachError::Blocked(signal::upcall_signal()));
        }
        (above().watch)().map_err(|_| Refusal::NoWatchdog)?;
        let services = block.services().map_or(0, |services| services.len());
        let allowed: Box<[u8]> = (0..services).map(|k| u8::from(allows(k))).collect();
        let limit = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        let clock = Clock::new(limit, signal::abort_signal(), allowed.as_ptr());
        let clock = clock.map_err(|error| AttachError::System {
            what: "make a timer for upcalls",
            reason: error.to_string(),
        })?;
        let places = Places::new()?;
        let mut x87 = X87::default();
        x87[0] = X87_CONTROL;
        let extra = Box::new(Extra {
            messages: Vec::new(),
            next_limit: 0,
            fault: RawFault::default(),
            detail: 0,
            message: None,
            panic: None,
            x87,
            stack: (0, 0),
            own_stack: None,
            index: thread.index(),
            admitted: false,
            ending: false,
            checked: 0,
            signal_stack: None,
        });
        let entry = match sources {
            None => block.entry(offset, &signature(), Manner::default()),
            Some(_) => block.later_entry(&signature()),
        };
        let control = entry.control();
        let state = Box::new(State {
            clock,
            promotion: Promotion {
                suspend: pool.as_ref().map(|_| suspend as _),
                ..Promotion::default()
            },
            entry,
            stack,
            mailbox: mailbox.clone(),
            pool,
            life: Box::new(life),
            extra: Box::into_raw(extra),
            checked: signal::generation(),
            places,
            interrupted: None,
            kernel: Kernel::default(),
            direct: None,
            sources,
            look: false,
            handlers: 0,
            begun: 0,
            running: None,
            _allowed: allowed,
        });
        // As for a data stack of the thread's calls: `inside::anybody` has the other half.
        control.stacks_given.fetch_add(1, SeqCst);
        fence(SeqCst);
        let state = Box::into_raw(state);
        thread.upcall.store(state.cast(), SeqCst);
        mailbox.open(thread.tid());
        Ok(Attached {
            state,
            mailbox,
            control,
            generation: control.generation(),
            here: PhantomData,
        })
    }

    /// What other threads put events into.
    pub fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }
}

/// What handlers are called by.
fn signature() -> Signature {
    "v(il)".parse().expect("a signature")
}

impl Attached {
    /// The thread takes no upcalls any more: where the data stack begins that handlers had last.
    pub fn detach(mut self) -> u32 {
        self.end()
    }

    fn end(&mut self) -> u32 {
        let state = std::mem::replace(&mut self.state, std::ptr::null_mut());
        if state.is_null() {
            return 0;
        }
        let upcall = &thread::current().upcall;
        // A thread that was unregistered, or forked, has it taken away already.
        let _ = upcall.compare_exchange(state.cast(), std::ptr::null_mut(), SeqCst, SeqCst);
        self.mailbox.close();
        if self.control.generation() == self.generation {
            self.control.stacks_given.fetch_sub(1, SeqCst);
        }
        // SAFETY: made by `new`, and from here on no signal finds it: only this thread's handler
        // looked there. With it goes what its extra holds.
        unsafe {
            let state = Box::from_raw(state);
            drop(Box::from_raw(state.extra));
            state.stack
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.end();
    }
}
