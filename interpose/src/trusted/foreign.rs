//! Another process's memory, and what is done on a thread in its place.

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Copies from a thread's memory: how many bytes were there.
pub fn read(thread: u32, from: u64, to: &mut [u8]) -> usize {
    let own = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let other = libc::iovec {
        iov_base: from as *mut _,
        iov_len: to.len(),
    };
    // SAFETY: the kernel writes into the slice; the other's addresses are checked there.
    let got = unsafe { libc::process_vm_readv(thread as i32, &own, 1, &other, 1, 0) };
    usize::try_from(got).unwrap_or(0)
}

/// Copies to a thread's memory: how many bytes had room.
pub fn write(thread: u32, to: u64, from: &[u8]) -> usize {
    let own = libc::iovec {
        iov_base: from.as_ptr().cast_mut().cast(),
        iov_len: from.len(),
    };
    let other = libc::iovec {
        iov_base: to as *mut _,
        iov_len: from.len(),
    };
    // SAFETY: the kernel reads the slice; the other's addresses are checked there.
    let done = unsafe { libc::process_vm_writev(thread as i32, &own, 1, &other, 1, 0) };
    usize::try_from(done).unwrap_or(0)
}

/// The calling thread has a working folder and a mask for new files of its own.
pub fn have_own_folder() -> Result<(), Errno> {
    // SAFETY: it is no memory that is not shared any more.
    match unsafe { libc::unshare(libc::CLONE_FS) } {
        0 => Ok(()),
        _ => Err(last()),
    }
}

/// Connects a socket to an address, as the kernel has it.
pub fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    let bytes = address.len() as u32;
    // SAFETY: the kernel reads the address.
    match unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), bytes) } {
        0 => Ok(()),
        _ => Err(last()),
    }
}

/// Gives a socket an address, as the kernel has it.
pub fn bind(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    let bytes = address.len() as u32;
    // SAFETY: the kernel reads the address.
    match unsafe { libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), bytes) } {
        0 => Ok(()),
        _ => Err(last()),
    }
}

/// Sends a message, to an address if there is one: how many bytes went. No signal comes where
/// nobody reads.
pub fn send(
    socket: BorrowedFd<'_>,
    address: &[u8],
    bytes: &[u8],
    control: &[u8],
    flags: i32,
) -> Result<i64, Errno> {
    let mut piece = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let some = |slice: &[u8]| match slice.is_empty() {
        true => std::ptr::null_mut(),
        false => slice.as_ptr().cast_mut().cast(),
    };
    // SAFETY: zeros are such a structure.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = some(address);
    message.msg_namelen = address.len() as u32;
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = some(control);
    message.msg_controllen = control.len();
    let file: RawFd = socket.as_raw_fd();
    // SAFETY: the kernel reads what the message names, all of it slices.
    match unsafe { libc::sendmsg(file, &message, flags | libc::MSG_NOSIGNAL) } {
        sent if sent >= 0 => Ok(sent as i64),
        _ => Err(last()),
    }
}
