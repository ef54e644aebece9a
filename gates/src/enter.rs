//! Typed calls: registers filled, the gate called, results taken out.

use super::above::above;
use super::entry::Entry;
use super::gate::{FLAG_PAYLOAD, Label, STATUS_REFUSED, without_words};
use super::outcome::Refusal;
use super::payload::CallPayload;
use super::thread;
use std::arch::{asm, global_asm};
use std::sync::atomic::Ordering;

/// What a gate gave back.
pub struct Returned {
    /// rax.
    pub integer: u64,
    /// The low 64 bits of xmm0.
    pub float: u64,
    /// One of the gate's statuses.
    pub status: u32,
}

// The gate of typed entries with words on the stack: only [`all`] knows how many its caller has.
// Whoever comes here has none, and is refused.
global_asm!(
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
    refuse = sym refuse,
    REFUSED = const STATUS_REFUSED,
);

extern "C" fn refuse() {
    (above().refused)(Refusal::NoDataStack);
}

/// Calls an entry whose arguments are in integer registers only. One that takes words on the stack
/// refuses.
#[inline(always)]
pub fn integers(entry: &Entry, a: [u64; 6]) -> Returned {
    let (integer, float, status): (u64, u64, u32);
    // SAFETY: `entry.gate` is an entry gate for this entry (the only constructor is `Domain`'s),
    // which keeps the System V convention: callee-saved registers and the stack come back as they
    // were, all others are declared clobbered. All six integer registers are set, as the unmasked
    // gate asks.
    unsafe {
        asm!(
            "call qword ptr [rax]",
            inout("rax") entry => integer,
            inout("rdi") a[0] => _, inout("rsi") a[1] => _, inout("rdx") a[2] => _,
            inout("rcx") a[3] => _, inout("r8") a[4] => _, inout("r9") a[5] => _,
            lateout("r11") status, lateout("xmm0") float,
            clobber_abi("C"),
        );
    }
    Returned {
        integer,
        float,
        status,
    }
}

/// Calls an entry with floating-point arguments as bit patterns (zero-extended to 64 bits) and
/// words for the stack. If these are fewer than the entry takes, it refuses.
pub fn all(entry: &Entry, a: [u64; 6], f: [u64; 8], stack: &[u64]) -> Returned {
    let (integer, float, status): (u64, f64, u32);
    let gate = match entry.stack_words as usize {
        0 => entry.gate,
        // Of C's gates, which a typed call does not expect, there is none.
        words if words <= stack.len() && entry.gate == without_words() => {
            Label::postern_gate_full.address()
        }
        _ => without_words(),
    };
    // SAFETY: as in `integers`. The words are pushed in reverse order above an aligned stack
    // pointer, which is kept in a callee-saved register over the call.
    unsafe {
        asm!(
            "mov r12, rsp",
            "test r13d, 1",
            "jz 2f",
            "sub rsp, 8",
            "2:",
            "test r13, r13",
            "jz 3f",
            "push qword ptr [r14 + 8*r13 - 8]",
            "dec r13",
            "jmp 2b",
            "3:",
            "call r10",
            "mov rsp, r12",
            out("r12") _,
            inout("r10") gate => _,
            in("r14") stack.as_ptr(),
            inout("r13") stack.len() => _,
            inout("rax") entry => integer,
            inout("rdi") a[0] => _, inout("rsi") a[1] => _, inout("rdx") a[2] => _,
            inout("rcx") a[3] => _, inout("r8") a[4] => _, inout("r9") a[5] => _,
            inout("xmm0") f64::from_bits(f[0]) => float, inout("xmm1") f64::from_bits(f[1]) => _,
            inout("xmm2") f64::from_bits(f[2]) => _, inout("xmm3") f64::from_bits(f[3]) => _,
            inout("xmm4") f64::from_bits(f[4]) => _, inout("xmm5") f64::from_bits(f[5]) => _,
            inout("xmm6") f64::from_bits(f[6]) => _, inout("xmm7") f64::from_bits(f[7]) => _,
            lateout("r11") status,
            clobber_abi("C"),
        );
    }
    Returned {
        integer,
        float: float.to_bits(),
        status,
    }
}

/// Calls an entry with [`super::gate::FLAG_PAYLOAD`]: `a[0]` is filled in.
pub fn with(entry: &Entry, a: [u64; 6], payload: &mut CallPayload<'_>) -> Returned {
    let thread = thread::current();
    let former = (
        thread.limited.load(Ordering::Relaxed),
        thread.limit.load(Ordering::Relaxed),
    );
    let pointer: *mut CallPayload<'_> = payload;
    if entry.flags & FLAG_PAYLOAD != 0 {
        thread.payload.store(pointer.cast(), Ordering::Relaxed);
    }
    let returned = integers(entry, a);
    // Refused calls leave it there.
    thread
        .payload
        .store(std::ptr::null_mut(), Ordering::Relaxed);
    if payload.limit != 0 {
        thread.set_limit(former.0, former.1);
    }
    returned
}

/// The bytes of words.
pub fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: the same memory; every byte of a u64 is a valid u8.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
