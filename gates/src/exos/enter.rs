//! Typed calls: registers filled, the gate called, results taken out. In assembly, because the
//! library is built without vector registers.

use super::above::above;
use super::entry::Entry;
use super::gate::{Label, STATUS_REFUSED, without_words};
use super::outcome::Refusal;
use core::arch::global_asm;
use core::ffi::c_void;
use core::mem::offset_of;

/// What a gate gave back.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Returned {
    /// rax.
    pub integer: u64,
    /// The low 64 bits of xmm0.
    pub float: u64,
    /// One of the gate's statuses.
    pub status: u32,
}

/// A call, as the assembly reads it.
#[repr(C)]
struct Call {
    gate: usize,
    entry: *const Entry,
    integers: [u64; 6],
    floats: [u64; 8],
    words: *const u64,
    count: usize,
    returned: Returned,
}

global_asm!(
    ".p2align 4",
    ".globl postern_enter",
    ".hidden postern_enter",
    "postern_enter:",
    "push rbp",
    "mov rbp, rsp",
    "push rbx",
    "push r12",
    "mov rbx, rdi",
    "mov rcx, [rbx + {count}]",
    "mov rdx, [rbx + {words}]",
    "test cl, 1",
    "jz 2f",
    "sub rsp, 8",
    "2:",
    "test rcx, rcx",
    "jz 3f",
    "push qword ptr [rdx + 8*rcx - 8]",
    "dec rcx",
    "jmp 2b",
    "3:",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7",
    "movq xmm\\n, qword ptr [rbx + {floats} + 8 * \\n]",
    ".endr",
    "mov rdi, [rbx + {integers}]",
    "mov rsi, [rbx + {integers} + 8]",
    "mov rdx, [rbx + {integers} + 16]",
    "mov rcx, [rbx + {integers} + 24]",
    "mov r8, [rbx + {integers} + 32]",
    "mov r9, [rbx + {integers} + 40]",
    "mov rax, [rbx + {entry}]",
    "call [rbx + {gate}]",
    "mov [rbx + {returned} + {integer}], rax",
    "movq qword ptr [rbx + {returned} + {float}], xmm0",
    "mov [rbx + {returned} + {status}], r11d",
    "lea rsp, [rbp - 16]",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    // The gate of typed entries with words on the stack: only `all` knows how many its caller has.
    ".p2align 4",
    ".globl postern_without_words",
    ".hidden postern_without_words",
    "postern_without_words:",
    "sub rsp, 8",
    "call {refuse}",
    "add rsp, 8",
    "xor eax, eax",
    "pxor xmm0, xmm0",
    "mov r11d, {REFUSED}",
    "ret",
    count = const offset_of!(Call, count),
    words = const offset_of!(Call, words),
    floats = const offset_of!(Call, floats),
    integers = const offset_of!(Call, integers),
    entry = const offset_of!(Call, entry),
    gate = const offset_of!(Call, gate),
    returned = const offset_of!(Call, returned),
    integer = const offset_of!(Returned, integer),
    float = const offset_of!(Returned, float),
    status = const offset_of!(Returned, status),
    refuse = sym refuse,
    REFUSED = const STATUS_REFUSED,
);

unsafe extern "C" {
    fn postern_enter(call: *mut c_void);
}

extern "C" fn refuse() {
    (above().refused)(Refusal::NoDataStack);
}

/// Calls an entry with floating-point arguments as bit patterns (zero-extended to 64 bits) and
/// words for the stack. If these are fewer than the entry takes, it refuses.
pub fn all(entry: &Entry, a: [u64; 6], f: [u64; 8], stack: &[u64]) -> Returned {
    let gate = match entry.stack_words as usize {
        0 => entry.gate,
        // Of C's gates, which a typed call does not expect, there is none.
        words if words <= stack.len() && entry.gate == without_words() => {
            Label::postern_gate_full.address()
        }
        _ => without_words(),
    };
    let mut call = Call {
        gate,
        entry,
        integers: a,
        floats: f,
        words: stack.as_ptr(),
        count: stack.len(),
        returned: Returned::default(),
    };
    // SAFETY: an entry gate for this entry, which keeps C's calling convention; the words are as
    // many as `count` says.
    unsafe { postern_enter((&raw mut call).cast()) };
    call.returned
}
