//! How a call ended otherwise than by returning: raw facts, as a signal handler can leave them.

/// Kinds of ends, as gates and handlers store them in `Thread::abort_kind`.
/// [`super::above::Above::ended`] gives them meaning.
pub const SIGNAL: u32 = 1;
/// The deadline passed.
pub const DEADLINE: u32 = 2;
/// `Domain::interrupt` was called.
pub const INTERRUPT: u32 = 3;
/// Another thread's fault ended the domain.
pub const ANOTHER: u32 = 4;
/// A service was called with too little control stack.
pub const SERVICE_STACK: u32 = 5;
/// The extension called `__postern_exit`, or the program of which the call is a part has ended.
pub const EXIT: u32 = 6;
/// The extension called `__postern_abort`, or a service ended the call.
pub const ABORT: u32 = 7;
/// A service panicked.
pub const PANIC: u32 = 8;
/// The policy ended the call.
pub const KILL: u32 = 9;
/// The handler of an upcall called a service that handlers may not call.
pub const NOT_IN_UPCALLS: u32 = 10;
/// It did, and no thread of its domain's had room for one more handler that waits.
pub const NO_SANDBOX_THREAD: u32 = 11;
/// It did, deeper in calls than a handler that waits may be.
pub const TOO_DEEP_TO_WAIT: u32 = 12;

/// Innermost return addresses that are kept.
pub const BACKTRACE: usize = 32;

/// What the handler saw.
#[derive(Clone, Copy)]
pub struct RawFault {
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
pub enum Refusal {
    /// An earlier fault closed the domain.
    Poisoned,
    /// A fault's restart policy lets the domain rest for so long.
    Resting(core::time::Duration),
    /// Somebody has the domain for itself.
    Busy,
    /// The domain is being moved: a reason to wait, which no caller sees.
    Moving,
    /// The domain is closed for good, or gone.
    Closed,
    /// The thread blocks this signal.
    SignalBlocked(i32),
    /// Another handler than ours is installed for this signal.
    HandlerReplaced(i32),
    /// The host's handler for this signal would run on the control stack.
    HandlerStack(i32),
    /// A signal handler that interrupted an extension, or a gate, calls.
    InsideExtension,
    /// A signal handler calls, on its alternate stack.
    OnSignalStack,
    /// Calls of the thread nest too deeply, or its control stack has no room.
    TooDeep,
    /// The domain has as many data stacks as it may.
    TooManyThreads,
    /// As many threads as can be are registered.
    ThreadTable,
    /// No memory for stacks or slots.
    NoMemory,
    /// The domain's window or data stack has no room.
    NoDataStack,
    /// Nobody would look at deadlines.
    NoWatchdog,
}

impl Refusal {
    /// As one word, never 0 or 1.
    pub fn word(self) -> u64 {
        let (kind, detail) = match self {
            Refusal::Poisoned => (2, 0),
            Refusal::Resting(left) => {
                // Of 56 bits: two years.
                let nanos = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
                (3, nanos.min(u64::MAX >> 8))
            }
            Refusal::Busy | Refusal::Moving => (4, 0),
            Refusal::Closed => (5, 0),
            Refusal::SignalBlocked(signal) => (6, signal as u64),
            Refusal::HandlerReplaced(signal) => (7, signal as u64),
            Refusal::HandlerStack(signal) => (8, signal as u64),
            Refusal::InsideExtension => (9, 0),
            Refusal::OnSignalStack => (10, 0),
            Refusal::TooDeep => (11, 0),
            Refusal::TooManyThreads => (12, 0),
            Refusal::ThreadTable => (13, 0),
            Refusal::NoMemory => (14, 0),
            Refusal::NoDataStack => (15, 0),
            Refusal::NoWatchdog => (16, 0),
        };
        detail << 8 | kind
    }

    /// The refusal of which this is the word.
    pub fn of_word(word: u64) -> Option<Refusal> {
        let (kind, detail) = (word & 0xff, word >> 8);
        Some(match kind {
            2 => Refusal::Poisoned,
            3 => Refusal::Resting(core::time::Duration::from_nanos(detail)),
            4 => Refusal::Busy,
            5 => Refusal::Closed,
            6 => Refusal::SignalBlocked(detail as i32),
            7 => Refusal::HandlerReplaced(detail as i32),
            8 => Refusal::HandlerStack(detail as i32),
            9 => Refusal::InsideExtension,
            10 => Refusal::OnSignalStack,
            11 => Refusal::TooDeep,
            12 => Refusal::TooManyThreads,
            13 => Refusal::ThreadTable,
            14 => Refusal::NoMemory,
            15 => Refusal::NoDataStack,
            16 => Refusal::NoWatchdog,
            _ => return None,
        })
    }
}
