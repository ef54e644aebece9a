//! The dispatcher: calls that come from sites that were rewritten ([`crate::sites`]), without the
//! kernel.
//!
//! It takes the thread's block, stack and base of fs as the signal's handler does, asks the agent,
//! and goes on to where the call passes, or behind it. All that is not the common case comes the
//! *slow way*: from the near stub's `syscall`, which the kernel stops. If the agent has been asked,
//! what it said is found there.

use crate::agent::{self, Asked, Verdict};
use crate::calls;
use crate::near;
use crate::thread::{
    Block, DEFERRED, FIRST_WORD, INSIDE, NUMBER, OTHER_BYTES, OTHER_START, PROGRAM_STACK, SAID,
    STACK_TOP,
};
use core::arch::global_asm;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// What the agent has said of a call that comes the slow way.
pub mod said {
    /// It passes with the words that it has; its number is kept.
    pub const AS_IT_IS: u32 = 1;
    /// It has a result, which is kept.
    pub const RESULT: u32 = 2;
    /// It passes with the words that are kept.
    pub const WORDS: u32 = 3;
    /// And the agent is called again behind it.
    pub const WORDS_AFTER: u32 = 4;
}

/// What becomes of a call, for assembly.
const PASSES: u64 = 0;
const ANSWERED: u64 = 1;
/// The slow way: the agent was asked, or not yet.
const ASKED: u64 = 2;
const NOT_ASKED: u64 = 3;

/// What the dispatcher has put on its stack.
#[repr(C)]
struct Saved {
    program_fs: u64,
    rax: u64,
    r9: u64,
    r8: u64,
    r10: u64,
    rdx: u64,
    rsi: u64,
    rdi: u64,
    record: u64,
    flags: u64,
}

/// Registers that the agent's text has instructions for: the program's are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Vectors {
    /// None but general ones.
    None = 0,
    /// The lower halves of the vector registers.
    Lower = 1,
    /// And those of the x87.
    LowerAndFloat = 2,
}

#[unsafe(no_mangle)]
static INTERPOSE_VECTORS: AtomicU32 = AtomicU32::new(0);

/// Before the first site is rewritten.
pub fn begin(vectors: Vectors) {
    INTERPOSE_VECTORS.store(vectors as u32, SeqCst);
}

global_asm!(
    ".macro VECTORS all, move:vararg",
    "cmp dword ptr [rip + INTERPOSE_VECTORS], {LOWER}",
    "jb 7f",
    "ja 8f",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
    ".ifc \\move, to",
    "movaps [rsp + 16 * \\n], xmm\\n",
    ".else",
    "movaps xmm\\n, [rsp + 16 * \\n]",
    ".endif",
    ".endr",
    "jmp 7f",
    "8:",
    "\\all [rsp]",
    "7:",
    ".endm",
    ".macro BACK_TO_PROGRAM",
    "mov rcx, fs:[0]",
    "wrgsbase rcx",
    "pop rcx",
    "wrfsbase rcx",
    "pop rax",
    "pop r9",
    "pop r8",
    "pop r10",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "pop r11",
    "popfq",
    "mov rsp, gs:[{PROGRAM_STACK}]",
    ".endm",
    // r11 = the near stub's record; rcx is free, all others are the program's. From here on signals
    // are put off, until INSIDE is 0 again: what is before and behind that is all the program's.
    ".p2align 6",
    ".globl interpose_fast",
    "interpose_fast:",
    "mov dword ptr gs:[{INSIDE}], 1",
    "mov gs:[{NUMBER}], rax",
    "lahf",
    "seto al",
    "mov rcx, rsp",
    "sub rcx, gs:[{OTHER_START}]",
    "cmp rcx, gs:[{OTHER_BYTES}]",
    "jb 9f",
    "mov gs:[{PROGRAM_STACK}], rsp",
    "mov rsp, gs:[{STACK}]",
    // Overflow, and the others of the arithmetic's.
    "add al, 127",
    "sahf",
    "mov rax, gs:[{NUMBER}]",
    "pushfq",
    "push r11",
    "push rdi",
    "push rsi",
    "push rdx",
    "push r10",
    "push r8",
    "push r9",
    "push rax",
    "rdfsbase rcx",
    "push rcx",
    "rdgsbase rcx",
    "wrfsbase rcx",
    "cld",
    "mov rdi, rsp",
    "sub rsp, 512",
    "VECTORS fxsave64, to",
    "call {dispatched}",
    "VECTORS fxrstor64, from",
    "add rsp, 512",
    "cmp eax, {ANSWERED}",
    "je 2f",
    "ja 3f",
    "BACK_TO_PROGRAM",
    "mov dword ptr gs:[{INSIDE}], 0",
    // Not before: no signal is put off any more. Flags are the program's.
    "mov ecx, gs:[{DEFERRED}]",
    "jrcxz 1f",
    "mov ecx, {AS_IT_IS}",
    "jmp 4f",
    "1:",
    "jmp qword ptr [r11]",
    "2:",
    "BACK_TO_PROGRAM",
    "mov dword ptr gs:[{INSIDE}], 0",
    "mov ecx, gs:[{DEFERRED}]",
    "jrcxz 1f",
    "mov ecx, {RESULT}",
    "4:",
    // All signals are blocked.
    "mov dword ptr gs:[{INSIDE}], 1",
    "mov gs:[{SAID}], ecx",
    "mov gs:[{FIRST_WORD}], rax",
    "jmp 5f",
    "1:",
    "jmp qword ptr [r11 + {BACK}]",
    "3:",
    "cmp eax, {ASKED}",
    "jne 6f",
    "BACK_TO_PROGRAM",
    "5:",
    "mov eax, {ANY_CALL}",
    "lea rcx, [r11 + {SLOW}]",
    "jmp rcx",
    "9:",
    "add al, 127",
    "sahf",
    "mov rax, gs:[{NUMBER}]",
    "jmp 9f",
    "6:",
    "BACK_TO_PROGRAM",
    "9:",
    "mov dword ptr gs:[{INSIDE}], 0",
    "lea rcx, [r11 + {SLOW}]",
    "jmp rcx",
    LOWER = const Vectors::Lower as u32,
    INSIDE = const INSIDE,
    DEFERRED = const DEFERRED,
    SAID = const SAID,
    FIRST_WORD = const FIRST_WORD,
    OTHER_START = const OTHER_START,
    OTHER_BYTES = const OTHER_BYTES,
    NUMBER = const NUMBER,
    PROGRAM_STACK = const PROGRAM_STACK,
    STACK = const STACK_TOP,
    ANSWERED = const ANSWERED,
    ASKED = const ASKED,
    AS_IT_IS = const said::AS_IT_IS,
    RESULT = const said::RESULT,
    BACK = const near::BACK,
    SLOW = const near::SLOW,
    ANY_CALL = const crate::system::number::GETPID,
    dispatched = sym dispatched,
);

unsafe extern "C" {
    fn interpose_fast();
}

/// Where near stubs lead.
pub fn entry() -> u64 {
    interpose_fast as *const () as u64
}

extern "C" fn dispatched(saved: &mut Saved) -> u64 {
    let block = Block::mine();
    let words = [
        saved.rdi, saved.rsi, saved.rdx, saved.r10, saved.r8, saved.r9,
    ];
    let number = u64::from(saved.rax as u32);
    if !block.sits() || calls::is_special(number, words) || !block.call.kept.is_empty() {
        return NOT_ASKED;
    }
    let asked = Asked {
        number,
        arguments: words,
        result: 0,
        note: 0,
    };
    let (said, made) = match agent::ask(block, asked) {
        Verdict::Answer(result) => {
            saved.rax = result as u64;
            return ANSWERED;
        }
        Verdict::Pass(made) if made.number == number && made.arguments == words => return PASSES,
        Verdict::Pass(made) => (said::WORDS, made),
        Verdict::PassAfter(made) => (said::WORDS_AFTER, made),
    };
    let [a, b, c, d, e, f] = made.arguments;
    let words = [made.number, a, b, c, d, e, f, made.note];
    for (kept, word) in block.call.words.iter().zip(words) {
        kept.store(word, Relaxed);
    }
    block.call.said.store(said, Relaxed);
    ASKED
}

/// What the agent has said of the call that came the slow way now, if it was asked: by the
/// dispatcher.
pub fn said(block: &Block, arguments: [u64; 6]) -> Option<Verdict> {
    let call = &block.call;
    if call.inside.swap(0, SeqCst) == 0 {
        return None;
    }
    let [number, a, b, c, d, e, f, note] = call.words.each_ref().map(|word| word.load(Relaxed));
    let asked = |number, arguments| Asked {
        number,
        arguments,
        result: 0,
        note,
    };
    Some(match call.said.load(Relaxed) {
        said::RESULT => Verdict::Answer(number as i64),
        said::AS_IT_IS => Verdict::Pass(asked(u64::from(number as u32), arguments)),
        said::WORDS => Verdict::Pass(asked(number, [a, b, c, d, e, f])),
        _ => Verdict::PassAfter(asked(number, [a, b, c, d, e, f])),
    })
}
