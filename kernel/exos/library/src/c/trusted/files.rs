//! Files.

use core::ffi::{c_char, c_int};
use core::slice;
use core::sync::atomic::Ordering::Relaxed;

use postern_exos_abi::directory::{Entry, NAME};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_load::archive;

use crate::c::trusted::{answer, string};
use crate::files::descriptors::{self, flag, kind};
use crate::files::offsets;
use crate::memory;

/// As the header says it: Linux's.
#[repr(C)]
#[derive(Default)]
pub struct Stat {
    device: u64,
    inode: u64,
    links: u64,
    mode: u32,
    user: u32,
    group: u32,
    padding: u32,
    special: u64,
    size: i64,
    block: i64,
    blocks: i64,
    times: [u64; 6],
    spare: [u64; 3],
}

const REGULAR: u32 = 0o100_555;
const FOLDER: u32 = 0o040_555;
const DEVICE: u32 = 0o020_666;
const PIPE: u32 = 0o010_600;
const SOCKET: u32 = 0o140_600;

fn status(mode: u32, inode: u64, size: u64) -> Stat {
    Stat {
        inode,
        links: 1,
        mode,
        size: size as i64,
        block: 4096,
        blocks: size.div_ceil(512) as i64,
        ..Stat::default()
    }
}

fn status_of_file(index: usize) -> Result<Stat, Errno> {
    let file = archive::nth(index).ok_or(errno::NOENT)?;
    Ok(status(REGULAR, index as u64 + 2, file.length))
}

/// Maps memory, or a file of the archive.
#[unsafe(no_mangle)]
extern "C" fn mmap(
    address: u64,
    length: u64,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> u64 {
    memory::c::map(address, length, protection, flags, || {
        let descriptor = descriptors::get(descriptor).map_err(|error| error.0)?;
        match descriptor.kind {
            kind::FILE => Ok((descriptor.words[0] as u32, offset)),
            _ => Err(errno::NODEV.0),
        }
    })
}

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

/// # Safety
/// The name is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(name: *const c_char, flags: c_int, _mode: c_int) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(descriptors::open_file(name, flags as u64))
}

#[unsafe(no_mangle)]
extern "C" fn close(number: c_int) -> c_int {
    answer(descriptors::close(number).map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn lseek(number: c_int, offset: i64, from: c_int) -> i64 {
    answer(descriptors::seek(number, offset, from).map(|at| at as i64))
}

/// # Safety
/// The memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat(number: c_int, to: *mut Stat) -> c_int {
    let result = descriptors::get(number).and_then(|descriptor| match descriptor.kind {
        kind::FILE => status_of_file(descriptor.words[0] as usize),
        kind::FOLDER => Ok(status(FOLDER, 1, 0)),
        kind::PIPE => Ok(status(PIPE, 1, 0)),
        kind::SOCKET => Ok(status(SOCKET, 1, 0)),
        _ => Ok(status(DEVICE, 1, 0)),
    });
    // SAFETY: the caller says so.
    answer(result.map(|status| unsafe { to.write(status) }).map(|()| 0))
}

/// # Safety
/// The name is a string, and the memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(name: *const c_char, to: *mut Stat) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    let result = match name {
        b"/" | b"." | b"./" => Ok(status(FOLDER, 1, 0)),
        _ => archive::index_of(name)
            .ok_or(errno::NOENT)
            .and_then(status_of_file),
    };
    // SAFETY: the caller says so.
    answer(result.map(|status| unsafe { to.write(status) }).map(|()| 0))
}

/// # Safety
/// As [`stat`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lstat(name: *const c_char, to: *mut Stat) -> c_int {
    // SAFETY: as there.
    unsafe { stat(name, to) }
}

/// # Safety
/// The name is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(name: *const c_char, mode: c_int) -> c_int {
    let mut status = Stat::default();
    // SAFETY: the caller says so.
    let there = unsafe { stat(name, &raw mut status) };
    match there {
        0 if mode & 2 != 0 => answer(Err(errno::ROFS)),
        there => there,
    }
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

#[unsafe(no_mangle)]
extern "C" fn fcntl(number: c_int, what: c_int, value: c_int) -> c_int {
    let result = descriptors::get(number).and_then(|descriptor| {
        let flags = descriptor.flags;
        let set = |flags| descriptors::set_flags(number, flags).map(|()| 0);
        match what {
            DUPLICATE => descriptors::duplicate(number, value),
            GET_CLOSES => Ok(c_int::from(flags & flag::CLOSES != 0)),
            SET_CLOSES if value & 1 != 0 => set(flags | flag::CLOSES),
            SET_CLOSES => set(flags & !flag::CLOSES),
            GET => Ok((flags & !flag::CLOSES) as c_int),
            SET => set(flags & !flag::NONBLOCK | value as u64 & flag::NONBLOCK),
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

macro_rules! read_only {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> c_int {
                answer(Err(errno::ROFS))
            }
        )*
    };
}
read_only! { link unlink mkdir rmdir rename chmod ftruncate truncate symlink utimes }

/// Nothing is written that could be lost.
#[unsafe(no_mangle)]
extern "C" fn fsync(number: c_int) -> c_int {
    answer(descriptors::get(number).map(|_| 0))
}

#[unsafe(no_mangle)]
extern "C" fn sync() {}

/// There are no links.
#[unsafe(no_mangle)]
extern "C" fn readlink() -> isize {
    answer(Err(errno::INVAL))
}

/// An entry of a folder, as the header says it.
#[repr(C)]
struct Listed {
    inode: u64,
    offset: i64,
    length: u16,
    kind: u8,
    name: [u8; 256],
}

/// Folders that are read at once.
const FOLDERS: usize = 4;
static mut LISTED: [Listed; FOLDERS] = [const {
    Listed {
        inode: 0,
        offset: 0,
        length: 0,
        kind: 0,
        name: [0; 256],
    }
}; FOLDERS];

/// # Safety
/// The name is a string. What comes back is the descriptor's number plus 1, and no address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opendir(name: *const c_char) -> usize {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    let number = answer(descriptors::open_file(name, flag::FOLDER));
    (number + 1) as usize
}

fn folder(handle: usize) -> Result<(i32, u64), Errno> {
    let number = i32::try_from(handle)
        .map_err(|_| errno::BADF)?
        .wrapping_sub(1);
    let descriptor = descriptors::get(number)?;
    match descriptor.kind {
        kind::FOLDER => Ok((number, descriptor.words[1])),
        _ => Err(errno::NOTDIR),
    }
}

#[unsafe(no_mangle)]
extern "C" fn readdir(handle: usize) -> *const Listed {
    let Ok((number, place)) = folder(handle) else {
        return core::ptr::null();
    };
    let offset = offsets::word(place);
    let index = offset.fetch_add(1, Relaxed);
    let entry: Option<&Entry> = archive::files().get(index as usize);
    let Some(entry) = entry else {
        return core::ptr::null();
    };
    let mut name = [0; 256];
    name[..NAME].copy_from_slice(&entry.name);
    // SAFETY: only this function writes there, and C reads what it gave until it is called again.
    unsafe {
        let listed = (&raw mut LISTED)
            .cast::<Listed>()
            .add(number as usize % FOLDERS);
        listed.write(Listed {
            inode: index + 2,
            offset: index as i64,
            length: size_of::<Listed>() as u16,
            kind: 8,
            name,
        });
        listed
    }
}

#[unsafe(no_mangle)]
extern "C" fn closedir(handle: usize) -> c_int {
    answer(
        folder(handle)
            .and_then(|(number, _)| descriptors::close(number))
            .map(|()| 0),
    )
}

#[unsafe(no_mangle)]
extern "C" fn rewinddir(handle: usize) {
    if let Ok((_, place)) = folder(handle) {
        offsets::word(place).store(0, Relaxed);
    }
}
