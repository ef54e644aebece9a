//! How a call ended otherwise than by returning: raw facts, as a signal handler can leave them.

/// Kinds of ends, as gates and handlers store them in `Thread::abort_kind`. [`crate::fault`] gives them meaning.
pub(crate) const SIGNAL: u32 = 1;
/// The deadline passed.
pub(crate) const DEADLINE: u32 = 2;
/// `Domain::interrupt` was called.
pub(crate) const INTERRUPT: u32 = 3;
/// Another thread's fault ended the domain.
pub(crate) const ANOTHER: u32 = 4;
/// A service was called with too little control stack.
pub(crate) const SERVICE_STACK: u32 = 5;
/// The extension called `__postern_exit`.
pub(crate) const EXIT: u32 = 6;
/// The extension called `__postern_abort`, or a service ended the call.
pub(crate) const ABORT: u32 = 7;
/// A service panicked.
pub(crate) const PANIC: u32 = 8;
/// The policy ended the call.
pub(crate) const KILL: u32 = 9;

/// Innermost return addresses that are kept.
pub(crate) const BACKTRACE: usize = 32;

/// What the handler saw.
#[derive(Clone, Copy)]
pub(crate) struct RawFault {
    /// One of the kinds above.
    pub kind: u32,
    /// Signal number, for [`SIGNAL`].
    pub signal: i32,
    /// The signal's code.
    pub code: i32,
    /// Trap number of the processor.
    pub trap: u64,
    /// Page-fault error code of the processor.
    pub error: u64,
    /// Faulting address, absolute.
    pub address: u64,
    /// Window base at that time.
    pub base: u64,
    /// rax rbx rcx rdx rsi rdi rbp r8…r15, in this order, then rip and rsp.
    pub registers: [u64; 17],
    /// Return addresses, innermost first, as offsets.
    pub backtrace: [u32; BACKTRACE],
    /// Depth of calls, which may exceed what `backtrace` holds.
    pub depth: u64,
    /// The facts above are from a signal context (not only the kind).
    pub located: bool,
}

impl Default for RawFault {
    fn default() -> Self {
        RawFault {
            kind: 0,
            signal: 0,
            code: 0,
            trap: 0,
            error: 0,
            address: 0,
            base: 0,
            registers: [0; 17],
            backtrace: [0; BACKTRACE],
            depth: 0,
            located: false,
        }
    }
}

/// Why a call was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Poisoned,
    /// A fault's restart policy lets the domain rest for so long.
    Resting(std::time::Duration),
    Busy,
    /// The domain is being moved: a reason to wait, which no caller sees.
    Moving,
    Closed,
    SignalBlocked(i32),
    HandlerReplaced(i32),
    InsideExtension,
    OnSignalStack,
    TooDeep,
    TooManyThreads,
    ThreadTable,
    NoMemory,
    NoDataStack,
    NoWatchdog,
}
