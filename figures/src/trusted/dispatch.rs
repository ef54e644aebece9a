//! Syscall User Dispatch by itself: the kernel sends a signal instead of each call, and the
//! signal's handler makes it.

use super::process::{Child, words_of_all};
use std::arch::{asm, global_asm, x86_64::_rdtsc};
use std::ffi::c_void;
use std::sync::atomic::Ordering::SeqCst;

// The one part of the text whose calls are made as they are: any call, and the handler's return.
global_asm!(
    ".globl postern_figures_dispatch_begin",
    ".globl postern_figures_dispatch_return",
    ".globl postern_figures_dispatch_end",
    "postern_figures_dispatch_begin:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "ret",
    "postern_figures_dispatch_return:",
    "mov eax, 15",
    "syscall",
    // The kernel looks at where the call would return to.
    "ud2",
    "postern_figures_dispatch_end:",
);

type Made = unsafe extern "C" fn(i64, i64, i64, i64, i64, i64, i64) -> i64;

unsafe extern "C" {
    #[link_name = "postern_figures_dispatch_begin"]
    fn begin(number: i64, a: i64, b: i64, c: i64, d: i64, e: i64, f: i64) -> i64;
    #[link_name = "postern_figures_dispatch_return"]
    fn back();
    #[link_name = "postern_figures_dispatch_end"]
    fn end();
}

/// As the kernel has it.
#[repr(C)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

const RESTORER: u64 = 0x0400_0000;
/// `prctl`'s PR_SET_SYSCALL_USER_DISPATCH, and its PR_SYS_DISPATCH_ON.
const SET_DISPATCH: i32 = 59;
const ON: i64 = 1;

extern "C" fn make(_signal: i32, _info: *mut libc::siginfo_t, context: *mut c_void) {
    let made: Made = begin;
    // SAFETY: the kernel passes the context of a thread that makes a call; the handler makes the
    // same, and gives it what it wants.
    unsafe {
        let words = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let word = |register: i32| words[register as usize];
        let result = made(
            word(libc::REG_RAX),
            word(libc::REG_RDI),
            word(libc::REG_RSI),
            word(libc::REG_RDX),
            word(libc::REG_R10),
            word(libc::REG_R8),
            word(libc::REG_R9),
        );
        words[libc::REG_RAX as usize] = result;
    }
}

/// For the rest of the calling process.
///
/// # Safety
/// It is a child with one thread, which does not execute another program.
unsafe fn install() -> bool {
    let action = Action {
        handler: make as extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) as usize,
        flags: libc::SA_SIGINFO as u64 | RESTORER,
        restorer: back as unsafe extern "C" fn() as usize,
        mask: 0,
    };
    let from = begin as Made as usize;
    let length = end as unsafe extern "C" fn() as usize - from;
    // SAFETY: the kernel reads the structure; the handler is there as long as the process.
    unsafe {
        let set = libc::SYS_rt_sigaction;
        libc::syscall(set, libc::SIGSYS, &raw const action, 0, 8) == 0
            && libc::prctl(SET_DISPATCH, ON, from, length, 0) == 0
    }
}

/// A call that is measured, by an instruction outside that part.
///
/// # Safety
/// What the kernel does with the words is nothing to this process.
#[inline(always)]
unsafe fn call(number: i64, words: [i64; 3]) -> i64 {
    let result;
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "syscall",
            inout("rax") number => result,
            in("rdi") words[0],
            in("rsi") words[1],
            in("rdx") words[2],
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `getppid`
    Nothing,
    /// `read` of one byte from `/dev/zero`.
    Read,
    /// `open` of that file, and `close`.
    Open,
}

/// Cycles of the processor's clock that a call takes, the best of `rounds` rounds of `count`.
///
/// # Errors
/// The kernel has no such thing (it needs Linux 5.11).
pub fn cycles(what: Call, rounds: u32, count: u32) -> Result<f64, String> {
    let told = &words_of_all(1)?[0];
    let child = Child::new(|| {
        let mut byte = 0u8;
        let buffer = (&raw mut byte) as i64;
        let path = c"/dev/zero".as_ptr() as i64;
        // SAFETY: the calls write at most the byte, in a child that ends here.
        unsafe {
            let file = call(libc::SYS_open, [path, 0, 0]);
            if file < 0 || !install() {
                return;
            }
            let mut best = u64::MAX;
            for _ in 0..rounds {
                let begun = _rdtsc();
                for _ in 0..count {
                    match what {
                        Call::Nothing => call(libc::SYS_getppid, [0; 3]),
                        Call::Read => call(libc::SYS_read, [file, buffer, 1]),
                        Call::Open => {
                            let file = call(libc::SYS_open, [path, 0, 0]);
                            call(libc::SYS_close, [file, 0, 0])
                        }
                    };
                }
                best = best.min(_rdtsc() - begun);
            }
            told.store(best, SeqCst);
        }
    })?;
    drop(child);
    match told.load(SeqCst) {
        0 => Err("this kernel has no Syscall User Dispatch: it needs Linux 5.11".to_owned()),
        best => Ok(best as f64 / f64::from(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_as_signals() {
        for what in [Call::Nothing, Call::Read, Call::Open] {
            let cycles = cycles(what, 3, 100).unwrap();
            assert!(cycles > 100.0 && cycles < 1e7, "{cycles}");
        }
    }
}
