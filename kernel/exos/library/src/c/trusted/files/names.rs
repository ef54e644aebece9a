//! What is done with names.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::slice;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Kind;
use postern_exos_abi::protocol::{Operation, PATH, walk};

use crate::c::trusted::{answer, string};
use crate::files::descriptors::{self, flag};
use crate::files::folders;
use crate::files::paths::{self, Path, Target};
use crate::files::{self, served};

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
}

/// # Safety
/// The name is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(name: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(descriptors::open_file(name, flags as u64, mode as u32))
}

/// # Safety
/// Strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn link(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let (from, to) = unsafe { (string(from), string(to)) };
    answer(served::link(from, to).map(|()| 0))
}

/// # Safety
/// Strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn symlink(target: *const c_char, name: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let (target, name) = unsafe { (string(target), string(name)) };
    answer(make_link(target, name).map(|()| 0))
}

/// A link of a name that leads to a target.
pub fn make_link(target: &[u8], name: &[u8]) -> Result<(), Errno> {
    match target {
        b"" => Err(errno::NOENT),
        target => served::make(name, Kind::Link, 0o777, target),
    }
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(name: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(served::remove(name, false).map(|()| 0))
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdir(name: *const c_char, mode: u32) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(make_folder(name, mode).map(|()| 0))
}

/// A folder with nothing in it.
pub fn make_folder(name: &[u8], mode: u32) -> Result<(), Errno> {
    served::make(name, Kind::Folder, mode & !paths::mask(), b"")
}

#[unsafe(no_mangle)]
extern "C" fn umask(mask: u32) -> u32 {
    paths::set_mask(mask)
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmdir(name: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(served::remove(name, true).map(|()| 0))
}

/// # Safety
/// Strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let (from, to) = unsafe { (string(from), string(to)) };
    answer(served::rename(from, to).map(|()| 0))
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chmod(name: *const c_char, mode: u32) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(served::change(name, Operation::SetMode, mode.into(), walk::FOLLOW).map(|()| 0))
}

/// There is one user, who has all files.
///
/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chown(name: *const c_char, _user: u32, _group: u32) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    let found = Path::of(name).and_then(|mut path| paths::follow(&mut path, walk::FOLLOW, 0));
    answer(found.map(|_| 0))
}

/// # Safety
/// As [`chown`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lchown(name: *const c_char, _user: u32, _group: u32) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    let found = Path::of(name).and_then(|mut path| paths::follow(&mut path, 0, 0));
    answer(found.map(|_| 0))
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truncate(name: *const c_char, length: i64) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    let length = u64::try_from(length).map_err(|_| errno::INVAL);
    let cut =
        length.and_then(|length| served::change(name, Operation::SetLength, length, walk::FOLLOW));
    answer(cut.map(|()| 0))
}

/// The time is left as it is.
const OMIT: i64 = (1 << 30) - 2;
/// It is now.
const NOW: i64 = (1 << 30) - 1;

/// The second of two times, in nanoseconds, if it is to be set.
pub fn modified(times: Option<&[[i64; 2]; 2]>) -> Result<Option<u64>, Errno> {
    match times {
        None | Some([_, [_, NOW]]) => Ok(Some(files::now())),
        Some([_, [_, OMIT]]) => Ok(None),
        Some([_, [seconds, nano @ 0..1_000_000_000]]) => {
            let all = i128::from(*seconds) * 1_000_000_000 + i128::from(*nano);
            Ok(Some(all.clamp(0, u64::MAX.into()) as u64))
        }
        Some(_) => Err(errno::INVAL),
    }
}

/// # Safety
/// A string; two times of two words, or null: now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn utimes(name: *const c_char, times: *const [[i64; 2]; 2]) -> c_int {
    // SAFETY: the caller says so.
    let (name, times) = unsafe { (string(name), times.as_ref()) };
    let nano =
        times.map(|times| times.map(|[seconds, micro]| [seconds, micro.saturating_mul(1000)]));
    answer(touch(name, nano.as_ref(), walk::FOLLOW).map(|()| 0))
}

/// A file has another time.
pub fn touch(name: &[u8], times: Option<&[[i64; 2]; 2]>, flags: u32) -> Result<(), Errno> {
    match modified(times)? {
        Some(time) => served::change(name, Operation::SetModified, time, flags),
        None => Ok(()),
    }
}

/// # Safety
/// A string, and room for so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readlink(name: *const c_char, to: *mut u8, room: usize) -> isize {
    if room == 0 {
        return answer(Err(errno::INVAL));
    }
    // SAFETY: the caller says so.
    let (name, to) = unsafe { (string(name), slice::from_raw_parts_mut(to, room)) };
    answer(served::target(name, to).map(|length| length as isize))
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chdir(name: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(go(name).map(|()| 0))
}

fn go(name: &[u8]) -> Result<(), Errno> {
    let mut path = Path::of(name)?;
    path.is_folder = true;
    match paths::follow(&mut path, walk::FOLLOW | walk::FOLDER, 0)? {
        Target::Archive | Target::Served(..) => paths::set_current(&path),
        Target::File(_) | Target::Console | Target::Null => return Err(errno::NOTDIR),
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn fchdir(number: c_int) -> c_int {
    let path = descriptors::get(number).and_then(folders::path_of);
    answer(path.and_then(|path| go(path.bytes())).map(|()| 0))
}

/// # Safety
/// Room for so many bytes; null: they are allocated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getcwd(to: *mut u8, room: usize) -> *mut u8 {
    let path = paths::current();
    let room = match to.is_null() {
        true if room == 0 => PATH,
        _ => room,
    };
    // SAFETY: the caller says so.
    unsafe { tell(path.bytes(), to, room) }
}

/// # Safety
/// A string, and room for a path; null: it is allocated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realpath(name: *const c_char, to: *mut u8) -> *mut u8 {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    let path =
        Path::of(name).and_then(|mut path| paths::follow(&mut path, walk::FOLLOW, 0).map(|_| path));
    match path {
        // SAFETY: the caller says so.
        Ok(path) => unsafe { tell(path.bytes(), to, PATH) },
        Err(error) => {
            let _: c_int = answer(Err(error));
            null_mut()
        }
    }
}

/// # Safety
/// Room for so many bytes, or null.
unsafe fn tell(bytes: &[u8], to: *mut u8, room: usize) -> *mut u8 {
    let fails = |error| {
        let _: c_int = answer(Err(error));
        null_mut()
    };
    if room <= bytes.len() {
        return fails(if room == 0 {
            errno::INVAL
        } else {
            errno::RANGE
        });
    }
    let to = match to.is_null() {
        // SAFETY: C's own.
        true => unsafe { malloc(room) }.cast(),
        false => to,
    };
    if to.is_null() {
        return fails(errno::NOMEM);
    }
    // SAFETY: the caller says so.
    let room = unsafe { slice::from_raw_parts_mut(to, room) };
    room[..bytes.len()].copy_from_slice(bytes);
    room[bytes.len()] = 0;
    to
}

#[unsafe(no_mangle)]
extern "C" fn fchmod(number: c_int, mode: u32) -> c_int {
    let changed = super::file(number).and_then(|file| file.set_mode(mode));
    answer(changed.map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn fchown(number: c_int, _user: u32, _group: u32) -> c_int {
    answer(descriptors::get(number).map(|_| 0))
}

/// # Safety
/// Two times of two words, or null: now.
#[unsafe(no_mangle)]
unsafe extern "C" fn futimens(number: c_int, times: *const [[i64; 2]; 2]) -> c_int {
    // SAFETY: the caller says so.
    let time = modified(unsafe { times.as_ref() });
    let changed = super::file(number).and_then(|file| match time? {
        Some(time) => file.set_modified(time),
        None => Ok(()),
    });
    answer(changed.map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate(number: c_int, length: i64) -> c_int {
    let file = descriptors::get(number).and_then(|found| match found.flags & flag::ACCESS {
        0 => Err(errno::INVAL),
        _ => super::file(number),
    });
    answer(file.and_then(|file| file.set_length(length)).map(|()| 0))
}
