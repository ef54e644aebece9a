//! Which pages of a range are the process's own: copies of a file's pages that somebody wrote, and
//! memory that somebody touched.
//!
//! The kernel tells by one call (PAGEMAP_SCAN, Linux 6.7), which costs less than dropping a few
//! pages and having them faulted in again. Nothing here is needed: where the kernel does not tell,
//! everything is dropped.
//!
//! Invariant: the descriptor in [`PAGEMAP`] shows the address space of this very process. A forked
//! child opens one of its own.

use super::machine::InChild;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

const PAGE: usize = 4096;

/// A run of such pages: its first address, and the one behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    start: u64,
    end: u64,
    categories: u64,
}

impl Run {
    /// First address, and the one behind the last.
    pub(super) fn addresses(&self) -> (u64, u64) {
        (self.start, self.end)
    }

    /// Whether only the kernel's page of zeros is there: it was read, and never written.
    pub(super) fn is_zero(&self) -> bool {
        self.categories & IS_PFNZERO != 0
    }
}

/// `struct pm_scan_arg` of <linux/fs.h>.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const IS_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const IS_PFNZERO: u64 = 1 << 5;
/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::c_ulong = 3 << 30 | (size_of::<Scan>() as u64) << 16 | 0x66 << 8 | 16;

const NOT_OPEN: i32 = -1;
const USELESS: i32 = -2;
/// Descriptor of /proc/self/pagemap, or one of the above.
static PAGEMAP: AtomicI32 = AtomicI32::new(NOT_OPEN);
/// Which file it was when it was opened: a host may have closed it since, and have another one by
/// that number.
static FILE: AtomicU64 = AtomicU64::new(0);

/// The process's own pages in `[start, end)`, in ascending order; `None` if there are more of them
/// than `most`, or more runs than `runs` has room for, or if the kernel does not tell. Pages of
/// shared mappings are not among them.
pub(super) fn own(start: usize, end: usize, most: usize, runs: &mut [Run]) -> Option<&[Run]> {
    let pagemap = descriptor()?;
    let mut scan = Scan {
        size: size_of::<Scan>() as u64,
        start: start as u64,
        end: end as u64,
        vec: runs.as_mut_ptr() as u64,
        vec_len: runs.len() as u64,
        max_pages: most as u64 + 1,
        category_inverted: IS_FILE,
        category_mask: IS_FILE,
        category_anyof_mask: IS_PRESENT | IS_SWAPPED,
        return_mask: IS_PRESENT | IS_SWAPPED | IS_PFNZERO,
        ..Scan::default()
    };
    // SAFETY: the kernel reads and writes the structure, and writes at most `vec_len` runs; both
    // outlive the call. What another descriptor than ours would make of the number is for that to
    // refuse: the address of the structure means nothing to it.
    let found = unsafe { libc::ioctl(pagemap, PAGEMAP_SCAN, &raw mut scan) };
    let Ok(found) = usize::try_from(found) else {
        // A kernel that does not know it, or a filter of system calls.
        PAGEMAP.store(USELESS, Ordering::Relaxed);
        return None;
    };
    let found = runs.get(..found)?;
    let pages: u64 = found.iter().map(|r| (r.end - r.start) / PAGE as u64).sum();
    (scan.walk_end == scan.end && pages <= most as u64).then_some(found)
}

fn descriptor() -> Option<i32> {
    match PAGEMAP.load(Ordering::Acquire) {
        USELESS => None,
        NOT_OPEN => open(),
        fd => Some(fd),
    }
}

#[cold]
fn open() -> Option<i32> {
    let file = std::fs::File::open("/proc/self/pagemap");
    let fd = file.map_or(USELESS, |file| file.into_raw_fd());
    FILE.store(number(fd), Ordering::Release);
    match PAGEMAP.compare_exchange(NOT_OPEN, fd, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {}
        // Another thread was faster.
        Err(other) => {
            close(fd);
            return (other >= 0).then_some(other);
        }
    }
    (fd >= 0).then_some(fd)
}

/// In the child after fork: the parent's descriptor shows the parent's pages.
pub fn after_fork(_: &InChild) {
    let fd = PAGEMAP.swap(NOT_OPEN, Ordering::AcqRel);
    if fd >= 0 && number(fd) == FILE.load(Ordering::Acquire) {
        close(fd);
    }
    if fd == USELESS {
        PAGEMAP.store(USELESS, Ordering::Release);
    }
}

/// The number of a descriptor's file in its file system; 0 if there is none.
fn number(fd: i32) -> u64 {
    // SAFETY: fills the structure, or fails.
    unsafe {
        let mut file: libc::stat = std::mem::zeroed();
        match libc::fstat(fd, &mut file) {
            0 => file.st_ino,
            _ => 0,
        }
    }
}

fn close(fd: i32) {
    if fd >= 0 {
        // SAFETY: opened in `open` and known to nobody else any more.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}
