//! The system calls that a domain is made of, and nothing else: what instantiation and reset cannot
//! go below.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr;

const PAGE: usize = 4096;

/// A stretch of reserved addresses.
pub struct Reservation {
    start: *mut u8,
    bytes: usize,
}

/// A file without a name.
pub struct MemoryFile(File);

impl MemoryFile {
    /// `bytes` long, every page there.
    pub fn new(bytes: usize) -> io::Result<MemoryFile> {
        // SAFETY: a constant string; the new descriptor is nobody else's.
        let file = unsafe {
            let fd = libc::memfd_create(c"bench".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            File::from_raw_fd(fd)
        };
        file.write_all_at(&vec![1; bytes], 0)?;
        Ok(MemoryFile(file))
    }
}

fn check(ok: bool, what: &str) {
    assert!(ok, "{what}: {}", std::io::Error::last_os_error());
}

impl Reservation {
    /// `bytes` without access.
    pub fn new(bytes: usize) -> Reservation {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping where the kernel likes.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        check(start != libc::MAP_FAILED, "mmap");
        Reservation {
            start: start.cast(),
            bytes,
        }
    }

    /// Maps private pages at `at`: of the start of a file, or zero.
    pub fn place(&self, at: usize, bytes: usize, protection: i32, file: Option<&MemoryFile>) {
        assert!(at + bytes <= self.bytes);
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let (fd, flags) = match file {
            Some(MemoryFile(file)) => (file.as_raw_fd(), flags),
            None => (-1, flags | libc::MAP_ANONYMOUS),
        };
        // SAFETY: inside the reservation, of which nothing is borrowed.
        let p = unsafe { libc::mmap(self.start.add(at).cast(), bytes, protection, flags, fd, 0) };
        check(p != libc::MAP_FAILED, "mmap");
    }

    /// Changes protection.
    pub fn protect(&self, at: usize, bytes: usize, protection: i32) {
        assert!(at + bytes <= self.bytes);
        // SAFETY: inside the reservation.
        let rc = unsafe { libc::mprotect(self.start.add(at).cast(), bytes, protection) };
        check(rc == 0, "mprotect");
    }

    /// Drops private pages.
    pub fn discard(&self, at: usize, bytes: usize) {
        assert!(at + bytes <= self.bytes);
        // SAFETY: inside the reservation.
        let rc = unsafe { libc::madvise(self.start.add(at).cast(), bytes, libc::MADV_DONTNEED) };
        check(rc == 0, "madvise");
    }

    /// Writes a byte, so that the page is there. It must be mapped writable.
    pub fn touch(&self, at: usize) {
        assert!(at < self.bytes);
        // SAFETY: the callers have mapped the page writable.
        unsafe { self.start.add(at).write_volatile(1) };
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the reservation is ours.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// Makes a page writable and read-only again, `count` times.
pub fn protect_and_back(count: u64) {
    let page = Reservation::new(PAGE);
    page.protect(0, PAGE, libc::PROT_READ | libc::PROT_WRITE);
    page.touch(0);
    for _ in 0..count {
        page.protect(0, PAGE, libc::PROT_READ);
        page.protect(0, PAGE, libc::PROT_READ | libc::PROT_WRITE);
    }
}
