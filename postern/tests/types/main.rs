//! Types at the boundary: the host's decide, a file's claims are only compared; and `_Bool`, which
//! is 0 or 1 whoever passes it.

mod bools;
mod claims;
#[path = "../support/mod.rs"]
mod support;

use postern::{Limits, Signature};
use std::arch::asm;

fn types(text: &str) -> Signature {
    text.parse().unwrap()
}

/// Calls a C function pointer with this in all integer argument registers and in both halves of all
/// vector argument registers: as a host's register holds it that is no argument. Gives rax.
fn call_with(p: *const (), integers: u64, vectors: u64) -> u64 {
    let mut result = p as u64;
    // SAFETY: the stubs of these tests keep the C convention and take no argument from the stack.
    unsafe {
        asm!(
            "movq xmm0, {v}", "movlhps xmm0, xmm0", "movaps xmm1, xmm0", "movaps xmm2, xmm0", "movaps xmm3, xmm0",
            "movaps xmm4, xmm0", "movaps xmm5, xmm0", "movaps xmm6, xmm0", "movaps xmm7, xmm0",
            "call rax",
            v = in(reg) vectors,
            inout("rax") result, inout("rdi") integers => _, inout("rsi") integers => _, inout("rdx") integers => _,
            inout("rcx") integers => _, inout("r8") integers => _, inout("r9") integers => _,
            clobber_abi("C"));
    }
    result
}

/// With a limit of the call depth, calls take the slow path.
fn limits(depth: bool) -> Limits {
    let mut limits = Limits::default();
    limits.call_depth = depth.then_some(100);
    limits
}
