//! The system calls of userfaultfd, which have no safe face elsewhere.
//!
//! What they are given are addresses of areas' views, and pages to copy from: nothing of Rust's own
//! objects is ever registered or filled, for [`super::watch`] gives them ranges of views only.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;

const API: libc::Ioctl = 0xc018_aa3f;
const REGISTER: libc::Ioctl = 0xc020_aa00;
const UNREGISTER: libc::Ioctl = 0x8010_aa01;
const WAKE: libc::Ioctl = 0x8010_aa02;
const COPY: libc::Ioctl = 0xc028_aa03;
const ZERO: libc::Ioctl = 0xc020_aa04;

/// The version of the interface.
const VERSION: u64 = 0xaa;
/// Pages of memory files; messages name the thread.
const FEATURES: u64 = 1 << 5 | 1 << 8;
const USER_MODE_ONLY: libc::c_int = 1;
const MODE_MISSING: u64 = 1;
const DONT_WAKE: u64 = 1;
/// Bit of what can be done with a range: zero pages. Huge pages have it not.
const CAN_ZERO: u64 = 1 << 4;

/// Tells of pages that are missing, in the ranges that are registered.
#[derive(Debug)]
pub(super) struct Userfault(OwnedFd);

/// A thread sleeps, for it has touched a page that is missing.
#[derive(PartialEq, Eq)]
pub(crate) struct Touch {
    /// Where the page begins.
    pub(crate) address: usize,
    /// The kernel's number of the thread.
    pub(crate) thread: u32,
}

impl Userfault {
    pub(super) fn new() -> Result<Userfault> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
        // SAFETY: the call makes a descriptor, which is nobody else's.
        let made = unsafe {
            match libc::syscall(libc::SYS_userfaultfd, flags) {
                ..0 => return Err(Error::last_os_error()),
                number => Userfault(OwnedFd::from_raw_fd(number as i32)),
            }
        };
        made.control(API, &mut [VERSION, FEATURES, 0])?;
        Ok(made)
    }

    /// Whoever touches a missing page of `[start, start + len)` sleeps from now on.
    ///
    /// # Errors
    /// `EBUSY`, somebody else has registered the range; `EPERM`, it can never be written; `EINVAL`,
    /// it is no memory file's, or its pages are huge.
    pub(super) fn register(&self, start: usize, len: usize) -> Result<()> {
        let mut words = [start as u64, len as u64, MODE_MISSING, 0];
        self.control(REGISTER, &mut words)?;
        if words[3] & CAN_ZERO == 0 {
            self.unregister(start, len);
            return Err(ErrorKind::InvalidInput.into());
        }
        Ok(())
    }

    /// Nobody does any more, and those who sleep go on.
    pub(super) fn unregister(&self, start: usize, len: usize) {
        // Where something else is mapped now nothing is registered; but somebody may sleep.
        let _ = self.control(UNREGISTER, &mut [start as u64, len as u64]);
        self.wake(start, len);
    }

    /// Those who sleep there look again.
    pub(super) fn wake(&self, start: usize, len: usize) {
        let _ = self.control(WAKE, &mut [start as u64, len as u64]);
    }

    /// Fills the page at `to` with that at `from`, and wakes nobody. The kernel reads `from` as for
    /// any system call: if it cannot, or it would have to wait for a page that is missing itself,
    /// the error is `EFAULT`.
    ///
    /// # Errors
    /// `EEXIST`, the page is there already; `ENOENT`, it is of no registered range.
    pub(super) fn copy(&self, to: usize, from: usize) -> Result<()> {
        let mut words = [to as u64, from as u64, PAGE as u64, DONT_WAKE, 0];
        self.control(COPY, &mut words)
    }

    /// As [`Self::copy`], with zeros, and wakes who sleeps at `to`.
    pub(super) fn zero(&self, to: usize) -> Result<()> {
        self.control(ZERO, &mut [to as u64, PAGE as u64, 0, 0])
    }

    /// Who else sleeps; `None`: nobody of whom this was not told.
    pub(super) fn next(&self) -> Option<Touch> {
        /// Of `struct uffd_msg`: its length, the event of a missing page, address and thread.
        const MESSAGE: usize = 32;
        const PAGE_FAULT: u8 = 0x12;
        const ADDRESS: usize = 16;
        const THREAD: usize = 24;
        let mut bytes = [0; MESSAGE];
        let read = rustix::io::read(&self.0, &mut bytes);
        if read != Ok(MESSAGE) || bytes[0] != PAGE_FAULT {
            return None;
        }
        let address = bytes[ADDRESS..].first_chunk().copied().unwrap_or_default();
        let thread = bytes[THREAD..].first_chunk().copied().unwrap_or_default();
        Some(Touch {
            address: u64::from_ne_bytes(address) as usize & !(PAGE - 1),
            thread: u32::from_ne_bytes(thread),
        })
    }

    fn control<const WORDS: usize>(&self, what: libc::Ioctl, to: &mut [u64; WORDS]) -> Result<()> {
        // SAFETY: each request has a structure of so many words, which the kernel reads and writes.
        // What else it writes are pages of ranges that are registered, which are views of areas.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), what, to.as_mut_ptr()) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
