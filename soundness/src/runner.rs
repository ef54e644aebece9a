//! The runner's assembly and the structures that it shares with [`crate::batch`].

use std::arch::global_asm;
use std::mem::offset_of;

/// Longest trace of a snippet, in instructions.
pub const TRACE: usize = 64;

/// How a snippet ended.
pub const RETURNED: u32 = 1;
/// By a signal.
pub const SIGNALLED: u32 = 2;
/// After as many single steps as were asked for.
pub const STEPPED: u32 = 3;
/// It was still running at the second tick of the timer.
pub const ENDLESS: u32 = 4;

/// Names of the bits of [`Output::mask`]: what was not as it must be.
pub const COMPLAINTS: [&str; 8] = [
    "fs base changed",
    "gs base changed",
    "MXCSR control bits changed",
    "x87 state changed without the x87 fact",
    "a selector changed",
    "a vector register changed without the xmm fact",
    "an upper half changed without the ymm fact",
    "flags of MXCSR changed without the float fact",
];

/// What the runner reads of a snippet.
#[repr(C, align(256))]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Input {
    /// Address of its first byte.
    pub entry: u64,
    /// [`XMM`], [`YMM`], [`X87`], [`FLOAT`].
    pub facts: u32,
    /// Flags at entry; with TF, every instruction is traced.
    pub rflags: u32,
    /// Address of sixteen 32-byte values for the vector registers.
    pub vectors: u64,
    /// Steps to trace at most.
    pub limit: u64,
    /// MXCSR at entry.
    pub mxcsr: u64,
    /// rax rcx rdx rbx (rsp) rbp rsi rdi r8 … r15.
    pub gprs: [u64; 16],
}

/// What the runner notes of a snippet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// [`RETURNED`], [`SIGNALLED`], [`STEPPED`] or [`ENDLESS`]; 0 if it was never finished.
    pub kind: u32,
    /// Bit n: `COMPLAINTS[n]`.
    pub mask: u32,
    /// Signal number.
    pub signal: u32,
    /// The processor's trap number.
    pub trap: u32,
    /// The processor's error code.
    pub error: u32,
    /// Flags at the end.
    pub flags: u32,
    /// Faulting address.
    pub address: u64,
    /// Where it ended.
    pub rip: u64,
    /// Stack pointer at the end.
    pub rsp: u64,
    /// Entries of `trace`.
    pub steps: u64,
    /// The word on top of the stack at the end.
    pub word: u64,
    /// MXCSR at the end.
    pub mxcsr: u64,
    /// Of vector registers at the end; and of general ones, unless it returned.
    pub digest: u64,
    /// Window offsets of rip after each step.
    pub trace: [u32; TRACE],
}

/// The state page, from its start.
#[repr(C)]
#[derive(Debug)]
pub struct StatePage {
    /// Array of [`Input`].
    pub inputs: u64,
    /// Array of [`Output`].
    pub outputs: u64,
    /// Their number.
    pub count: u64,
    /// The one that runs.
    pub index: u64,
    /// Top of the control stack.
    pub stack: u64,
    /// fs base while snippets run.
    pub fs: u64,
    /// gs base while snippets run: the window's.
    pub gs: u64,
    /// Executable range of the window: address.
    pub text: u64,
    /// And length.
    pub text_len: u64,
    /// For the timer.
    pub alarm: u64,
    /// 1 once everything else is unmapped.
    pub result: u64,
    /// Ranges to unmap: address and length; a length of 0 ends the list.
    pub gaps: [[u64; 2]; 64],
}

/// Fact bits in [`Input::facts`].
pub const XMM: u32 = 1;
/// The snippet can touch upper halves.
pub const YMM: u32 = 2;
/// The snippet can touch the x87 unit.
pub const X87: u32 = 4;
/// MXCSR governs an instruction of the snippet.
pub const FLOAT: u32 = 8;

const _: () = assert!(size_of::<Input>() == 256);

global_asm!(
    include_str!("runner.s"),
    OUTPUT = const size_of::<Output>(),
    O_TRACE = const offset_of!(Output, trace),
    I_ENTRY = const offset_of!(Input, entry),
    I_FACTS = const offset_of!(Input, facts),
    I_RFLAGS = const offset_of!(Input, rflags),
    I_VECTORS = const offset_of!(Input, vectors),
    I_LIMIT = const offset_of!(Input, limit),
    O_MXCSR = const offset_of!(Output, mxcsr),
    O_DIGEST = const offset_of!(Output, digest),
    I_MXCSR = const offset_of!(Input, mxcsr),
    I_GPRS = const offset_of!(Input, gprs),
    RETURNED = const RETURNED,
    SIGNALLED = const SIGNALLED,
    STEPPED = const STEPPED,
    ENDLESS = const ENDLESS,
    XMM = const XMM,
    YMM = const YMM,
    X87 = const X87,
    FLOAT = const FLOAT,
    BAD_FS = const 1,
    BAD_GS = const 2,
    BAD_MXCSR = const 4,
    BAD_X87 = const 8,
    BAD_SELECTOR = const 16,
    BAD_VECTOR = const 32,
    BAD_UPPER = const 64,
    BAD_FLAGS = const 128,
);

unsafe extern "C" {
    /// First byte of the runner.
    pub static postern_runner: u8;
    /// What signal handlers return to.
    pub static postern_runner_restorer: u8;
    /// The signal handler.
    pub static postern_runner_handler: u8;
    /// The state page.
    pub static postern_runner_state: u8;
    /// End of the runner.
    pub static postern_runner_end: u8;
}
