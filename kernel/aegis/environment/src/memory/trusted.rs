//! Words at addresses that no reference of Rust covers.

use core::arch::asm;

/// Reads a word, in one instruction that can fault; it is `mov (%rdi), %rax`, three bytes long.
pub fn read(from: u64) -> u64 {
    let word: u64;
    // SAFETY: the caller has seen that no memory of the program is there. Where nothing is mapped,
    // the instruction raises an exception, which changes no memory either.
    unsafe {
        asm!("mov rax, [rdi]", in("rdi") from, out("rax") word, options(nostack, preserves_flags));
    }
    word
}

/// Writes a word, in one instruction that can fault; it is `mov %rsi, (%rdi)`, three bytes long.
pub fn write(to: u64, word: u64) {
    // SAFETY: as above.
    unsafe {
        asm!("mov [rdi], rsi", in("rdi") to, in("rsi") word, options(nostack, preserves_flags));
    }
}
