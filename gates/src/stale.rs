//! Calls that the host has left behind: by longjmp, by unwinding, or by saying so.

use super::call_state::CallPhase;
use super::control::Control;
use super::nesting::leave;
use super::thread::{self, Thread};
use core::arch::asm;
use core::sync::atomic::Ordering;

/// Forgets calls whose frames the host has left behind by longjmp or by unwinding: they lie below
/// the present one on the thread's own stack.
pub(super) fn discard_stale(thread: &Thread, frame: u64) {
    while is_stale(thread, frame) {
        forget(thread);
    }
}

/// Whether the innermost call is such a one.
pub(super) fn is_stale(thread: &Thread, frame: u64) -> bool {
    let extra = thread.extra.load(Ordering::Relaxed);
    // Otherwise the recorded frame may be an earlier call's.
    let recorded_now = matches!(
        thread.call_state.own(),
        CallPhase::Inside | CallPhase::InService
    );
    if extra.is_null() || !recorded_now {
        return false;
    }
    let (low, top) = thread.extra().stack;
    let recorded = thread.frame.load(Ordering::Relaxed);
    let on_stack = |p: u64| (low..top).contains(&p);
    on_stack(recorded) && on_stack(frame) && recorded <= frame
}

/// Forgets the innermost call, and with it those that wait for it in the peer gate: nobody comes
/// back to them.
fn forget(thread: &Thread) {
    while leave(thread) {}
}

/// As `discard_stale`, for the host's own code: what the calling thread has left is not inside any
/// more.
pub fn forget_left() {
    forget_left_of(thread::current());
}

/// The same; `thread` is the calling one.
pub(crate) fn forget_left_of(thread: &Thread) {
    if thread.call_state.own() == CallPhase::Outside
        || thread.extra.load(Ordering::Relaxed).is_null()
    {
        return;
    }
    let here: u64;
    // SAFETY: copies the stack pointer.
    unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
    discard_stale(thread, here);
}

/// How many calls the calling thread is inside.
pub fn nesting() -> usize {
    let thread = thread::current();
    match thread.call_state.own() {
        CallPhase::Outside => 0,
        _ => 1 + thread.depth(),
    }
}

/// Forgets the innermost calls until `nesting` are left. True unless the thread is inside an
/// extension: then only a signal handler can be asking, and nothing was left.
///
/// # Safety
/// The forgotten calls' services never return.
pub unsafe fn unwind(nesting: usize) -> bool {
    let thread = thread::current();
    // The calls below an upcall are not the handler's to forget.
    if thread.in_upcall() {
        return false;
    }
    while self::nesting() > nesting {
        if thread.call_state.own() != CallPhase::InService {
            return false;
        }
        forget(thread);
    }
    true
}

/// The domain that called the service in which the calling thread is.
pub fn serving() -> Option<&'static Control> {
    let thread = thread::current();
    forget_left_of(thread);
    match thread.call_state.own() {
        CallPhase::InService => thread.innermost(),
        _ => None,
    }
}
