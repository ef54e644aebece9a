//! The instruction `syscall`.

use core::arch::asm;

use postern_aegis_abi::Error;

use crate::calls::Word;

/// A call: the number in rax, arguments in rdi, rsi, rdx, r10, r8 and, where there is a sixth, r9.
///
/// # Safety
/// The call must not put another page where this program has a part of itself: Rust's memory stays
/// what it is. Whatever else a call does is between environments and the kernel.
#[inline(always)]
pub unsafe fn raw(call: u64, arguments: [u64; 6]) -> Result<Word, Error> {
    let result: i64;
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: the instruction takes rax, rcx and r11 (rflags come back as they were); memory that
    // the kernel stores to is the caller's duty, and the compiler is told that memory may change.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") call as i64 => result,
            in("rdi") first, in("rsi") second, in("rdx") third,
            in("r10") fourth, in("r8") fifth, in("r9") sixth,
            lateout("rcx") _, lateout("r11") _,
            options(nostack, preserves_flags)
        );
    }
    // A capability is any word: only the numbers of errors are errors.
    if (-4095..0).contains(&result) {
        Err(Error::of(result).unwrap_or(Error::NoCall))
    } else {
        Ok(result as u64)
    }
}
