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

/// Makes this thread's network usable: its loopback goes up.
pub fn loopback_up() -> io::Result<()> {
    #[repr(C)]
    struct Request {
        name: [u8; 16],
        flags: i16,
        rest: [u8; 22],
    }
    let mut request = Request {
        name: [0; 16],
        flags: (libc::IFF_UP | libc::IFF_RUNNING) as i16,
        rest: [0; 22],
    };
    request.name[..2].copy_from_slice(b"lo");
    // SAFETY: numbers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    checked(socket.into())?;
    // SAFETY: the structure is `struct ifreq`, 40 bytes, with a name that ends; the descriptor is
    // this function's.
    let up = checked(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw mut request) }.into());
    // SAFETY: nobody else has the descriptor.
    unsafe { libc::close(socket) };
    up
}

/// Sends a packet that has its own header of IPv4, to this machine.
pub fn send_raw(packet: &[u8]) -> io::Result<()> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: numbers.
    let socket = unsafe { libc::socket(libc::AF_INET, kind, libc::IPPROTO_RAW) };
    checked(socket.into())?;
    // SAFETY: all zeros are an address.
    let mut to: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    to.sin_family = libc::AF_INET as u16;
    to.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    // SAFETY: a slice with its length, and an address with its size.
    let sent = checked(unsafe {
        libc::sendto(
            socket,
            packet.as_ptr().cast(),
            packet.len(),
            0,
            (&raw const to).cast(),
            size_of_val(&to) as u32,
        )
    } as i64);
    // SAFETY: nobody else has the descriptor.
    unsafe { libc::close(socket) };
    sent
}

/// This thread gets a network of its own, which ends with it.
pub fn own_network() -> io::Result<()> {
    // SAFETY: numbers.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }.into())
}

/// Asks for the session of a process.
pub fn session(process: i32) -> io::Result<()> {
    // SAFETY: numbers.
    checked(unsafe { libc::getsid(process) }.into())
}

/// This thread stays on a processor.
pub fn stay(processor: usize) -> io::Result<()> {
    // SAFETY: all zeros are a set without processors.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: a number below those that the set has room for.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: a set with its size.
    checked(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) }.into())
}

/// Lets one of the module's next allocations fail (-1: none); returns what was left of the number
/// before.
pub fn fail_after(allocations: i64) -> io::Result<i64> {
    let switch = "/sys/module/postern/parameters/fail_after";
    let left = std::fs::read_to_string(switch)?;
    std::fs::write(switch, allocations.to_string())?;
    Ok(left.trim().parse().unwrap_or(-1))
}
