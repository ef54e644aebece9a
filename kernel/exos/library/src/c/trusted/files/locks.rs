//! Locks of bytes: `fcntl` and `flock`. A lock is the process's, and goes when it has the file open no
//! more. `flock` takes that of all bytes.

use core::ffi::c_int;

use postern_aegis::entry;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::protocol::{lock, status};

use crate::c::trusted::answer;
use crate::files::descriptors::{self, Descriptor, flag, kind};
use crate::files::offsets;
use crate::files::served::File;
use crate::process::signals;

/// As the header says it: Linux's.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Lock {
    kind: i16,
    whence: i16,
    start: i64,
    length: i64,
    pid: i32,
}

const READ: i16 = 0;
const WRITE: i16 = 1;
const FREE: i16 = 2;

/// What a call of `fcntl` does with locks: asks, takes, or waits and takes.
pub const ASK: c_int = 5;
pub const TAKE: c_int = 6;
pub const WAIT: c_int = 7;

impl Lock {
    fn what(&self) -> Result<u32, Errno> {
        match self.kind {
            READ => Ok(lock::READ),
            WRITE => Ok(lock::WRITE),
            FREE => Ok(lock::FREE),
            _ => Err(errno::INVAL),
        }
    }

    /// The first byte, and how many (0: all that come).
    fn range(&self, file: File) -> Result<(u64, u64), Errno> {
        let base = match self.whence {
            0 => 0,
            1 => offsets::word(file.place()).load(core::sync::atomic::Ordering::Relaxed),
            2 => file.status()?[status::SIZE],
            _ => return Err(errno::INVAL),
        };
        let at = base.checked_add_signed(self.start).ok_or(errno::INVAL)?;
        match self.length {
            0.. => Ok((at, self.length as u64)),
            length => {
                let from = at.checked_add_signed(length).ok_or(errno::INVAL)?;
                Ok((from, length.unsigned_abs()))
            }
        }
    }
}

/// Whether a descriptor is for what a lock is taken for.
fn may(descriptor: Descriptor, what: u32) -> bool {
    let access = descriptor.flags & flag::ACCESS;
    !matches!(
        (what, access),
        (lock::READ, flag::WRITES) | (lock::WRITE, 0)
    )
}

/// Takes a lock; waits for it, if it is to.
fn take(file: File, what: u32, (from, count): (u64, u64), waits: bool) -> Result<(), Errno> {
    loop {
        match file.lock(what, from, count) {
            Err(errno::AGAIN) if waits => {}
            result => return result.map(drop),
        }
        if signals::poll() {
            return Err(errno::INTR);
        }
        entry::yield_slice();
    }
}

/// `fcntl` of locks.
pub fn control(descriptor: Descriptor, what: c_int, asked: &mut Lock) -> Result<c_int, Errno> {
    let wanted = asked.what()?;
    let Some(file) = descriptors::served(descriptor) else {
        // Nobody writes a file of the archive.
        return match (descriptor.kind, what) {
            (kind::FILE, ASK) => {
                asked.kind = FREE;
                Ok(0)
            }
            (kind::FILE, _) if wanted != lock::WRITE => Ok(0),
            _ => Err(errno::BADF),
        };
    };
    let range = asked.range(file)?;
    if what != ASK {
        if !may(descriptor, wanted) {
            return Err(errno::BADF);
        }
        return take(file, wanted, range, what == WAIT).map(|()| 0);
    }
    if wanted == lock::FREE {
        return Err(errno::INVAL);
    }
    let [other, from, count, pid] = file.lock(wanted | lock::ASKS, range.0, range.1)?;
    match other as u32 {
        lock::FREE => asked.kind = FREE,
        other => {
            let kind = if other == lock::WRITE { WRITE } else { READ };
            *asked = Lock {
                kind,
                whence: 0,
                start: from as i64,
                length: count as i64,
                pid: pid as i32,
            };
        }
    }
    Ok(0)
}

const SHARED: c_int = 1;
const ALONE: c_int = 2;
const AT_ONCE: c_int = 4;
const FREED: c_int = 8;

#[unsafe(no_mangle)]
extern "C" fn flock(number: c_int, what: c_int) -> c_int {
    let wanted = match what & !AT_ONCE {
        SHARED => Ok(lock::READ),
        ALONE => Ok(lock::WRITE),
        FREED => Ok(lock::FREE),
        _ => Err(errno::INVAL),
    };
    let taken = descriptors::get(number).and_then(|descriptor| {
        let wanted = wanted?;
        match descriptors::served(descriptor) {
            Some(file) => take(file, wanted, (0, 0), what & AT_ONCE == 0),
            None if descriptor.kind == kind::FILE => Ok(()),
            None => Err(errno::INVAL),
        }
    });
    answer(taken.map(|()| 0))
}
