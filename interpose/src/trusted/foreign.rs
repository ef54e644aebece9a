//! Another process's memory, and what is done on a thread in its place.

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

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

fn done(result: i64) -> Result<(), Errno> {
    match result {
        0 => Ok(()),
        _ => Err(last()),
    }
}

fn file(result: i64) -> Result<OwnedFd, Errno> {
    match i32::try_from(result) {
        // SAFETY: a descriptor that was just made, and that nobody else has.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(last()),
    }
}

fn ends_with_zero(name: &[u8]) -> Result<(), Errno> {
    match name.last() {
        Some(0) => Ok(()),
        _ => Err(Errno::INVAL),
    }
}

/// Opens a queue of messages, whose name ends with a zero.
pub fn open_queue(
    name: &[u8],
    flags: i32,
    mode: u32,
    attributes: Option<&[u8; 64]>,
) -> Result<OwnedFd, Errno> {
    ends_with_zero(name)?;
    let attributes = attributes.map_or(std::ptr::null(), |bytes| bytes.as_ptr());
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: the kernel reads the name and the structure.
    file(unsafe { libc::syscall(libc::SYS_mq_open, name.as_ptr(), flags, mode, attributes) })
}

/// Removes one.
pub fn remove_queue(name: &[u8]) -> Result<(), Errno> {
    ends_with_zero(name)?;
    // SAFETY: the kernel reads the name.
    done(unsafe { libc::syscall(libc::SYS_mq_unlink, name.as_ptr()) })
}

/// A file in memory, whose name ends with a zero.
pub fn memory_file(name: &[u8], flags: u32) -> Result<OwnedFd, Errno> {
    ends_with_zero(name)?;
    // SAFETY: the kernel reads the name.
    file(unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags) })
}

/// Sends a signal to the process that a descriptor is for.
pub fn signal(
    process: BorrowedFd<'_>,
    number: i32,
    info: Option<&[u8; 128]>,
    flags: u32,
) -> Result<(), Errno> {
    let info = info.map_or(std::ptr::null(), |bytes| bytes.as_ptr());
    let (call, process) = (libc::SYS_pidfd_send_signal, process.as_raw_fd());
    // SAFETY: the kernel reads the structure.
    done(unsafe { libc::syscall(call, process, number, info, flags) })
}

/// The calling thread's number.
pub fn thread() -> u32 {
    // SAFETY: it changes nothing.
    unsafe { libc::gettid() as u32 }
}

/// The signal by which a thread is taken out of a call; the runtime has those above.
fn interruption() -> i32 {
    libc::SIGRTMAX() - 5
}

/// Interruptions have a handler from now on, which does nothing. One of the host's stays.
pub fn hear_interruptions() -> Result<(), Errno> {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: zeros are such a structure; the kernel reads the one and writes the other, and the
    // handler touches nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut former: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        done(libc::sigaction(interruption(), std::ptr::null(), &mut former).into())?;
        match former.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                done(libc::sigaction(interruption(), &action, &mut former).into())
            }
            other if other == action.sa_sigaction => Ok(()),
            _ => Err(Errno::USERS),
        }
    }
}

/// Takes a thread of this process out of the call that it waits in.
pub fn interrupt(thread: u32) {
    // SAFETY: a thread of this process, whose handler does nothing.
    unsafe {
        let (process, signal) = (libc::getpid(), interruption());
        libc::syscall(libc::SYS_tgkill, process, thread as i32, signal);
    }
}
