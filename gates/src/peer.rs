//! Calls from one extension to another, as far as they are not made by the peer gate alone
//! (`peer.s`).
//!
//! An import that a peer serves has a [`super::control::ServiceEntry`] like a service. Its stack
//! need is [`PEER`](super::control), which no thread has: so the service gate's own test leads to
//! the peer gate, and services pay nothing. What the peer gate does not take on (the first entry of
//! a thread, a domain that is on this thread already, x87, call-depth limits, coroutines' stacks,
//! refusals) goes on as a service: the function in `peer/call.rs` runs on the host's stack and
//! calls the peer through its entry gate, as any service of the host's may.
//!
//! Whatever becomes of such a call is said to the caller by a 0 and a [`PeerError`], which
//! `__postern_peer_error` reads.

mod call;

pub use call::error;
pub(super) use call::failed;
#[cfg(feature = "linux")]
pub(super) use call::{function, say};

use super::block::Block;
use super::callee::{CALLER_FACTS, ForCallers};
use super::control::FloatMask;
use super::entry::{Entry, Manner};
use super::gate;
use super::map::MapError;
use super::registers;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use postern_image::Signature;
use thiserror::Error;

/// A peer's need of stack that says: not by the peer gate.
pub(crate) const SLOW: u64 = 1 << 62;

/// Why a call of a peer had no result, as the calling extension reads it: `POSTERN_PEER_…` in
/// `postern/extension.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
#[repr(u32)]
pub enum PeerError {
    /// It faulted in this call.
    #[error("the peer faulted in this call")]
    Fault = 1,
    /// An earlier fault, or another thread's, closed it.
    #[error("an earlier fault, or another thread's, closed the peer")]
    Poisoned = 2,
    /// It is being reset.
    #[error("the peer is being reset; try again")]
    Busy = 3,
    /// It is closed for good, or dropped.
    #[error("the peer is closed for good")]
    Closed = 4,
    /// The import was left open and nothing was bound to it.
    #[error("the import was left open, and nothing is bound to it; bind_peer() it")]
    Unbound = 5,
    /// Calls nest too deeply.
    #[error("calls nest too deeply")]
    TooDeep = 6,
    /// It has no room for another thread, or no memory for its stacks.
    #[error("the peer has no room for another thread, or no memory for its stacks")]
    NoRoom = 7,
    /// The call took longer than the export or its domain's deadline allows.
    #[error("the call took longer than the export or the peer's deadline allows")]
    Time = 8,
    /// Its host interrupted it.
    #[error("the peer's host interrupted it")]
    Interrupted = 9,
    /// It ended the call by an exit with a status.
    #[error("the peer ended the call by an exit")]
    Exited = 10,
    /// The thread cannot enter extensions now: signals, handlers or the watchdog are not as they
    /// must be.
    #[error(
        "the thread cannot enter extensions now: signals, handlers or the watchdog are not as they must be"
    )]
    Thread = 11,
    /// The caller's policy, or a revocation, does not allow the call.
    #[error("the caller's policy, or a revocation, does not allow the call")]
    Denied = 12,
}

/// What an import that a peer serves leads to. Immutable; [`super::control::ServiceEntry::context`]
/// is its address.
#[repr(C, align(64))]
pub struct Peer {
    /// The peer's function, with a masked gate.
    pub(crate) entry: Entry,
    /// Bytes of control stack that must be left, or [`SLOW`].
    pub(crate) gate_stack: u64,
    /// Longest time of a call in nanoseconds; 0 is none.
    pub(crate) limit: u64,
    /// Facts of both images together, as far as they are about vectors, and whose MXCSR changes
    /// ([`super::gate::PEER_TO_FLOAT`]).
    pub(crate) vectors: u32,
    /// Mask of rax.
    pub(crate) result_mask: u64,
    /// Mask of xmm0.
    pub(crate) float_mask: FloatMask,
    /// Bytes of control stack that must be left.
    pub(crate) stack: u64,
    /// False for an import that was left open: `entry` leads nowhere.
    pub(crate) bound: bool,
    /// The caller's facts that `vectors` was made of.
    callers: ForCallers,
}

impl Peer {
    /// A function at `offset` of the domain with this block, for callers whose block has these
    /// `facts`: no other block takes it. A call takes at most `limit` nanoseconds (0 is none), and
    /// at least `stack_size` bytes of stack must be left when it begins.
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
        let slow = entry.needs_full()
            || (its | facts) & gate::FACT_X87 != 0
            // The peer gate does not say who is inside.
            || its & gate::FACT_COMMON != 0;
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
            callers: ForCallers::With(facts & CALLER_FACTS),
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
            callers: ForCallers::All,
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

impl Block {
    /// Leads an import that a peer serves to another one: calls that begin from now on go there.
    /// What was there before stays as long as the domain, for a thread may be just about to use it.
    ///
    /// # Errors
    /// [`MapError::Taken`]: no peer serves the import with this number, or the new one was made for
    /// callers with other facts.
    pub fn bind(&self, number: usize, peer: Peer) -> Result<(), MapError> {
        let services = self.services().ok_or(MapError::Taken)?;
        let entry = services.peer(number).ok_or(MapError::Taken)?;
        if !peer.callers.has(self.facts()) {
            return Err(MapError::Taken);
        }
        let peer = Arc::new(peer);
        let context = Arc::as_ptr(&peer) as usize;
        services.keep(peer);
        entry.context.store(context, Ordering::SeqCst);
        Ok(())
    }
}
