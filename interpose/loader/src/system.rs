//! System calls of the loader's own. It lies where the kernel lets them pass.

use core::arch::asm;

/// Linux's numbers, those that are named here.
#[allow(missing_docs, reason = "as in the kernel's table")]
pub mod number {
    pub const WRITE: u64 = 1;
    pub const OPEN: u64 = 2;
    pub const CLOSE: u64 = 3;
    pub const MMAP: u64 = 9;
    pub const MPROTECT: u64 = 10;
    pub const MUNMAP: u64 = 11;
    pub const BRK: u64 = 12;
    pub const RT_SIGACTION: u64 = 13;
    pub const RT_SIGPROCMASK: u64 = 14;
    pub const RT_SIGRETURN: u64 = 15;
    pub const IOCTL: u64 = 16;
    pub const PREAD64: u64 = 17;
    pub const DUP2: u64 = 33;
    pub const GETPID: u64 = 39;
    pub const CLONE: u64 = 56;
    pub const FORK: u64 = 57;
    pub const VFORK: u64 = 58;
    pub const EXECVE: u64 = 59;
    pub const EXIT: u64 = 60;
    pub const FCNTL: u64 = 72;
    pub const READLINK: u64 = 89;
    pub const PTRACE: u64 = 101;
    pub const GETTID: u64 = 186;
    pub const TGKILL: u64 = 234;
    pub const PRCTL: u64 = 157;
    pub const ARCH_PRCTL: u64 = 158;
    pub const RT_SIGSUSPEND: u64 = 130;
    pub const SIGALTSTACK: u64 = 131;
    pub const EXIT_GROUP: u64 = 231;
    pub const OPENAT: u64 = 257;
    pub const READLINKAT: u64 = 267;
    pub const PSELECT6: u64 = 270;
    pub const PPOLL: u64 = 271;
    pub const EPOLL_PWAIT: u64 = 281;
    pub const DUP3: u64 = 292;
    pub const PROCESS_VM_READV: u64 = 310;
    pub const PROCESS_VM_WRITEV: u64 = 311;
    pub const SECCOMP: u64 = 317;
    pub const EXECVEAT: u64 = 322;
    pub const IO_URING_SETUP: u64 = 425;
    pub const CLONE3: u64 = 435;
    pub const CLOSE_RANGE: u64 = 436;
    pub const EPOLL_PWAIT2: u64 = 441;
    pub const FACCESSAT2: u64 = 439;
}

/// Errors, as calls return them.
#[allow(missing_docs, reason = "as in the kernel's table")]
pub mod error {
    pub const EPERM: i64 = -1;
    pub const ENOENT: i64 = -2;
    pub const EINTR: i64 = -4;
    pub const E2BIG: i64 = -7;
    pub const ENOEXEC: i64 = -8;
    pub const ENOMEM: i64 = -12;
    pub const EACCES: i64 = -13;
    pub const EFAULT: i64 = -14;
    pub const EINVAL: i64 = -22;
    pub const ENOSYS: i64 = -38;
    pub const ELOOP: i64 = -40;
    pub const ENAMETOOLONG: i64 = -36;
}

/// A system call.
///
/// # Safety
/// What it does to memory is nothing that anybody relies on.
pub unsafe fn call(number: u64, arguments: [u64; 6]) -> i64 {
    let result: i64;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller's promise; the kernel changes rax, rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// What may be done to pages.
pub mod protection {
    /// They are read.
    pub const READ: u64 = 1;
    /// They are written.
    pub const WRITE: u64 = 2;
    /// They are executed.
    pub const EXECUTE: u64 = 4;
}

/// How pages are mapped.
pub mod map {
    /// Stores are everybody's who has the file.
    pub const SHARED: u64 = 1;
    /// Stores are the process's own.
    pub const PRIVATE: u64 = 2;
    /// Exactly there, whatever was there.
    pub const FIXED: u64 = 0x10;
    /// Zeros, and no file.
    pub const ANONYMOUS: u64 = 0x20;
    /// Not counted before they are touched.
    pub const NORESERVE: u64 = 0x4000;
    /// Exactly there, if nothing is.
    pub const FIXED_NOREPLACE: u64 = 0x10_0000;
}

/// Maps pages: their address, or an error.
///
/// # Safety
/// With [`map::FIXED`], what is there is the caller's to replace.
pub unsafe fn mmap(
    at: u64,
    bytes: u64,
    protection: u64,
    flags: u64,
    file: i32,
    offset: u64,
) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        call(
            number::MMAP,
            [at, bytes, protection, flags, file as u64, offset],
        )
    }
}

/// Fresh pages of zeros somewhere, to be read and written.
pub fn fresh(bytes: u64) -> Option<u64> {
    let flags = map::PRIVATE | map::ANONYMOUS | map::NORESERVE;
    // SAFETY: nothing is replaced.
    let at = unsafe { mmap(0, bytes, protection::READ | protection::WRITE, flags, -1, 0) };
    (at > 0).then_some(at as u64)
}

/// Reads a file from an offset: how many bytes, or an error.
pub fn pread(file: i32, to: &mut [u8], offset: u64) -> i64 {
    let to = (to.as_mut_ptr() as u64, to.len() as u64);
    // SAFETY: the kernel writes into the slice.
    unsafe { call(number::PREAD64, [file as u64, to.0, to.1, offset, 0, 0]) }
}

/// Closes a descriptor.
pub fn close(file: i32) {
    // SAFETY: descriptors are no memory.
    unsafe { call(number::CLOSE, [file as u64, 0, 0, 0, 0, 0]) };
}

/// Writes a sentence to the standard error.
pub fn tell(parts: &[&[u8]]) {
    for part in parts {
        write(2, part);
    }
}

/// Writes all of a slice, if it can be written.
pub fn write(file: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let part = (bytes.as_ptr() as u64, bytes.len() as u64);
        // SAFETY: the kernel reads the slice.
        let done = unsafe { call(number::WRITE, [file as u64, part.0, part.1, 0, 0, 0]) };
        if done == error::EINTR {
            continue;
        }
        if done <= 0 {
            return;
        }
        bytes = &bytes[done as usize..];
    }
}

/// Ends the process.
pub fn end(status: u64) -> ! {
    loop {
        // SAFETY: nobody goes on.
        unsafe { call(number::EXIT_GROUP, [status, 0, 0, 0, 0, 0]) };
    }
}

/// Ends the process, with a sentence.
pub fn give_up(status: u64, parts: &[&[u8]]) -> ! {
    tell(&[b"postern: "]);
    tell(parts);
    tell(&[b"\n"]);
    end(status)
}

/// The process's number.
pub fn process() -> u64 {
    // SAFETY: changes nothing.
    unsafe { call(number::GETPID, [0; 6]) as u64 }
}

/// The calling thread's number.
pub fn thread() -> u32 {
    // SAFETY: changes nothing.
    unsafe { call(number::GETTID, [0; 6]) as u32 }
}

/// Sends a signal to a thread of this process; 0 is none, and asks whether it is there.
///
/// # Safety
/// What the signal does to the process is the caller's to decide.
pub unsafe fn signal(thread: u32, signal: u64) -> i64 {
    let words = [process(), thread.into(), signal, 0, 0, 0];
    // SAFETY: the caller's promise.
    unsafe { call(number::TGKILL, words) }
}

/// Copies between the loader's memory and the program's, by one of the two calls for that. False if
/// not all of it was.
///
/// # Safety
/// The local range is the caller's to be read, or written.
unsafe fn copy(number: u64, local: u64, program: u64, bytes: usize) -> bool {
    let (local, remote) = ([local, bytes as u64], [program, bytes as u64]);
    // SAFETY: the caller's promise; the kernel touches what is there of the program's, if anything.
    let got = unsafe {
        let (local, remote) = (local.as_ptr() as u64, remote.as_ptr() as u64);
        call(number, [process(), local, 1, remote, 1, 0])
    };
    got == bytes as i64
}

/// Copies out of the program's memory, wherever that is. False if not all of it is there.
pub fn read_program(at: u64, to: &mut [u8]) -> bool {
    // SAFETY: the kernel writes into the slice.
    unsafe {
        copy(
            number::PROCESS_VM_READV,
            to.as_mut_ptr() as u64,
            at,
            to.len(),
        )
    }
}

/// The same, to an address.
///
/// # Safety
/// The bytes there are the caller's to be written.
pub unsafe fn read_program_at(at: u64, to: u64, bytes: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { copy(number::PROCESS_VM_READV, to, at, bytes) }
}

/// Copies from an address into the program's memory.
///
/// # Safety
/// The bytes there are the caller's to be read.
pub unsafe fn write_program_at(at: u64, from: u64, bytes: usize) -> bool {
    // SAFETY: the caller's promise; the kernel writes where the program's own call would have it
    // write.
    unsafe { copy(number::PROCESS_VM_WRITEV, from, at, bytes) }
}

/// Copies into the program's memory. False if not all of it may be written.
pub fn write_program(at: u64, from: &[u8]) -> bool {
    // SAFETY: the kernel reads the slice, and writes where the program's own call would have it
    // write.
    unsafe {
        copy(
            number::PROCESS_VM_WRITEV,
            from.as_ptr() as u64,
            at,
            from.len(),
        )
    }
}

/// Writes into pages that may be executed, and not written. False if the kernel does not.
pub fn write_text(at: u64, bytes: &[u8]) -> bool {
    const PWRITE64: u64 = 18;
    const WRITES: u64 = 1;
    const CLOSES: u64 = 0o2_000_000;
    let path = c"/proc/self/mem".as_ptr() as u64;
    // SAFETY: the kernel reads the path and the slice; what is written is the caller's.
    let done = unsafe {
        let file = call(number::OPEN, [path, WRITES | CLOSES, 0, 0, 0, 0]);
        if file < 0 {
            return false;
        }
        let from = (bytes.as_ptr() as u64, bytes.len() as u64);
        let done = call(PWRITE64, [file as u64, from.0, from.1, at, 0, 0]);
        close(file as i32);
        done
    };
    done == bytes.len() as i64
}

/// A word of the program's.
pub fn word(at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    read_program(at, &mut bytes).then(|| u64::from_le_bytes(bytes))
}

/// A string of the program's, with its zero: how many bytes it has without. Errors as the kernel's.
pub fn string(at: u64, to: &mut [u8]) -> Result<usize, i64> {
    let mut done = 0;
    while done < to.len() {
        // Never over the end of a page, behind which there may be nothing.
        let here = at + done as u64;
        let piece = (4096 - here as usize % 4096).min(to.len() - done);
        if !read_program(here, &mut to[done..done + piece]) {
            return Err(error::EFAULT);
        }
        if let Some(zero) = to[done..done + piece].iter().position(|byte| *byte == 0) {
            return Ok(done + zero);
        }
        done += piece;
    }
    Err(error::ENAMETOOLONG)
}
