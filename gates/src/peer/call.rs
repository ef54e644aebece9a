//! A call of a peer that goes on as a service, and what is said of one that failed.

use super::{Peer, PeerError};
use crate::above::{Failure, above};
use crate::callee::Callee;
use crate::enter;
use crate::gate::STATUS_OK;
use crate::outcome;
use crate::shim;
use crate::thread::{self, Thread};
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::Ordering;

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

/// The function of every [`crate::control::ServiceEntry`] that a peer serves.
pub(crate) fn function() -> usize {
    #[cfg(feature = "linux")]
    let function = call as *const () as usize;
    #[cfg(not(feature = "linux"))]
    let function = &raw const postern_peer_called as usize;
    function
}

impl Callee {
    /// A peer, and what must stay as long as it.
    pub fn peer(peer: Peer, with: impl Any + Send + Sync) -> Callee {
        let callers = peer.callers;
        let both = Arc::new((peer, with));
        let context = core::ptr::from_ref(&both.0) as usize;
        // SAFETY: the function of peers, and one that is in what is kept, which is not moved.
        unsafe { Callee::of_peer(function(), context, both, callers) }
    }
}

/// The peer behind a service entry.
///
/// # Safety
/// `context` is the address of a `Peer` that lives long enough.
unsafe fn peer<'a>(context: u64) -> &'a Peer {
    // SAFETY: the caller's promise.
    unsafe { &*(context as *const Peer) }
}

#[cfg(feature = "linux")]
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
    let floats = [f0, f1, f2, f3, f4, f5, f6, f7].map(f64::to_bits);
    served([i0, i1, i2, i3, i4, i5], floats)
}

/// All registers that carry arguments, and what becomes of rax and xmm0.
#[cfg(not(feature = "linux"))]
#[repr(C)]
struct Spilled {
    integers: [u64; 6],
    floats: [u64; 8],
    result: [u64; 2],
}

// Where the library is built without vector registers, these go by memory.
#[cfg(not(feature = "linux"))]
core::arch::global_asm!(
    ".p2align 4",
    ".globl postern_peer_called",
    ".hidden postern_peer_called",
    "postern_peer_called:",
    "sub rsp, 136",
    "mov [rsp], rdi",
    "mov [rsp + 8], rsi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 24], rcx",
    "mov [rsp + 32], r8",
    "mov [rsp + 40], r9",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7",
    "movq qword ptr [rsp + 48 + 8 * \\n], xmm\\n",
    ".endr",
    "mov rdi, rsp",
    "call {called}",
    "mov rax, [rsp + 112]",
    "movq xmm0, qword ptr [rsp + 120]",
    "add rsp, 136",
    "ret",
    called = sym called,
);

#[cfg(not(feature = "linux"))]
unsafe extern "C" {
    static postern_peer_called: u8;
}

#[cfg(not(feature = "linux"))]
extern "C" fn called(spilled: &mut Spilled) {
    let Both { integer, float } = served(spilled.integers, spilled.floats);
    spilled.result = [integer, float.to_bits()];
}

fn served(integers: [u64; 6], floats: [u64; 8]) -> Both {
    let thread = thread::current();
    // SAFETY: the service gate stored the context of the very entry whose function this is, which
    // is the address of a Peer that the calling domain's table of services keeps.
    let peer = unsafe { peer(thread.context.load(Ordering::Relaxed)) };
    if !peer.bound {
        say(thread, PeerError::Unbound);
        return NOTHING;
    }
    // Stack and time first: what the caller lacks is its own affair.
    if shim::ending_of(thread) || asked_to_end(thread) {
        return NOTHING;
    }
    if shim::lacks_stack(thread, core::ptr::from_ref(&peer) as u64, peer.stack) {
        shim::end_when_back_of(thread, outcome::SERVICE_STACK, 0, None);
        return NOTHING;
    }
    thread.extra().next_limit = peer.limit;
    let returned = enter::all(&peer.entry, integers, floats, &[]);
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

/// Whether another thread has asked for the end of the call; then it ends when this service
/// returns.
fn asked_to_end(thread: &Thread) -> bool {
    let sequence = thread.sequence.load(Ordering::SeqCst);
    // The peer gate may have been interrupted by the wish while it undid what it had begun.
    let record = &thread.records()[thread.depth()];
    for wish in [thread.end_request(), record.end_request()] {
        if wish.is_for(sequence) {
            shim::end_when_back_of(thread, wish.kind(), 0, None);
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
pub fn error() -> u32 {
    let thread = thread::current();
    let failed = thread.peer_failed.load(Ordering::Relaxed);
    match failed == thread.sequence.load(Ordering::Relaxed) {
        true => thread.peer_error.load(Ordering::Relaxed),
        false => 0,
    }
}
