//! System calls that the standard library has no name for.

mod random;

pub use random::{Handling, Playground, ask_at_random, handle_at_random};

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use postern_kernel::abi;
pub use postern_kernel::abi::{Call, Load, Statistics, Text};

/// What can be handed to the device: plain numbers, whatever their bytes.
///
/// # Safety
/// The type is `repr(C)` and holds numbers only, and the device writes no more than its size under
/// the number.
pub unsafe trait Argument {
    /// `_IOWR` or `_IOW` of `postern.h`.
    const NUMBER: u64;
}

// SAFETY: as `postern.h` has it, which a test of the crate asserts; addresses in it are checked by
// the kernel, which only reads there.
unsafe impl Argument for Load {
    const NUMBER: u64 = abi::LOAD;
}

// SAFETY: likewise.
unsafe impl Argument for u32 {
    const NUMBER: u64 = abi::UNLOAD;
}

// SAFETY: likewise.
unsafe impl Argument for Text {
    const NUMBER: u64 = abi::JUDGE_TEXT;
}

// SAFETY: likewise.
unsafe impl Argument for Call {
    const NUMBER: u64 = abi::CALL;
}

// SAFETY: likewise.
unsafe impl Argument for Statistics {
    const NUMBER: u64 = abi::STATISTICS;
}

fn checked(result: i64) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Puts the file in an extension's place: `POSTERN_REPLACE`.
pub fn replace(device: &File, argument: &mut Load) -> io::Result<()> {
    // SAFETY: as in `ask`: the request has the structure of the one that loads.
    checked(
        unsafe {
            libc::ioctl(
                device.as_raw_fd(),
                abi::REPLACE,
                std::ptr::from_mut(argument),
            )
        }
        .into(),
    )
}

/// Asks the device.
pub fn ask<T: Argument>(device: &File, argument: &mut T) -> io::Result<()> {
    // SAFETY: the argument is one that the request reads and writes, by the trait.
    checked(
        unsafe { libc::ioctl(device.as_raw_fd(), T::NUMBER, std::ptr::from_mut(argument)) }.into(),
    )
}

/// A request by number, with any argument at all.
pub fn ask_anything(device: &File, number: u64, argument: u64) -> io::Result<()> {
    // SAFETY: callers pass addresses at which nothing is mapped.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), number, argument) }.into())
}

/// What the kernel logged, as much of it as it keeps.
pub fn kernel_log() -> io::Result<String> {
    const READ_ALL: libc::c_int = 3;
    let mut bytes = vec![0u8; 1 << 20];
    // SAFETY: the buffer is as long as the call is told.
    let read = unsafe { libc::klogctl(READ_ALL, bytes.as_mut_ptr().cast(), bytes.len() as i32) };
    checked(read.into())?;
    bytes.truncate(read as usize);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Mounts a file system of the kernel's own.
pub fn mount(kind: &CStr, at: &CStr) -> io::Result<()> {
    // SAFETY: strings, and no data.
    checked(
        unsafe {
            libc::mount(
                kind.as_ptr(),
                at.as_ptr(),
                kind.as_ptr(),
                0,
                std::ptr::null(),
            )
        }
        .into(),
    )
}

/// Loads a module.
pub fn insert(module: &File) -> io::Result<()> {
    // SAFETY: a file, no parameters, no flags.
    checked(unsafe { libc::syscall(libc::SYS_finit_module, module.as_raw_fd(), c"".as_ptr(), 0) })
}

/// Unloads a module, if nobody uses it.
pub fn remove(module: &CStr) -> io::Result<()> {
    // SAFETY: a string and a flag.
    checked(unsafe { libc::syscall(libc::SYS_delete_module, module.as_ptr(), libc::O_NONBLOCK) })
}

/// Makes this thread another user's, for good: the C library's function would change all of them.
pub fn become_user(user: u32) -> io::Result<()> {
    // SAFETY: numbers.
    checked(unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) })
}

/// Ends the machine.
pub fn end() -> ! {
    // SAFETY: nothing of this machine is worth keeping.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_AUTOBOOT);
    }
    std::process::exit(1)
}
