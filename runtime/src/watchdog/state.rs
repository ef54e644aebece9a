//! Whether the watchdog looks or rests, and how its rest is ended.

use postern_gates::machine;
use std::sync::atomic::{AtomicU32, Ordering};

/// There is no watchdog, it is being made, it looks at every tick, or it waits to be woken.
pub(super) static STATE: AtomicU32 = AtomicU32::new(NONE);
pub(super) const NONE: u32 = 0;
pub(super) const LOOKING: u32 = 1;
pub(super) const RESTING: u32 = 2;
pub(super) const STARTING: u32 = 3;

/// Goes from one state to another, if it is the one now.
pub(super) fn change(from: u32, to: u32) -> bool {
    let (order, none) = (Ordering::SeqCst, Ordering::SeqCst);
    STATE.compare_exchange(from, to, order, none).is_ok()
}

/// Ends the watchdog's rest, if it rests. Whoever gives it something to do has shown that before.
pub(crate) fn wake() {
    if STATE.load(Ordering::SeqCst) == RESTING && change(RESTING, LOOKING) {
        machine::wake(&STATE);
    }
}
