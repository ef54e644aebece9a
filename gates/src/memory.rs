//! The host's hands in a window: bytes are moved by instructions that the compiler knows nothing
//! about, because other threads may write the same memory at the same time. Who may be touched is
//! checked by the owners of ranges, which alone call this ([`super::window`],
//! [`super::map::Mapping`]), and by their callers' tables.
//!
//! A checked page can go all the same: another thread takes the domain's right to it, or somebody
//! truncates the file behind a shared area. So a copy that meets a fault ends there and says so
//! ([`after_fault`]).

use core::arch::{asm, global_asm};

// Both take the destination in rdi, a source in rsi and a length in rdx, and return 0. All
// instructions that may fault stand between `postern_touches` and `postern_gone`, and when one
// does, the handler goes on at the latter. Few bytes are moved by pairs of loads and stores that
// overlap in the middle, all loads first; `rep movsb` takes dozens of cycles to begin, so it is for
// many.
global_asm!(
    ".p2align 4",
    "postern_touches:",
    "postern_copy:",
    "endbr64",
    "cmp rdx, 16",
    "jb 5f",
    "cmp rdx, 32",
    "ja 2f",
    "movdqu xmm0, [rsi]",
    "movdqu xmm1, [rsi + rdx - 16]",
    "movdqu [rdi], xmm0",
    "movdqu [rdi + rdx - 16], xmm1",
    "xor eax, eax",
    "ret",
    "2: cmp rdx, 64",
    "ja 3f",
    "movdqu xmm0, [rsi]",
    "movdqu xmm1, [rsi + 16]",
    "movdqu xmm2, [rsi + rdx - 32]",
    "movdqu xmm3, [rsi + rdx - 16]",
    "movdqu [rdi], xmm0",
    "movdqu [rdi + 16], xmm1",
    "movdqu [rdi + rdx - 32], xmm2",
    "movdqu [rdi + rdx - 16], xmm3",
    "xor eax, eax",
    "ret",
    "3: cmp rdx, 1024",
    "ja 8f",
    // The last 64 bytes begin at rdx; those before are moved by as many.
    "31: sub rdx, 64",
    "xor ecx, ecx",
    "4: movdqu xmm0, [rsi + rcx]",
    "movdqu xmm1, [rsi + rcx + 16]",
    "movdqu xmm2, [rsi + rcx + 32]",
    "movdqu xmm3, [rsi + rcx + 48]",
    "movdqu [rdi + rcx], xmm0",
    "movdqu [rdi + rcx + 16], xmm1",
    "movdqu [rdi + rcx + 32], xmm2",
    "movdqu [rdi + rcx + 48], xmm3",
    "add rcx, 64",
    "cmp rcx, rdx",
    "jb 4b",
    "movdqu xmm0, [rsi + rdx]",
    "movdqu xmm1, [rsi + rdx + 16]",
    "movdqu xmm2, [rsi + rdx + 32]",
    "movdqu xmm3, [rsi + rdx + 48]",
    "movdqu [rdi + rdx], xmm0",
    "movdqu [rdi + rdx + 16], xmm1",
    "movdqu [rdi + rdx + 32], xmm2",
    "movdqu [rdi + rdx + 48], xmm3",
    "xor eax, eax",
    "ret",
    "5: cmp edx, 8",
    "jb 6f",
    "mov rax, [rsi]",
    "mov rcx, [rsi + rdx - 8]",
    "mov [rdi], rax",
    "mov [rdi + rdx - 8], rcx",
    "xor eax, eax",
    "ret",
    "6: cmp edx, 4",
    "jb 7f",
    "mov eax, [rsi]",
    "mov ecx, [rsi + rdx - 4]",
    "mov [rdi], eax",
    "mov [rdi + rdx - 4], ecx",
    "xor eax, eax",
    "ret",
    // At most three: the first, the middle one and the last.
    "7: test edx, edx",
    "jz 9f",
    "mov r8, rdx",
    "shr r8, 1",
    "movzx eax, byte ptr [rsi]",
    "movzx ecx, byte ptr [rsi + r8]",
    "movzx r9d, byte ptr [rsi + rdx - 1]",
    "mov [rdi], al",
    "mov [rdi + r8], cl",
    "mov [rdi + rdx - 1], r9b",
    "9: xor eax, eax",
    "ret",
    // Where the destination is a few bytes further into its page than the source, `rep movsb` takes
    // 20 to 30 times as long on some processors (Zen 3: 1 to 31 bytes).
    "8: mov ecx, edi",
    "sub ecx, esi",
    "dec ecx",
    "and ecx, 4095",
    "cmp ecx, 63",
    "jb 31b",
    "mov rcx, rdx",
    "rep movsb",
    "xor eax, eax",
    "ret",
    "postern_fill:",
    "endbr64",
    "mov rcx, rdx",
    "xor eax, eax",
    "rep stosb",
    "ret",
    "postern_gone:",
    "mov eax, 1",
    "ret",
    ".irp name, copy, fill, touches, gone",
    ".globl postern_\\name",
    ".hidden postern_\\name",
    ".endr",
);

unsafe extern "C" {
    fn postern_copy(to: usize, from: usize, bytes: usize) -> u32;
    fn postern_fill(to: usize, unused: usize, bytes: usize) -> u32;
    static postern_touches: u8;
    static postern_gone: u8;
}

/// Where the interrupted thread goes on if `pc` is in a copy. None uses the stack, so it returns
/// from there.
pub(crate) fn after_fault(pc: usize) -> Option<usize> {
    let gone = &raw const postern_gone as usize;
    (&raw const postern_touches as usize..gone)
        .contains(&pc)
        .then_some(gone)
}

/// A page was not there any more, or did not allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// Copies bytes from one place to another, of which one is memory that others may be writing, or
/// that may go.
///
/// # Safety
/// One side is Rust's own, readable or writable; the other is a range of a window, or of another
/// reservation of the runtime's, to which no Rust reference is. If that is not accessible after
/// all, the copy ends early.
#[inline]
pub(super) unsafe fn copy(from: usize, to: usize, bytes: usize) -> Result<(), Gone> {
    // SAFETY: the ranges are disjoint, nothing of the host but the caller's slice is overwritten,
    // and assembly has no data races.
    match unsafe { postern_copy(to, from, bytes) } {
        0 => Ok(()),
        _ => Err(Gone),
    }
}

/// Fills a range with zero.
///
/// # Safety
/// It is a range of a window, or of another reservation of the runtime's, to which no Rust
/// reference is.
pub(super) unsafe fn fill(to: usize, bytes: usize) -> Result<(), Gone> {
    // SAFETY: as in `copy`.
    match unsafe { postern_fill(to, 0, bytes) } {
        0 => Ok(()),
        _ => Err(Gone),
    }
}

/// Reads a word of the calling thread's own stack.
///
/// # Safety
/// The address is between a stack pointer of the thread's and the top of the same stack.
pub(super) unsafe fn host_word(address: u64) -> u64 {
    let value: u64;
    // SAFETY: such a word is mapped; what it holds means nothing to the compiler.
    unsafe {
        asm!("mov {}, qword ptr [{}]", out(reg) value, in(reg) address, options(nostack, readonly, preserves_flags));
    }
    value
}

/// Writes a word of the control stack on which the innermost call runs, or is about to.
///
/// # Safety
/// It is a word that only an extension's returns or a gate's frame read, and no Rust frame has.
pub(super) unsafe fn set_host_word(address: u64, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("mov qword ptr [{}], {}", in(reg) address, in(reg) value, options(nostack, preserves_flags));
    }
}
