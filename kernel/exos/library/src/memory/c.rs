//! What C calls: `sys/mman.h`, `exos/memory.h`, `sbrk`.

mod chosen;
mod pager;

use core::ffi::{c_int, c_long};

use postern_aegis::{Error, PAGE, memory};
use postern_exos_pages::entry::{Entry, PROTECTION};

use crate::memory::space::{Space, used};
use crate::memory::trusted;

const ENOMEM: c_int = 12;
const EACCES: c_int = 13;
const EFAULT: c_int = 14;
const EINVAL: c_int = 22;
const FAILED: u64 = u64::MAX;

/// Stores are for all who have it.
pub const MAP_SHARED: c_int = 0x01;
/// Stores are for this process.
pub const MAP_PRIVATE: c_int = 0x02;
const MAP_FIXED: c_int = 0x10;
/// No file's.
pub const MAP_ANONYMOUS: c_int = 0x20;
const MAP_POPULATE: c_int = 0x8000;

/// The error number of a refusal.
fn number(error: Error) -> c_int {
    match error {
        Error::Denied => EACCES,
        Error::Argument | Error::Kind => EINVAL,
        _ => ENOMEM,
    }
}

/// Calls with the space; C's error number is set if that fails.
fn with<T>(failed: T, call: impl FnOnce(&mut Space) -> Result<T, c_int>) -> T {
    match trusted::with(call) {
        Some(Ok(value)) => value,
        Some(Err(error)) => fails(failed, error),
        None => fails(failed, ENOMEM),
    }
}

#[cold]
fn fails<T>(failed: T, error: c_int) -> T {
    trusted::set_errno(error);
    failed
}

/// A range in whole pages: the first, and the one behind the last.
fn range(address: u64, length: u64) -> Result<(u64, u64), c_int> {
    let end = address.checked_add(length).ok_or(EINVAL)?;
    let (first, end) = (address >> 12, end.div_ceil(PAGE as u64));
    if !address.is_multiple_of(PAGE as u64) || length == 0 || !Space::may_map(first, end - first) {
        return Err(EINVAL);
    }
    Ok((first, end))
}

fn allowed(protection: c_int) -> Result<u64, c_int> {
    let protection = protection as u64;
    if protection & !PROTECTION != 0 {
        return Err(EINVAL);
    }
    Ok(protection)
}

/// Moves the heap's end.
#[unsafe(no_mangle)]
pub extern "C" fn sbrk(more: i64) -> u64 {
    with(FAILED, |space| space.grow_heap(more).map_err(number))
}

/// Maps memory, or a file of the archive: which, and from where on, or C's error number.
pub fn map(
    address: u64,
    length: u64,
    protection: c_int,
    kind: c_int,
    file: impl FnOnce() -> Result<(u32, i64), c_int>,
) -> u64 {
    with(FAILED, |space| {
        let protection = allowed(protection)?;
        let file = match kind & MAP_ANONYMOUS {
            0 => Some(file()?),
            _ => None,
        };
        let pages = length.div_ceil(PAGE as u64);
        let first = if kind & MAP_FIXED != 0 {
            range(address, length)?.0
        } else {
            if pages == 0 {
                return Err(EINVAL);
            }
            space.choose(address >> 12, pages).map_err(number)?
        };
        if let Some((index, offset)) = file {
            let shared = kind & MAP_SHARED != 0;
            if offset < 0
                || !(offset as u64).is_multiple_of(PAGE as u64)
                || shared == (kind & MAP_PRIVATE != 0)
            {
                return Err(EINVAL);
            }
            let from = offset as u64 / PAGE as u64;
            space
                .map_file((first, pages), protection, (index, shared), from)
                .map_err(number)?;
            if kind & MAP_POPULATE != 0 {
                // What is behind the file does not come.
                (first..first + pages).for_each(|page| _ = space.wire(page));
            }
            return Ok(first << 12);
        }
        let now = kind & (MAP_SHARED | MAP_POPULATE);
        let shared = if kind & MAP_SHARED != 0 {
            Entry::SHARED
        } else {
            0
        };
        let now = (now != 0).then_some(shared);
        space.map(first, pages, protection, now).map_err(number)?;
        Ok(first << 12)
    })
}

/// Takes memory away.
#[unsafe(no_mangle)]
pub extern "C" fn munmap(address: u64, length: u64) -> c_int {
    with(-1, |space| {
        let (first, end) = range(address, length)?;
        space.unmap(first, end).map_err(number)?;
        Ok(0)
    })
}

/// Changes what may be done in a range.
#[unsafe(no_mangle)]
pub extern "C" fn mprotect(address: u64, length: u64, protection: c_int) -> c_int {
    if length == 0 {
        return 0;
    }
    with(-1, |space| {
        let protection = allowed(protection)?;
        let (first, end) = range(address, length)?;
        let changed = space.protect_range(first, end, protection);
        changed.map_err(number)?;
        Ok(0)
    })
}

/// Changes what may be done to a page.
#[unsafe(no_mangle)]
pub extern "C" fn exos_protect(page: u64, protection: c_int) -> c_int {
    with(-1, |space| {
        let protection = allowed(protection)?;
        space.protect(page >> 12, protection).map_err(number)?;
        Ok(0)
    })
}

/// Changes what may be done to many pages.
///
/// # Safety
/// There are so many words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_protect_many(
    pages: *const u64,
    count: usize,
    protection: c_int,
) -> c_int {
    // SAFETY: the caller says so.
    let pages = unsafe { trusted::addresses(pages, count) };
    with(-1, |space| {
        let protection = allowed(protection)?;
        space.protect_many(pages, protection).map_err(number)?;
        Ok(0)
    })
}

/// What the processor and the table have noted of a page: flags of [`Entry`].
fn noted(address: u64) -> Option<u64> {
    trusted::with(|space| {
        let Some(entry) = space.entry(address >> 12) else {
            // What is to come has been used for nothing.
            return space.regions.at(address >> 12).map(|_| 0);
        };
        let now = match entry.has(Entry::THERE) && !entry.has(Entry::HIDDEN) {
            true => used(address),
            false => 0,
        };
        Some(now | entry.0)
    })
    .flatten()
}

fn is(address: u64, flag: u64) -> c_int {
    match noted(address) {
        Some(flags) => c_int::from(flags & flag != 0),
        None => fails(-1, EFAULT),
    }
}

/// Whether a page was stored to.
#[unsafe(no_mangle)]
pub extern "C" fn exos_dirty(address: u64) -> c_int {
    is(address, Entry::DIRTY)
}

/// Whether a page was touched.
#[unsafe(no_mangle)]
pub extern "C" fn exos_touched(address: u64) -> c_int {
    is(address, Entry::TOUCHED)
}

/// The number of the page at an address.
#[unsafe(no_mangle)]
pub extern "C" fn exos_page_number(address: u64) -> c_long {
    let number = trusted::with(|space| {
        let entry = space.entry(address >> 12)?;
        match (entry.has(Entry::THERE), entry.has(Entry::HIDDEN)) {
            (false, _) => None,
            (true, true) => Some(entry.number()),
            (true, false) => memory::page_at(address),
        }
    });
    number
        .flatten()
        .map_or_else(|| fails(-1, EFAULT), c_long::from)
}

/// Has pages come now.
#[unsafe(no_mangle)]
pub extern "C" fn exos_wire(address: u64, length: u64) -> c_int {
    with(-1, |space| {
        let (first, end) = range(address & !0xfff, length + (address & 0xfff))?;
        for page in first..end {
            match space.wire(page) {
                Ok(true) => {}
                Ok(false) => return Err(EFAULT),
                Err(error) => return Err(number(error)),
            }
        }
        Ok(0)
    })
}
