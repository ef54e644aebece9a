//! What the agent calls (`postern/agent.h`).

use alloc::vec::Vec;

/// A system call: `struct pt_call`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Call {
    /// Linux's number.
    pub number: u64,
    /// Addresses are the program's.
    pub arguments: [u64; 6],
    /// Errors are negative.
    pub result: i64,
    /// 0 at first, and behind the call what it was set to.
    pub note: u64,
}

#[cfg(not(test))]
unsafe extern "C" {
    fn pt_syscall(call: *const Call) -> i64;
    fn pt_syscall_now(call: *const Call) -> i64;
    fn pt_address(of: *const u8) -> u64;
    fn pt_program_read(from: u64, to: *mut u8, bytes: u32) -> i32;
    fn pt_program_write(to: u64, from: *const u8, bytes: u32) -> i32;
    fn pt_argument(number: u32, to: *mut u8, room: u32) -> i32;
    fn pt_print(text: *const u8, bytes: u32);
    fn pt_process() -> u32;
    fn pt_thread() -> u32;
    fn pt_keeper() -> i32;
    fn pt_keep(file: u32) -> i32;
    fn __postern_wait(word: *const u32, value: u32, nanoseconds: i64) -> i32;
    fn __postern_wake(word: *const u32, most: u32) -> i32;
    fn __postern_abort(reason: *const u8) -> !;
}

#[cfg(test)]
use crate::host::native::*;

/// Bytes that are copied at once, at most.
const MOST: usize = 1 << 20;

fn call(number: u64, arguments: [u64; 6]) -> Call {
    Call {
        number,
        arguments,
        ..Call::default()
    }
}

/// A system call of the agent's own, which may wait.
pub fn wait(number: u64, arguments: [u64; 6]) -> i64 {
    // SAFETY: the host reads the record.
    unsafe { pt_syscall(&call(number, arguments)) }
}

/// One that does not wait.
pub fn now(number: u64, arguments: [u64; 6]) -> i64 {
    // SAFETY: as above.
    unsafe { pt_syscall_now(&call(number, arguments)) }
}

/// Where the kernel finds something of the agent's.
pub fn address<T: ?Sized>(of: &T) -> u64 {
    // SAFETY: an address is made into another.
    unsafe { pt_address(core::ptr::from_ref(of).cast()) }
}

/// The same, of an address that the kernel is to write to.
pub fn place(of: usize) -> u64 {
    // SAFETY: as above.
    unsafe { pt_address(of as *const u8) }
}

/// What the kernel has written into something whose address it was given.
pub fn written<T: Copy>(at: &T) -> T {
    // SAFETY: a reference is to what is there.
    unsafe { core::ptr::from_ref(at).read_volatile() }
}

/// Copies out of the program's memory. False if not all of it is there.
#[must_use]
pub fn read(mut from: u64, to: &mut [u8]) -> bool {
    to.chunks_mut(MOST).all(|part| {
        // SAFETY: the host writes into the slice.
        let done = unsafe { pt_program_read(from, part.as_mut_ptr(), part.len() as u32) };
        from = from.wrapping_add(part.len() as u64);
        done == 0
    })
}

/// Copies into the program's memory. False if not all of it may be written.
#[must_use]
pub fn write(mut to: u64, from: &[u8]) -> bool {
    from.chunks(MOST).all(|part| {
        // SAFETY: the host reads the slice.
        let done = unsafe { pt_program_write(to, part.as_ptr(), part.len() as u32) };
        to = to.wrapping_add(part.len() as u64);
        done == 0
    })
}

/// One of the agent's arguments.
pub fn argument(number: u32) -> Option<Vec<u8>> {
    let mut word = [0; 256];
    // SAFETY: the host writes into the array.
    let length = unsafe { pt_argument(number, word.as_mut_ptr(), word.len() as u32) };
    let length = usize::try_from(length).ok()?;
    word.get(..length).map(<[u8]>::to_vec)
}

/// Writes to where the agent's output goes.
pub fn print(text: &str) {
    // SAFETY: the host reads the text.
    unsafe { pt_print(text.as_ptr(), text.len() as u32) }
}

/// The process that calls.
pub fn process() -> u32 {
    // SAFETY: changes nothing.
    unsafe { pt_process() }
}

/// The thread that calls.
pub fn thread() -> u32 {
    // SAFETY: changes nothing.
    unsafe { pt_thread() }
}

/// The tree's end of what it has in common with its keeper.
pub fn keeper() -> i32 {
    // SAFETY: changes nothing.
    unsafe { pt_keeper() }
}

/// No program of the tree closes this descriptor. False if that is not possible.
pub fn keep(file: u32) -> bool {
    // SAFETY: descriptors are no memory.
    unsafe { pt_keep(file) == 0 }
}

/// Sleeps while a word has a value, for at most so long.
pub fn sleep(word: &core::sync::atomic::AtomicU32, value: u32, nanoseconds: i64) {
    // SAFETY: the host reads the word.
    unsafe { __postern_wait(word.as_ptr(), value, nanoseconds) };
}

/// Wakes one who sleeps for a word.
pub fn wake(word: &core::sync::atomic::AtomicU32) {
    // SAFETY: nothing is read or written.
    unsafe { __postern_wake(word.as_ptr(), 1) };
}

/// Ends the tree with a sentence.
pub fn fail(why: &str) -> ! {
    let mut words = [0; 200];
    let length = why.len().min(words.len() - 1);
    words[..length].copy_from_slice(&why.as_bytes()[..length]);
    // SAFETY: the words end with a zero.
    unsafe { __postern_abort(words.as_ptr()) }
}

/// Nanoseconds of the kernel's clock.
pub fn clock() -> u64 {
    const CLOCK_GETTIME: u64 = 228;
    let time = [0u64; 2];
    now(CLOCK_GETTIME, [1, address(&time), 0, 0, 0, 0]);
    let [seconds, rest] = written(&time);
    seconds * 1_000_000_000 + rest
}

/// What tests have instead of a host: this process's own memory, and no program.
#[cfg(test)]
mod native {
    use super::Call;

    unsafe extern "C" {
        fn syscall(number: i64, ...) -> i64;
        fn __errno_location() -> *mut i32;
    }

    pub unsafe fn pt_syscall(call: *const Call) -> i64 {
        // SAFETY: the caller's promise.
        unsafe {
            let [a, b, c, d, e, f] = (*call).arguments;
            match syscall((*call).number as i64, a, b, c, d, e, f) {
                -1 => -i64::from(*__errno_location()),
                result => result,
            }
        }
    }
    pub unsafe fn pt_syscall_now(call: *const Call) -> i64 {
        // SAFETY: the caller's promise.
        unsafe { pt_syscall(call) }
    }
    pub unsafe fn pt_address(of: *const u8) -> u64 {
        of as u64
    }
    pub unsafe fn pt_program_read(from: u64, to: *mut u8, bytes: u32) -> i32 {
        // SAFETY: tests name what is there.
        unsafe { core::ptr::copy(from as *const u8, to, bytes as usize) };
        0
    }
    pub unsafe fn pt_program_write(to: u64, from: *const u8, bytes: u32) -> i32 {
        // SAFETY: tests name what is there.
        unsafe { core::ptr::copy(from, to as *mut u8, bytes as usize) };
        0
    }
    pub unsafe fn pt_argument(_: u32, _: *mut u8, _: u32) -> i32 {
        -1
    }
    pub unsafe fn pt_print(_: *const u8, _: u32) {}
    pub unsafe fn pt_process() -> u32 {
        std::process::id()
    }
    pub unsafe fn pt_thread() -> u32 {
        std::process::id()
    }
    pub unsafe fn pt_keeper() -> i32 {
        -1
    }
    pub unsafe fn pt_keep(_: u32) -> i32 {
        0
    }
    pub unsafe fn __postern_wait(_: *const u32, _: u32, _: i64) -> i32 {
        std::thread::yield_now();
        0
    }
    pub unsafe fn __postern_wake(_: *const u32, _: u32) -> i32 {
        0
    }
    pub unsafe fn __postern_abort(_: *const u8) -> ! {
        panic!("the stack gave up")
    }
}
