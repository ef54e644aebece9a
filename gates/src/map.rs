//! Address space: the few calls of mmap that windows, control blocks and stacks are made of.
//!
//! Nothing here knows what the memory is for. Every reservation is `PROT_NONE` and `MAP_NORESERVE`,
//! so that it costs a mapping and no memory. What takes an address is an `unsafe fn` for the owners
//! of ranges in this folder, which check bounds: windows and their parts ([`super::window`]), and
//! [`Mapping`] for all the rest.
//!
//! A process has so many mappings and no more, and at the limit its allocator fails, which ends it.
//! So whoever is about to map says so first ([`room`]), and is refused while that would leave the
//! host fewer than [`headroom::RESERVE`].

mod error;
mod headroom;
mod limit;
mod lost;
mod mapping;
mod words;

pub use error::{MapError, explained, failed};
pub use headroom::{room, without_reserve};
pub use limit::SystemLimit;
pub use mapping::Mapping;
pub use words::SharedWords;

use error::refused;

use std::fmt;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a domain may do with a page of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prot {
    /// Nothing.
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
}

impl Prot {
    /// Whether it allows a write, or with `write` false a read.
    pub fn allows(self, write: bool) -> bool {
        self == Prot::ReadWrite || (self == Prot::Read && !write)
    }
}

/// `-`, `r` or `rw`, as tables show it.
impl fmt::Display for Prot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Prot::None => "-",
            Prot::Read => "r",
            Prot::ReadWrite => "rw",
        })
    }
}

/// Page protections, as the kernel is asked for them. Execution is for text alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    None,
    Read,
    ReadWrite,
    ReadExecute,
}

impl From<Prot> for Protection {
    fn from(prot: Prot) -> Protection {
        match prot {
            Prot::None => Protection::None,
            Prot::Read => Protection::Read,
            Prot::ReadWrite => Protection::ReadWrite,
        }
    }
}

impl Protection {
    fn bits(self) -> i32 {
        match self {
            Protection::None => libc::PROT_NONE,
            Protection::Read => libc::PROT_READ,
            Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            Protection::ReadExecute => libc::PROT_READ | libc::PROT_EXEC,
        }
    }
}

/// Whether all of `[start, start + bytes)`, which was the caller's own, still is.
pub(super) fn whole(start: usize, bytes: usize) -> Result<(), MapError> {
    lost::none_in(start, bytes)
}

/// As if the kernel had refused there, and another thread been faster.
#[cfg(any(test, feature = "testing"))]
pub(super) fn lose(start: usize, bytes: usize) {
    lost::add(start, bytes);
}

/// Whether core dumps of the process have what lies in windows.
static DUMPED: AtomicBool = AtomicBool::new(false);

/// Says whether core dumps have what lies in windows. Called once, at start.
pub fn dump(wanted: bool) {
    DUMPED.store(wanted, Ordering::SeqCst);
}

/// Leaves what was mapped to `[start, start + bytes)` out of core dumps, unless they are to have
/// it.
///
/// # Safety
/// The caller owns the range. (If not, it is missed in a dump.)
pub(super) unsafe fn hide(start: usize, bytes: usize) {
    if bytes != 0 && lost::none_in(start, bytes).is_ok() && !DUMPED.load(Ordering::Relaxed) {
        // SAFETY: advice about the caller's own mappings that changes nothing in them. Not taken, a
        // dump is larger.
        unsafe { libc::madvise(start as *mut _, bytes, libc::MADV_DONTDUMP) };
    }
}

/// After the kernel refused a mapping at a fixed place: it may have removed what was there before
/// it knew that it would (`mmap` before Linux 6.12, `mremap` always). Then this reserves the place
/// again. If it cannot, because something is there, that is what was there before, or another
/// thread's new mapping, which must not be touched.
fn still_ours(start: usize, bytes: usize, error: MapError, moves: bool) -> MapError {
    static REMOVES_FIRST: LazyLock<bool> = LazyLock::new(|| {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < (6, 12)
    });
    match reserve_at(start, bytes) {
        Err(_) if moves || *REMOVES_FIRST => {
            lost::add(start, bytes);
            MapError::Lost
        }
        _ => error,
    }
}

/// Address space without access.
pub(super) fn reserve(bytes: usize) -> Result<usize, MapError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let p = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if p == libc::MAP_FAILED {
        return Err(refused("make a reservation", bytes));
    }
    Ok(p as usize)
}

/// Reserves exactly `[start, start + bytes)`, or fails if any of it is in use.
pub(super) fn reserve_at(start: usize, bytes: usize) -> Result<(), MapError> {
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE replaces nothing that exists.
    let p = unsafe { libc::mmap(start as *mut _, bytes, libc::PROT_NONE, flags, -1, 0) };
    if p == libc::MAP_FAILED {
        return Err(MapError::Taken);
    }
    if p as usize != start {
        // A kernel that does not know the flag treats the address as a hint.
        // SAFETY: what was just mapped and nobody knows of.
        unsafe { release(p as usize, bytes) };
        return Err(MapError::Taken);
    }
    Ok(())
}

/// Gives address space back.
///
/// # Safety
/// The caller reserved the range, and nothing refers to it any more.
pub(super) unsafe fn release(start: usize, bytes: usize) {
    if bytes != 0 && lost::none_in(start, bytes).is_ok() {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(start as *mut _, bytes) };
    }
}

/// Drops the pages of a private range: file-backed pages read as the file again, anonymous ones as
/// zero. False if they are still there: the host has locked them, and the kernel is older than
/// 5.18.
///
/// # Safety
/// The caller owns the range, and no Rust reference is to anything there.
#[must_use]
pub(super) unsafe fn discard(start: usize, bytes: usize) -> bool {
    if lost::none_in(start, bytes).is_err() {
        return false;
    }
    const MADV_DONTNEED_LOCKED: i32 = 24;
    // SAFETY: the caller's promise; these change contents only.
    unsafe {
        libc::madvise(start as *mut _, bytes, libc::MADV_DONTNEED) == 0
            || libc::madvise(start as *mut _, bytes, MADV_DONTNEED_LOCKED) == 0
    }
}

/// Maps zero pages, or a file's pages copy-on-write, over what is there.
///
/// # Safety
/// As [`discard`].
pub(super) unsafe fn place(
    start: usize,
    bytes: usize,
    protection: Protection,
    file: Option<(BorrowedFd<'_>, u64)>,
) -> Result<(), MapError> {
    if bytes == 0 {
        return Ok(());
    }
    lost::none_in(start, bytes)?;
    let mut flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let (fd, offset) = match file {
        Some((fd, offset)) => (fd.as_raw_fd(), offset as libc::off_t),
        None => {
            flags |= libc::MAP_ANONYMOUS;
            (-1, 0)
        }
    };
    // SAFETY: the caller owns the range and promises that nobody refers to it, so nothing of the
    // host is replaced.
    let p = unsafe { libc::mmap(start as *mut _, bytes, protection.bits(), flags, fd, offset) };
    if p == libc::MAP_FAILED {
        let error = refused("map memory", bytes);
        return Err(still_ours(start, bytes, error, false));
    }
    Ok(())
}

/// Maps a file's pages, shared with everybody else who maps them, over what is there.
///
/// # Safety
/// As [`discard`]. Whoever touches the range expects that others write it, and a signal where the
/// file shrinks.
pub(super) unsafe fn share(
    start: usize,
    bytes: usize,
    protection: Protection,
    file: BorrowedFd<'_>,
    at: u64,
) -> Result<(), MapError> {
    lost::none_in(start, bytes)?;
    let (flags, fd) = (libc::MAP_SHARED | libc::MAP_FIXED, file.as_raw_fd());
    let at = libc::off_t::try_from(at).unwrap_or(-1);
    // SAFETY: as in `place`. Where the file shrinks, a touch is a signal: a fault of an extension,
    // an error of a copy of the runtime's.
    let p = unsafe { libc::mmap(start as *mut _, bytes, protection.bits(), flags, fd, at) };
    if p == libc::MAP_FAILED {
        let error = refused("share memory", bytes);
        return Err(still_ours(start, bytes, error, false));
    }
    Ok(())
}

/// Maps the pages of the shared mapping at `from` once more, over what is at `to`. It has no other
/// access than `protection` at any moment.
///
/// # Safety
/// For `[to, to + bytes)` as [`share`]. As much from `from` stays mapped during the call; and no
/// Rust reference to it expects that nobody writes it, as far as `protection` lets others do so.
pub(super) unsafe fn share_again(
    from: usize,
    bytes: usize,
    to: usize,
    protection: Protection,
) -> Result<(), MapError> {
    lost::none_in(to, bytes)?;
    // SAFETY: an old length of 0 makes the kernel leave the mapping at `from` as it is and map its
    // pages a second time, at a free address of its choice; for a private mapping it refuses.
    let aside = unsafe { libc::mremap(from as *mut _, 0, bytes, libc::MREMAP_MAYMOVE) };
    if aside == libc::MAP_FAILED {
        return Err(refused("share memory", bytes));
    }
    let aside = aside as usize;
    // SAFETY: the mapping was just made, and nobody else knows of it.
    let placed = unsafe { protect(aside, bytes, protection) }.and_then(|()| {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let (aside, to) = (aside as *mut libc::c_void, to as *mut libc::c_void);
        // SAFETY: moves the mapping that was just made and that nothing refers to; [to, to + bytes)
        // is the caller's own.
        match unsafe { libc::mremap(aside, bytes, bytes, flags, to) } {
            libc::MAP_FAILED => {
                let error = refused("share memory", bytes);
                Err(still_ours(to as usize, bytes, error, true))
            }
            _ => Ok(()),
        }
    });
    if placed.is_err() {
        // SAFETY: as above; it was not moved.
        unsafe { release(aside, bytes) };
    }
    placed
}

/// Changes the protection of a range.
///
/// # Safety
/// As [`discard`]; what becomes executable is text that may run there.
pub(super) unsafe fn protect(
    start: usize,
    bytes: usize,
    protection: Protection,
) -> Result<(), MapError> {
    lost::none_in(start, bytes)?;
    // SAFETY: the caller owns the range, and nothing of the host refers to it.
    if unsafe { libc::mprotect(start as *mut _, bytes, protection.bits()) } != 0 {
        return Err(refused("change the protection", bytes));
    }
    Ok(())
}

/// Moves the pages of one mapping, `[from, from + bytes)`, over what is at `to`. The mapping itself
/// stays, empty, so there is no moment at which the kernel could give its addresses away.
///
/// # Safety
/// For both ranges as [`discard`]; nobody uses what lies in them meanwhile.
pub(super) unsafe fn carry(from: usize, bytes: usize, to: usize) -> Result<(), MapError> {
    if bytes == 0 {
        return Ok(());
    }
    lost::none_in(from, bytes)?;
    lost::none_in(to, bytes)?;
    const DONTUNMAP: i32 = 4;
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | DONTUNMAP;
    // SAFETY: the caller's promise.
    let p = unsafe { libc::mremap(from as *mut _, bytes, bytes, flags, to as *mut libc::c_void) };
    if p == libc::MAP_FAILED {
        let error = refused("move a mapping", bytes);
        return Err(still_ours(to, bytes, error, true));
    }
    Ok(())
}
