//! What signal handlers of the host can do about extensions that run: set the flag of its
//! [safe point](set_safe_point), or [end](interrupt_mine) the call that they have interrupted.

pub use postern_gates::safe_point::Look;
use postern_gates::safe_point::{self, SafePoint};
use postern_gates::{outcome, signal};
use std::sync::atomic::AtomicI32;

/// Bytes of stack that the host's function has at least.
const STACK: usize = 128 << 10;

/// What the function of a safe point says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proceed {
    /// The call goes on where it was.
    GoOn,
    /// It ends with [`crate::FaultKind::Interrupted`].
    End,
}

/// Gives the process a safe point that reaches into extensions: for hosts whose signal handlers
/// only set a flag, at which the host looks now and then.
///
/// While `flag` is not 0, `run` is called at every tick of the watchdog on each thread that is in
/// an extension's text: between two instructions, on the thread's own stack, as a service is. It
/// may do what services do. Where a thread is in a service, or in the host, the host looks itself.
/// It is not called in upcalls, nor where less than 128 KiB of the thread's stack are left, nor on
/// a coroutine's stack.
///
/// A later safe point takes an earlier one's place. A panic of `run` ends the call, and goes on in
/// whoever made it.
pub fn set_safe_point(flag: &'static AtomicI32, run: impl Fn() -> Proceed + Send + Sync + 'static) {
    set_look(flag, Look::closure(move || run() == Proceed::GoOn));
}

/// The same with a function that may be C's.
pub fn set_look(flag: &'static AtomicI32, look: Look) {
    let stack = STACK;
    safe_point::set(SafePoint { flag, look, stack });
}

/// Takes the safe point away. A thread may be in its function meanwhile.
pub fn clear_safe_point() {
    safe_point::clear();
}

/// Ends the calling thread's innermost call with [`crate::FaultKind::Interrupted`]: one that the
/// signal handler which calls this has interrupted, or a service's own, as soon as the thread is in
/// text again. True if there is one. A call that is just being made, or has just returned, is none.
///
/// It is async-signal-safe: it takes no lock and allocates nothing.
pub fn interrupt_mine() -> bool {
    signal::request_own_end(outcome::INTERRUPT)
}
