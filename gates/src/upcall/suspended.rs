//! What there is of a handler that waits at a gate slot: the registers of its call of a service,
//! and the return addresses of its own calls. The rest is in its window.

use crate::thread::Thread;
use crate::upcall::clock::Clock;

/// Calls of its own in which a handler may be when it begins to wait.
pub(crate) const MOST_CALLS: usize = 4096;
/// Bytes of control stack that these fill, with the gate's own return address.
pub(crate) const DEEPEST: usize = (MOST_CALLS + 1) * 8;

/// As the service gate finds them.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
pub(crate) struct Registers {
    /// xmm0 to xmm7.
    pub(crate) floats: [[u64; 2]; 8],
    /// rdi rsi rdx rcx r8 r9 rbx rbp r12 r13 r14 r15.
    pub(crate) integers: [u64; 12],
    /// Number of the gate slot.
    pub(crate) service: u64,
}

/// What the upcall gate writes when it suspends a handler.
#[repr(C, align(16))]
#[derive(Default)]
pub(crate) struct Promotion {
    pub(crate) registers: Registers,
    /// The handler's stack pointer, at the return address of its call of the slot.
    pub(crate) rsp: u64,
    /// Who goes on then, with the thread; `None` if handlers are not suspended.
    pub(crate) suspend: Option<unsafe extern "C" fn(&Thread) -> !>,
}

/// Where the upcalls' state of a thread has its [`Promotion`]: behind the clock.
pub(crate) const PROMOTION: usize = size_of::<Clock>().next_multiple_of(align_of::<Promotion>());

/// A handler that waits.
#[repr(C, align(16))]
pub(crate) struct Suspended {
    pub(crate) registers: Registers,
    /// Of its own calls, those that have not returned: that of the slot among them, unless it is a
    /// jump.
    pub(crate) calls: u32,
    /// Where they return to, outermost first: offsets, for the window may be moved meanwhile.
    pub(crate) returns: [u32; MOST_CALLS],
}
