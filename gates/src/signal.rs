//! Signals: faults of extensions become values, everything else goes to whoever was there before.
//!
//! The handler runs on an alternate stack, allocates nothing, locks nothing and touches only the
//! thread's own state, its domain's control block and its control stack. It ends a call by editing
//! the interrupted context, never by jumping.

pub(crate) mod end;
pub(crate) mod frame;
mod handlers;
mod previous;

pub use handlers::{
    abort_signal, after_fork, choose_upcall_signal, generation, inspect, look_again, rearm,
    replaced, start, take_only_ours, upcall_signal,
};
pub(crate) use handlers::{adopts, check_thread};

use super::bulk;
use super::call_state::{CallPhase, Interrupted, OnAbort};
use super::gate::{self, PcRegion};
use super::mask::FAULTS;
use super::memory;
use super::outcome;
use super::safe_point;
use super::thread::{self, Thread};
use super::upcall;
use super::upcall::clock::{self, Clock};
use handlers::PREVIOUS;
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use std::arch::global_asm;
use std::sync::atomic::Ordering;

/// Asks `thread` to end the call with number `sequence`. The caller holds the registry, so the
/// thread exists.
pub fn request_end(thread: &Thread, sequence: u64, kind: u32) {
    if thread.sequence.load(Ordering::SeqCst) != sequence {
        // That call is over, and a wish for the present one must not be overwritten.
        return;
    }
    // Asked already, perhaps. The signal is one of those that queue, and a thread that is sent them
    // faster than it handles them would never get on; the watchdog reminds in its own time.
    if thread.end_request().ask(sequence, kind) {
        remind(thread);
    }
}

/// Asks the calling thread's innermost call to end: also in a handler of the host's that has
/// interrupted it, or the thread anywhere else. It takes no lock. Whether there is such a call.
pub fn request_own_end(kind: u32) -> bool {
    let thread = thread::current();
    if !matches!(
        thread.call_state.own(),
        CallPhase::Inside | CallPhase::InService
    ) {
        return false;
    }
    // Whoever else asks at this moment means the same call, which cannot end before this handler
    // has: so one of both reasons stays.
    let sequence = thread.sequence.load(Ordering::Relaxed);
    thread.end_request().put(sequence, kind);
    remind(thread);
    true
}

/// Sends the abort signal for a request that was made. The caller holds the registry.
pub fn remind(thread: &Thread) {
    let tid = thread.tid.load(Ordering::Relaxed);
    // SAFETY: sends a signal for which a handler is installed to a thread of this process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, abort_signal()) };
}

/// The handler for a host that owns the signals. True when the signal was Postern's and is dealt
/// with.
///
/// # Safety
/// The arguments must be those that the system passed to an `SA_SIGINFO` handler which runs on an
/// alternate stack.
pub unsafe fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) -> bool {
    let thread = thread::current();
    let phase = thread.call_state.own();
    // SAFETY: the system's own pointers, valid while the handler runs.
    let (info, context) = unsafe { (&*info, &mut *(context as *mut ucontext_t)) };
    if signal == abort_signal() {
        if !clock::is_tick(info) {
            return on_abort(thread, phase, context, None);
        }
        // A late one finds the thread detached, and is nobody else's all the same.
        if let Some(clock) = Clock::of(thread) {
            clock.ring(thread);
            if clock.is_over(thread.upcalls.load(Ordering::Relaxed)) {
                on_abort(thread, phase, context, Some(outcome::DEADLINE));
            }
        }
        return true;
    }
    let pc = context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize;
    if matches!(signal, libc::SIGSEGV | libc::SIGBUS)
        && info.si_code > 0
        && let Some(over) = memory::after_fault(pc)
    {
        // One of the runtime's own copies met a page that is gone; whoever asked for it gets an
        // error.
        context.uc_mcontext.gregs[libc::REG_RIP as usize] = over as i64;
        return true;
    }
    // Only the processor's own faults count: si_code <= 0 was sent by somebody.
    if phase != CallPhase::Inside || info.si_code <= 0 || !FAULTS.contains(&signal) {
        return false;
    }
    // SAFETY: control blocks are never unmapped; the pointer of a thread in a call is set.
    let control = unsafe { &*thread.control.load(Ordering::Relaxed) };
    if !end::in_window(control, pc) && !abortable(pc) {
        return false;
    }
    end::record(thread, control, context, outcome::SIGNAL);
    let fault = &mut thread.extra().fault;
    fault.signal = signal;
    fault.code = info.si_code;
    end::end(thread, context, outcome::SIGNAL);
    true
}

/// Whether a call that is *Inside* can be ended at this instruction of ours: a part of the gates,
/// or all of the memory gate.
fn abortable(pc: usize) -> bool {
    bulk::contains(pc) || gate::region_of(pc) == PcRegion::Abortable || upcall::gate::contains(pc)
}

/// `own`: the thread's own wish that its innermost call end.
fn on_abort(thread: &Thread, phase: CallPhase, context: &mut ucontext_t, own: Option<u32>) -> bool {
    let sequence = thread.sequence.load(Ordering::Relaxed);
    let wish = thread.end_request();
    let (wanted, kind) = match own {
        Some(kind) => (sequence, kind),
        None => (wish.wanted(), wish.kind()),
    };
    let waiting = thread.waiting().find(|&(number, _)| number == wanted);
    // SAFETY: control blocks are never unmapped; the pointer is null before the thread's first
    // call.
    let control = unsafe { thread.control.load(Ordering::Relaxed).as_ref() };
    let pc = context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize;
    let found = Interrupted {
        phase,
        sequence,
        wanted,
        waits: waiting.is_some(),
        abortable: phase == CallPhase::Inside
            && (control.is_some_and(|control| end::in_window(control, pc)) || abortable(pc)),
    };
    match (found.decide(), waiting, control) {
        (OnAbort::ToRecord, Some((_, call)), _) => {
            call.end(wanted, kind);
            wish.done(wanted);
            true
        }
        (OnAbort::WhenServiceReturns, ..) => {
            // Unless the service has asked for an end itself.
            if thread.pending.load(Ordering::SeqCst) != sequence {
                thread.pending.store(sequence, Ordering::SeqCst);
                thread.abort_kind.store(kind, Ordering::SeqCst);
            }
            wish.done(wanted);
            true
        }
        (OnAbort::Now, _, Some(control)) => {
            end::at(thread, control, context, kind);
            true
        }
        (OnAbort::Nothing, _, Some(control))
            if phase == CallPhase::Inside && end::in_window(control, pc) =>
        {
            safe_point::divert(control, context)
        }
        // Nothing was done, so the signal may be for another copy of this library. (A wish that
        // came just when its call was over stays, with the number of that call: taking it for an
        // answer would swallow every signal until this copy's next call.)
        _ => false,
    }
}

// What the kernel calls: [`super::copies`] knows the bytes before it.
global_asm!(
    ".p2align 5",
    ".ascii \"postern handler\\0\"",
    ".globl postern_on_signal",
    ".hidden postern_on_signal",
    "postern_on_signal:",
    "endbr64",
    // The kernel lays the context right above the return address; who chains to us has frames in
    // between.
    "lea r8, [rsp + 8]",
    "xor ecx, ecx",
    "cmp r8, rdx",
    "sete cl",
    "jmp {handler}",
    handler = sym on_signal,
);

/// `direct`: the kernel called, and not a handler that was installed after ours and chains to it.
extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void, direct: bool) {
    // The interrupted code's errno must survive.
    // SAFETY: errno's location is thread-local and always valid.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the system's own arguments.
    if !unsafe { handle(signal, info, context) } {
        chain(signal, info, context, direct);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Does what would have happened without us.
fn chain(signal: c_int, info: *mut siginfo_t, context: *mut c_void, direct: bool) {
    let chained = &thread::current().chained;
    let before = chained.load(Ordering::Relaxed);
    let level = if direct { 0 } else { before + 1 };
    chained.store(level, Ordering::Relaxed);
    let mut previous = PREVIOUS[signal as usize]
        .load(Ordering::Acquire)
        .cast_const();
    for _ in 0..level {
        // A handler that replaced ours, that `rearm` put ours in front of, and that chains to ours:
        // on to what was there before it. SAFETY: the pointers are to leaked structures, or null.
        match unsafe { previous.as_ref() } {
            Some(known) if !known.older.is_null() => previous = known.older,
            _ => break,
        }
    }
    // SAFETY: as above; null before installation is complete.
    if let Some(previous) = unsafe { previous.as_ref() } {
        pass_on(&previous.action, signal, info, context);
    }
    chained.store(before, Ordering::Relaxed);
}

/// Does what the action says.
fn pass_on(previous: &libc::sigaction, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: `info` is the system's, the sender's fields are there for sent signals; getpid has no
    // preconditions.
    let (sent, late) = unsafe {
        let own = (*info).si_code == libc::SI_TKILL && (*info).si_pid() == libc::getpid();
        ((*info).si_code <= 0, own && signal == abort_signal())
    };
    match previous.sa_sigaction {
        libc::SIG_DFL if late => {}
        libc::SIG_IGN if sent || signal == abort_signal() => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // Restore the default. A fault happens again when we return; a sent signal is sent
            // again. SAFETY: plain system calls on this process.
            unsafe {
                let mut default: libc::sigaction = std::mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &default, std::ptr::null_mut());
                if sent {
                    libc::raise(signal);
                }
            }
        }
        handler => {
            // The previous handler expects its own mask. SAFETY: the handler was installed for this
            // signal with these flags by the host; it gets what the system gave us.
            unsafe {
                let mut old: libc::sigset_t = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, &previous.sa_mask, &mut old);
                if previous.sa_flags & libc::SA_SIGINFO != 0 {
                    let f: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                        std::mem::transmute(handler);
                    f(signal, info, context);
                } else {
                    let f: extern "C" fn(c_int) = std::mem::transmute(handler);
                    f(signal);
                }
                libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_wish_swallows_no_signal_of_another_copy() {
        let thread = thread::current();
        thread.sequence.store(7, Ordering::SeqCst);
        thread.request.store(7, Ordering::SeqCst);
        // SAFETY: both structures are plain data, for which zeros are valid.
        let (mut info, mut context): (siginfo_t, ucontext_t) = unsafe { std::mem::zeroed() };
        // SAFETY: the pointers are to initialised structures that live through the call, which
        // outside calls only reads them.
        let dealt_with = unsafe { handle(abort_signal(), &mut info, (&raw mut context).cast()) };
        assert!(!dealt_with);
    }
}
