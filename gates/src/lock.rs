//! Locks of open file descriptions on parts of files. They belong to the description and not to the
//! process, so domains of one process exclude each other, and closing another file of the host
//! gives none of them back.

use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};

/// What is locked, and how: `F_RDLCK`, `F_WRLCK`, `F_UNLCK`.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// How.
    pub kind: i16,
    /// First byte.
    pub start: i64,
    /// Bytes; 0 is to the end, however far that is.
    pub length: i64,
}

/// Sets or releases a lock; `EAGAIN` if another description is in the way.
pub fn set(file: &OwnedFd, range: Range) -> Result<(), Errno> {
    control(file, libc::F_OFD_SETLK, range).map(drop)
}

/// The lock that is in the way, or the range with `F_UNLCK`.
pub fn query(file: &OwnedFd, range: Range) -> Result<Range, Errno> {
    control(file, libc::F_OFD_GETLK, range)
}

fn control(file: &OwnedFd, command: i32, range: Range) -> Result<Range, Errno> {
    let mut lock = libc::flock {
        l_type: range.kind,
        l_whence: libc::SEEK_SET as i16,
        l_start: range.start,
        l_len: range.length,
        l_pid: 0,
    };
    // SAFETY: these commands read and write the structure that the pointer is to, which lives
    // through the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if result < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(Range {
        kind: lock.l_type,
        start: lock.l_start,
        length: lock.l_len,
    })
}
