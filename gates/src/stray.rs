//! Services that return out of turn: two coroutines of one thread, each in a service of a call of
//! its own, of which the one that began first returns first.
//!
//! The calls of a thread are a stack, whatever stacks they run on: the innermost one's state is the
//! thread's. A service of another call that returned into it would bring it a result that is not
//! its own, on a stack that is not its own. The service gate finds that out by the stack pointer,
//! which must be the one with which it called. The innermost call cannot give way: data stacks, and
//! the control stack of the runtime's own, are used from the top down by one call after the other.
//! So the call that came out of turn is ended, and the innermost one is not touched.

use super::above::{Ended, above};
use super::call_state::CallPhase;
use super::machine;
use super::mask::SignalsBlocked;
use super::outcome::{self, RawFault};
use super::record::Record;
use super::thread::{self, Thread};
use alloc::borrow::ToOwned;
use core::sync::atomic::Ordering;

const MESSAGE: &str = "a service returned before a call that began later on this thread had ended; calls on coroutines of one thread must end in the reverse order of their beginning";
const NOWHERE: &str = "postern: a service returned on another thread than it was called on, or on another stack: a coroutine that is in a service must stay on its thread\n";

/// A service returned with this stack pointer, and is not the one that the thread's innermost call
/// is in. Ends its call, and those that wait for it in the peer gate, and returns the frame of the
/// outermost of them: the host goes on there.
///
/// # Safety
/// Called by `gate.s` only, on the stack of the service that returned.
pub(crate) unsafe extern "C" fn service_stray(thread: &Thread, rsp: u64) -> u64 {
    let depth = match thread.call_state.own() {
        CallPhase::InService => thread.depth(),
        _ => 0,
    };
    let waits = |record: &Record| record.host_rsp() == rsp;
    // The innermost such: one that the host has left by longjmp, and not said so, may have been at
    // the same place before.
    let Some(last) = thread.records()[..depth].iter().rposition(waits) else {
        // There is no call to end: going on would be another thread's, or nobody's.
        machine::abandon(NOWHERE);
    };
    // A call that came by the peer gate goes with the one that waits for it there: nobody could
    // come back to that before its turn.
    let before = &thread.records()[..last];
    let first = last - before.iter().rev().take_while(|r| r.in_peer_gate()).count();
    let call = &thread.records()[first];
    let frame = call.frame.load(Ordering::Relaxed);
    let recovery = call.recovery.load(Ordering::Relaxed);
    let domain = call.domain().and_then(above().hold);
    remove(thread, first, last + 1);
    let fault = RawFault {
        kind: outcome::ABORT,
        ..RawFault::default()
    };
    let ended = Ended {
        fault,
        detail: 0,
        message: Some(MESSAGE.to_owned()),
        panic: None,
        recovery,
    };
    (above().ended)(domain, ended);
    frame
}

/// Takes the records from `first` to before `end`, of calls that wait, from between the others.
fn remove(thread: &Thread, first: usize, end: usize) {
    // Neither this thread's own handler nor another thread sees what is half done.
    let _signals = SignalsBlocked::new();
    let _registry = thread::registry();
    let (records, depth, gone) = (thread.records(), thread.depth(), end - first);
    for record in &records[first..end] {
        if let Some(control) = record.domain() {
            let slot = control.slot(thread.index());
            slot.waiting.fetch_sub(1, Ordering::SeqCst);
            let innermost = thread.innermost();
            if !innermost.is_some_and(|own| core::ptr::eq(own, control)) {
                control.note_left(thread.index());
            }
        }
    }
    for to in first..=depth - gone {
        records[to].copy(&records[to + gone]);
    }
    for record in &records[depth - gone + 1..=depth] {
        record.copy(&Record::default());
    }
    let messages = &mut thread.extra().messages;
    messages[first..].rotate_left(gone);
    let own = core::ptr::from_ref(&records[depth - gone]);
    thread.record.store(own.cast_mut(), Ordering::SeqCst);
}
