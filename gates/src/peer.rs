//! Calls from one extension to another, as far as they are not made by the peer gate alone (`peer.s`).
//!
//! An import that a peer serves has a [`super::control::ServiceEntry`] like a service. Its stack need is [`PEER`], which no thread has: so the
//! service gate's own test leads to the peer gate, and services pay nothing. What the peer gate does not take on (the first entry of a
//! thread, a domain that is on this thread already, x87, call-depth limits, coroutines' stacks, refusals) goes on as a service: the
//! function below runs on the host's stack and calls the peer through its entry gate, as any service of the host's may.
//!
//! Whatever becomes of such a call is said to the caller by a 0 and a [`PeerError`], which `__postern_peer_error` reads.

use super::above::{Failure, above};
use super::control::{Block, Entry, FloatMask};
use super::enter;
use super::entry::Manner;
use super::gate::{self, STATUS_OK};
use super::outcome;
use super::registers;
use super::shim;
use super::thread::{self, Thread};
use postern_image::Signature;
use std::sync::atomic::Ordering;

/// A service entry's need of stack that says: it is a peer.
pub const PEER: u64 = 1 << 62;
/// A peer's need of stack that says: not by the peer gate.
pub(crate) const SLOW: u64 = 1 << 62;

/// Why a call of a peer had no result, as the calling extension reads it: `POSTERN_PEER_…` in `postern/extension.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum PeerError {
    /// It faulted in this call.
    Fault = 1,
    /// An earlier fault, or another thread's, closed it.
    Poisoned = 2,
    /// It is being reset.
    Busy = 3,
    /// It is closed for good, or dropped.
    Closed = 4,
    /// The import was left open and nothing was bound to it.
    Unbound = 5,
    /// Calls nest too deeply.
    TooDeep = 6,
    /// It has no room for another thread, or no memory for its stacks.
    NoRoom = 7,
    /// The call took longer than the export or its domain's deadline allows.
    Time = 8,
    /// Its host interrupted it.
    Interrupted = 9,
    /// It ended the call by an exit with a status.
    Exited = 10,
    /// The thread cannot enter extensions now: signals, handlers or the watchdog are not as they must be.
    Thread = 11,
    /// The caller's policy, or a revocation, does not allow the call.
    Denied = 12,
}

/// What an import that a peer serves leads to. Immutable; [`super::control::ServiceEntry::context`] is its address.
#[repr(C, align(64))]
pub struct Peer {
    /// The peer's function, with a masked gate.
    pub(crate) entry: Entry,
    /// Bytes of control stack that must be left, or [`SLOW`].
    pub(crate) gate_stack: u64,
    /// Longest time of a call in nanoseconds; 0 is none.
    pub(crate) limit: u64,
    /// Facts of both images together, as far as they are about vectors, and whose MXCSR changes ([`super::gate::PEER_TO_FLOAT`]).
    pub(crate) vectors: u32,
    /// Mask of rax.
    pub(crate) result_mask: u64,
    /// Mask of xmm0.
    pub(crate) float_mask: FloatMask,
    /// Bytes of control stack that must be left.
    pub(crate) stack: u64,
    /// False for an import that was left open: `entry` leads nowhere.
    pub(crate) bound: bool,
}

impl Peer {
    /// A function at `offset` of the domain with this block, for callers whose image has `facts`. A call takes at most `limit` nanoseconds
    /// (0 is none), and at least `stack_size` bytes of stack must be left when it begins.
    pub fn new(
        called: &Block,
        offset: u32,
        signature: &Signature,
        facts: u32,
        limit: u64,
        stack_size: u64,
    ) -> Peer {
        let mut entry = called.entry(offset, signature, Manner::default());
        entry.gate = entry.class().masked;
        let its = called.facts();
        let slow = entry.needs_full() || (its | facts) & gate::FACT_X87 != 0;
        let result = signature.result();
        Peer {
            entry,
            gate_stack: if slow { SLOW } else { stack_size },
            limit,
            vectors: vectors(facts, its),
            result_mask: result.map_or(0, registers::integer_mask),
            float_mask: FloatMask([result.map_or(0, registers::float_mask), 0]),
            stack: stack_size,
            bound: true,
        }
    }

    /// What an import leads to that was left open.
    pub fn open() -> Peer {
        Peer {
            entry: Entry::nowhere(),
            gate_stack: SLOW,
            limit: 0,
            vectors: 0,
            result_mask: 0,
            float_mask: FloatMask::default(),
            stack: 0,
            bound: false,
        }
    }
}

/// What the peer gate needs to know of both images' facts.
fn vectors(caller: u32, peer: u32) -> u32 {
    let float = |facts| facts & gate::FACT_FLOAT != 0;
    let mixed = match (float(caller), float(peer)) {
        (false, true) => gate::PEER_TO_FLOAT,
        (true, false) => gate::PEER_FROM_FLOAT,
        _ => 0,
    };
    (caller | peer) & (gate::FACT_XMM | gate::FACT_YMM) | mixed
}

/// rax and xmm0.
#[repr(C)]
struct Both {
    integer: u64,
    float: f64,
}

const NOTHING: Both = Both {
    integer: 0,
    float: 0.0,
};

/// The function of every [`super::control::ServiceEntry`] that a peer serves.
pub fn function() -> usize {
    call as *const () as usize
}

/// The peer behind a service entry.
///
/// # Safety
/// `context` is the address of a `Peer` that lives long enough.
unsafe fn peer<'a>(context: u64) -> &'a Peer {
    // SAFETY: the caller's promise.
    unsafe { &*(context as *const Peer) }
}

#[allow(clippy::too_many_arguments)]
extern "C" fn call(
    i0: u64,
    i1: u64,
    i2: u64,
    i3: u64,
    i4: u64,
    i5: u64,
    f0: f64,
    f1: f64,
    f2: f64,
    f3: f64,
    f4: f64,
    f5: f64,
    f6: f64,
    f7: f64,
) -> Both {
    let thread = thread::current();
    // SAFETY: the service gate stored the context of the very entry whose function this is, which is the address of a Peer that the
    // calling domain keeps.
    let peer = unsafe { peer(thread.context.load(Ordering::Relaxed)) };
    if !peer.bound {
        say(thread, PeerError::Unbound);
        return NOTHING;
    }
    // Stack and time first: what the caller lacks is its own affair.
    if shim::ending(thread) || asked_to_end(thread) {
        return NOTHING;
    }
    if shim::lacks_stack(thread, std::ptr::from_ref(&peer) as u64, peer.stack) {
        shim::end_when_back(thread, outcome::SERVICE_STACK, 0, None);
        return NOTHING;
    }
    thread.extra().next_limit = peer.limit;
    let floats = [f0, f1, f2, f3, f4, f5, f6, f7].map(f64::to_bits);
    let returned = enter::all(&peer.entry, [i0, i1, i2, i3, i4, i5], floats, &[]);
    thread.extra().next_limit = 0;
    if returned.status != STATUS_OK {
        failed(thread);
        return NOTHING;
    }
    thread.peer_failed.store(0, Ordering::Relaxed);
    Both {
        integer: returned.integer & peer.result_mask,
        float: f64::from_bits(returned.float & peer.float_mask.0[0]),
    }
}

/// Whether another thread has asked for the end of the call; then it ends when this service returns.
fn asked_to_end(thread: &Thread) -> bool {
    let sequence = thread.sequence.load(Ordering::SeqCst);
    // The peer gate may have been interrupted by the wish while it undid what it had begun.
    let record = &thread.records()[thread.depth()];
    for wish in [thread.end_request(), record.end_request()] {
        if wish.is_for(sequence) {
            shim::end_when_back(thread, wish.kind(), 0, None);
            return true;
        }
    }
    false
}

/// Says to the innermost call, which waited for a peer, how the peer's call ended.
pub(crate) fn failed(thread: &Thread) {
    match (above().failure)() {
        Failure::Error(error) => say(thread, error),
        Failure::Panic(panic) => shim::panicked(thread, panic),
    }
}

/// Says to the innermost call how its call of a peer failed.
pub(crate) fn say(thread: &Thread, error: PeerError) {
    thread.peer_error.store(error as u32, Ordering::Relaxed);
    let sequence = thread.sequence.load(Ordering::Relaxed);
    thread.peer_failed.store(sequence, Ordering::Relaxed);
}

/// What `__postern_peer_error` returns: how the innermost call's last call of a peer failed, or 0.
pub fn error(thread: &Thread) -> u32 {
    let failed = thread.peer_failed.load(Ordering::Relaxed);
    match failed == thread.sequence.load(Ordering::Relaxed) {
        true => thread.peer_error.load(Ordering::Relaxed),
        false => 0,
    }
}
