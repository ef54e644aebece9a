//! What there is of a handler that waits at a gate slot: the registers of its call of a service, and
//! the return addresses of its own calls. The rest is in its window.

use crate::thread::Thread;
use crate::upcall::clock::Clock;

/// Calls of its own in which a handler may be when it begins to wait.
pub(super) const MOST_CALLS: usize = 4096;
/// Bytes of control stack that these fill, with the gate's own return address.
pub(super) const DEEPEST: usize = (MOST_CALLS + 1) * 8;

/// As the service gate finds them.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
pub(super) struct Registers {
    /// xmm0 to xmm7.
    pub(super) floats: [[u64; 2]; 8],
    /// rdi rsi rdx rcx r8 r9 rbx rbp r12 r13 r14 r15.
    pub(super) integers: [u64; 12],
    /// Number of the gate slot.
    pub(super) service: u64,
}

/// What the upcall gate writes when it suspends a handler.
#[repr(C, align(16))]
#[derive(Default)]
pub(super) struct Promotion {
    pub(super) registers: Registers,
    /// The handler's stack pointer, at the return address of its call of the slot.
    pub(super) rsp: u64,
    /// Who goes on then, with the thread; `None` if handlers are not suspended.
    pub(super) suspend: Option<unsafe extern "C" fn(&Thread) -> !>,
}

/// Where the upcalls' state of a thread has its [`Promotion`]: behind the clock.
pub(super) const PROMOTION: usize = size_of::<Clock>().next_multiple_of(align_of::<Promotion>());

/// A handler that waits.
#[repr(C, align(16))]
pub(super) struct Suspended {
    pub(super) registers: Registers,
    /// Of its own calls, those that have not returned: that of the slot among them, unless it is a
    /// jump.
    pub(super) calls: u32,
    /// Where they return to, outermost first: offsets, for the window may be moved meanwhile.
    pub(super) returns: [u32; MOST_CALLS],
}
