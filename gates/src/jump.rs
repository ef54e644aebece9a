//! setjmp, longjmp and unwinding: the three services that read, and move, an extension's control
//! stack pointer.
//!
//! An extension never sees its control stack. What it keeps of a frame is the *depth*: how many
//! bytes the stack pointer lies below the base of the call. Invariant: the stack pointer is only
//! ever moved to a value at which every word up to the base is the return address of a live frame
//! of this very call, the last one being the gate's own.
//!
//! Why every depth that is accepted is harmless, whoever made it up. While text runs, the words
//! from the stack pointer to the base were pushed by `call` instructions one after the other, with
//! nothing between them, because no instruction that the verifier accepts names rsp: each is a
//! return address of verified text, the outermost one the gate's. Any 8-aligned place among them is
//! a stack pointer that the same call had before, and a `ret` there goes where a `ret` of the
//! extension was to go anyway. What lies below the new place is dead. Which frame the extension's
//! registers and data stack believe to be in is its own affair: nothing depends on them.

use super::call_state::CallPhase;
use super::control::Control;
use super::memory::{host_word, set_host_word};
use super::stale;
use super::thread::{self, Thread};
use core::sync::atomic::Ordering;
use postern_verifier::window::WINDOW_SIZE;
use thiserror::Error;

/// Why a call ends at one of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum JumpError {
    /// No function of the extension's called the one that called the service.
    #[error(
        "setjmp was called by the host: only a function of the extension can come back to its own frame"
    )]
    NoCaller,
    /// More than 4 GiB.
    #[error("setjmp: the control stack is too deep to be said in 32 bits")]
    TooDeep,
    /// It is no multiple of 8 above 0.
    #[error(
        "longjmp: the buffer is damaged, or setjmp never filled it: {0:#x} is no depth of the control stack"
    )]
    NoDepth(u32),
    /// More control stack is wanted than the call has.
    #[error(
        "longjmp: the function that called setjmp has returned ({wanted} bytes of control stack are wanted, {present} are in use)"
    )]
    Returned {
        /// Bytes that are wanted.
        wanted: u32,
        /// Bytes that there are.
        present: u64,
    },
    /// No frame of the call has this depth.
    #[error("unwinding: {0:#x} is no depth of the control stack")]
    NoFrame(u32),
    /// No frame of the call is left, or the service was not called from its window.
    #[error("longjmp: the buffer is of another call of the host's, or damaged")]
    Outside,
    /// Outside services there is nothing to read or to move.
    #[error("the thread is in no service that an extension called")]
    NoService,
}

/// The words that the service gate found: the extension's rbp, then return addresses.
const RETURN: u64 = 8;

/// The calling thread, if it is in a service, and the domain whose it is. What is read and written
/// below is that call's then: its words are on the control stack for as long as its service has not
/// returned, and no other thread touches them.
fn in_service() -> Result<(&'static Thread, &'static Control), JumpError> {
    let thread = thread::current();
    // A service that was left for good has nothing there any more.
    stale::forget_left_of(thread);
    if thread.call_state.own() != CallPhase::InService {
        return Err(JumpError::NoService);
    }
    let control = thread.innermost().ok_or(JumpError::NoService)?;
    Ok((thread, control))
}

/// What `__postern_setjmp` returns: depth << 32 | offset of the return address, both of the
/// function that called the function which called the service (setjmp itself). The depth is that
/// after setjmp has returned.
pub fn mark() -> Result<u64, JumpError> {
    let (thread, control) = in_service()?;
    let at = thread.service_rsp.load(Ordering::Relaxed);
    let base = thread.call_base();
    // [at] rbp, [at + 8] into setjmp, [at + 16] into its caller; the gate's own return address is
    // the last word, at base - 8.
    if at + 2 * RETURN >= base - RETURN {
        return Err(JumpError::NoCaller);
    }
    // SAFETY: below the base of the innermost call, and above what the gate pushed on that very
    // stack.
    let caller = unsafe { host_word(at + 2 * RETURN) };
    let offset = in_window(control, caller).ok_or(JumpError::NoCaller)?;
    let depth = u32::try_from(base - (at + 3 * RETURN)).map_err(|_| JumpError::TooDeep)?;
    Ok(u64::from(depth) << 32 | u64::from(offset))
}

/// What `__postern_longjmp` does: when the service returns, the function that called it goes on
/// with a stack pointer `depth` bytes below the base.
pub fn jump(depth: u32) -> Result<(), JumpError> {
    let (thread, control) = in_service()?;
    let at = thread.service_rsp.load(Ordering::Relaxed);
    let base = thread.call_base();
    if !depth.is_multiple_of(8) || depth == 0 {
        return Err(JumpError::NoDepth(depth));
    }
    // Before the call of the service, and so after it.
    let Some(present) = base.checked_sub(at + 2 * RETURN) else {
        // A jump to the slot where the call's last return would have been: no frame is left.
        return Err(JumpError::Outside);
    };
    if u64::from(depth) > present {
        return Err(JumpError::Returned {
            wanted: depth,
            present,
        });
    }
    // SAFETY: the two words that the gate found, below the base of the innermost call.
    let (rbp, back) = unsafe { (host_word(at), host_word(at + RETURN)) };
    in_window(control, back).ok_or(JumpError::Outside)?;
    // at + 16 <= to <= base - 8, so both words lie between what the gate pushed and the gate's own
    // return address.
    let to = base - u64::from(depth);
    // SAFETY: so only the extension's own returns read them.
    unsafe {
        set_host_word(to - 2 * RETURN, rbp);
        set_host_word(to - RETURN, back);
    }
    thread.service_rsp.store(to - 2 * RETURN, Ordering::Relaxed);
    Ok(())
}

/// What `__postern_return` returns: the offset that the frame whose control stack has `depth` bytes
/// returns to; -1 if that is the gate's.
pub fn return_of(depth: u32) -> Result<i64, JumpError> {
    let (thread, control) = in_service()?;
    let at = thread.service_rsp.load(Ordering::Relaxed);
    let base = thread.call_base();
    // As in `jump`: the frames that are live before the call of the service.
    let present = base.saturating_sub(at + 2 * RETURN);
    if !depth.is_multiple_of(8) || depth == 0 || u64::from(depth) > present {
        return Err(JumpError::NoFrame(depth));
    }
    if u64::from(depth) == RETURN {
        return Ok(-1);
    }
    // SAFETY: between the gate's two words at `at` and its own return address at base - 8.
    let back = unsafe { host_word(base - u64::from(depth)) };
    in_window(control, back)
        .map(i64::from)
        .ok_or(JumpError::NoFrame(depth))
}

/// The offset of an address in the domain's window.
fn in_window(control: &Control, address: u64) -> Option<u32> {
    let offset = address.wrapping_sub(control.address(0) as u64);
    (offset < WINDOW_SIZE).then_some(offset as u32)
}
