//! For tests of this workspace only (feature `testing`, no promise of stability): where the gates
//! are, and where the calling thread's state lies, so that a debugger can ask for the end of a call
//! at any instruction.

pub use postern_gates::bulk::{Vectors, choose as choose_memory_gate};

use crate::domain::Domain;
use crate::error::CallError;
use crate::sandbox_threads;
use postern_gates::bulk;
use postern_gates::call_state::CallPhase;
use postern_gates::gate::Label;
use postern_gates::thread;
use postern_gates::{outcome, signal};
use std::sync::Arc;

/// Names and addresses of the labels of `gate.s` and `bulk.s`, in ascending order of address.
pub fn labels() -> Vec<(&'static str, usize)> {
    let mut all: Vec<_> = Label::ALL
        .iter()
        .map(|&(label, name)| (name, label.address()))
        .chain(bulk::labels())
        .collect();
    all.sort_by_key(|&(_, address)| address);
    all
}

/// Whether an instruction is one of the memory gate.
pub fn in_memory_gate(pc: u64) -> bool {
    bulk::contains(pc as usize)
}

/// Addresses of fields of the calling thread's state.
#[derive(Clone, Copy, Debug)]
pub struct ThreadAddresses {
    /// u32: one of the numbers beside it here ([`OUTSIDE`] and so on).
    pub call_state: usize,
    /// u64: number of the innermost call.
    pub sequence: usize,
    /// u64: at least the number of the last nested call.
    pub nested: usize,
    /// u64: the innermost domain.
    pub control: usize,
    /// u64: the call that shall end.
    pub request: usize,
    /// u32: why.
    pub request_kind: usize,
}

/// The calling thread's.
pub fn thread_addresses() -> ThreadAddresses {
    let [call_state, sequence, nested, control, request, request_kind] = thread::addresses();
    ThreadAddresses {
        call_state,
        sequence,
        nested,
        control,
        request,
        request_kind,
    }
}

/// Gives the calling thread a data stack in the domain, if it has none: its next call need not take
/// the slow path for that.
pub fn give_data_stack(domain: &Domain) {
    let (control, index) = (&domain.0.control, thread::my_index());
    if control.data_stack(index) == 0 {
        // Without one the next call is only slower.
        let _ = crate::domain::give_data_stack(control, index);
    }
}

pub use postern_gates::call_state::{CallWord, one_call};

/// A thread's phase outside of calls.
pub const OUTSIDE: u32 = CallPhase::Outside as u32;
/// In a service.
pub const IN_SERVICE: u32 = CallPhase::InService as u32;
/// While a gate writes the state of a call.
pub const ENTERING: u32 = CallPhase::Entering as u32;

/// The signal that makes a thread look at its request.
pub fn abort_signal() -> i32 {
    signal::abort_signal()
}

/// The request kind that becomes [`crate::FaultKind::Deadline`].
pub const DEADLINE: u32 = outcome::DEADLINE;
/// The request kind that becomes [`crate::FaultKind::Interrupted`].
pub const INTERRUPT: u32 = outcome::INTERRUPT;

pub use postern_gates::thread::extents as thread_extents;

/// The signal that brings upcalls.
pub fn upcall_signal() -> i32 {
    signal::upcall_signal()
}

/// Ends the threads of the domain's pool: what waits there waits for [`go_on`], until a reset.
pub fn end_sandbox_threads(domain: &Domain) {
    drop(domain.0.end_pool());
}

/// Goes on, on the calling thread, with what has waited longest in the domain's pool: how that
/// ended, or `None` if nothing waits.
pub fn go_on(domain: &Domain) -> Option<Result<(), CallError>> {
    let pool = domain.0.sandbox.pool.clone()?;
    let domain = Arc::downgrade(&domain.0);
    let mut job = pool.take()?;
    let ended = sandbox_threads::enter(&domain, &job);
    job.done();
    sandbox_threads::renew(&domain, &job);
    Some(ended)
}

/// Addresses of the resume gate's first instruction and behind its last.
pub fn resume_gate() -> (usize, usize) {
    postern_gates::resume::bounds()
}

/// Addresses of the upcall gate's first instruction and behind its last.
pub fn upcall_gate() -> (usize, usize) {
    postern_gates::upcall::bounds()
}
