//! Descriptors.
//!
//! | module | what |
//! |---|---|
//! | `names`, `beside` | what is done with names, also beside a folder that is open |
//! | `status` | what is known of files |
//! | `folders` | lists of names |
//! | `vectors` | bytes at offsets, and in pieces |
//! | `locks` | locks of bytes |
//! | `mapped` | files in memory |

mod beside;
mod folders;
mod locks;
mod mapped;
mod names;
mod status;
mod vectors;

use core::ffi::c_int;
use core::slice;

use postern_exos_abi::errno::{self, Errno};

use crate::c::trusted::answer;
use crate::files::descriptors::{self, flag, kind};
use crate::files::mounts;
use crate::files::served::File;

/// # Safety
/// The bytes are the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(number: c_int, bytes: *const u8, length: usize) -> isize {
    if length == 0 {
        return answer(descriptors::write(number, &[]).map(|done| done as isize));
    }
    // SAFETY: the caller says so.
    let bytes = unsafe { slice::from_raw_parts(bytes, length) };
    answer(descriptors::write(number, bytes).map(|done| done as isize))
}

/// # Safety
/// The memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(number: c_int, to: *mut u8, length: usize) -> isize {
    if length == 0 {
        return answer(descriptors::get(number).map(|_| 0));
    }
    // SAFETY: the caller says so.
    let to = unsafe { slice::from_raw_parts_mut(to, length) };
    answer(descriptors::read(number, to).map(|done| done as isize))
}

#[unsafe(no_mangle)]
extern "C" fn close(number: c_int) -> c_int {
    answer(descriptors::close(number).map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn lseek(number: c_int, offset: i64, from: c_int) -> i64 {
    answer(descriptors::seek(number, offset, from).map(|at| at as i64))
}

#[unsafe(no_mangle)]
extern "C" fn isatty(number: c_int) -> c_int {
    let is = descriptors::get(number).and_then(|descriptor| match descriptor.kind {
        kind::CONSOLE => Ok(1),
        _ => Err(errno::NOTTY),
    });
    match is {
        Ok(is) => is,
        Err(error) => answer::<c_int>(Err(error)) + 1,
    }
}

#[unsafe(no_mangle)]
extern "C" fn dup(number: c_int) -> c_int {
    answer(descriptors::duplicate(number, 0))
}

#[unsafe(no_mangle)]
extern "C" fn dup2(number: c_int, to: c_int) -> c_int {
    answer(descriptors::duplicate_to(number, to))
}

const DUPLICATE: c_int = 0;
const GET_CLOSES: c_int = 1;
const SET_CLOSES: c_int = 2;
const GET: c_int = 3;
const SET: c_int = 4;
const DUPLICATE_CLOSES: c_int = 1030;

/// # Safety
/// For locks, one of the caller's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(number: c_int, what: c_int, argument: usize) -> c_int {
    let value = argument as c_int;
    let result = descriptors::get(number).and_then(|descriptor| {
        let flags = descriptor.flags;
        let set = |flags| descriptors::set_flags(number, flags).map(|()| 0);
        match what {
            DUPLICATE => descriptors::duplicate(number, value),
            DUPLICATE_CLOSES => {
                let again = descriptors::duplicate(number, value)?;
                descriptors::set_flags(again, flags | flag::CLOSES).map(|()| again)
            }
            GET_CLOSES => Ok(c_int::from(flags & flag::CLOSES != 0)),
            SET_CLOSES if value & 1 != 0 => set(flags | flag::CLOSES),
            SET_CLOSES => set(flags & !flag::CLOSES),
            GET => Ok((flags & !flag::CLOSES) as c_int),
            SET => {
                let some = flag::NONBLOCK | flag::APPEND;
                set(flags & !some | value as u64 & some)
            }
            locks::ASK | locks::TAKE | locks::WAIT => {
                // SAFETY: the caller says so.
                let lock = unsafe { (argument as *mut locks::Lock).as_mut() };
                locks::control(descriptor, what, lock.ok_or(errno::FAULT)?)
            }
            _ => Err(errno::INVAL),
        }
    });
    answer(result)
}

/// # Safety
/// Two words of the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pipe(ends: *mut c_int) -> c_int {
    // SAFETY: the caller says so.
    unsafe { pipe2(ends, 0) }
}

/// # Safety
/// As [`pipe`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pipe2(ends: *mut c_int, flags: c_int) -> c_int {
    let flags = flags as u64 & (flag::CLOSES | flag::NONBLOCK);
    // SAFETY: the caller says so.
    answer(
        descriptors::pipe(flags)
            .map(|both| unsafe { ends.cast::<[c_int; 2]>().write(both) })
            .map(|()| 0),
    )
}

/// The file of a server that a descriptor is of, or an error.
fn file(number: c_int) -> Result<File, Errno> {
    descriptors::served(descriptors::get(number)?).ok_or(errno::INVAL)
}

#[unsafe(no_mangle)]
extern "C" fn fsync(number: c_int) -> c_int {
    let found = descriptors::get(number);
    answer(found.and_then(|found| match descriptors::served(found) {
        Some(file) => file.synchronise().map(|()| 0),
        None => Ok(0),
    }))
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(number: c_int) -> c_int {
    fsync(number)
}

#[unsafe(no_mangle)]
extern "C" fn sync() {
    mounts::synchronise();
}
