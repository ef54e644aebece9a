//! What is done with names that stand beside a folder that is open: `openat` and its like.

use core::ffi::{c_char, c_int};
use core::slice;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::protocol::{Operation, PATH, walk};

use super::names;
use super::status::{self, Stat};
use crate::c::trusted::{answer, string};
use crate::files::{descriptors, folders, served};

/// The folder that the process is in.
const HERE: c_int = -100;
/// A link at the end is not followed.
const NO_FOLLOW: c_int = 0x100;
/// A folder's name is to be taken away.
const FOLDER: c_int = 0x200;
/// A link at the end is followed.
const FOLLOW: c_int = 0x400;

/// A name, and where it stands.
struct Name {
    bytes: [u8; PATH],
    length: usize,
}

impl Name {
    /// # Safety
    /// A string.
    unsafe fn of(folder: c_int, name: *const c_char) -> Result<Name, Errno> {
        // SAFETY: the caller says so.
        let name = unsafe { string(name) };
        let mut whole = Name {
            bytes: [0; PATH],
            length: 0,
        };
        if folder != HERE && !matches!(name, [] | [b'/', ..]) {
            let path = folders::path_of(descriptors::get(folder)?)?;
            whole.push(path.bytes())?;
            whole.push(b"/")?;
        }
        whole.push(name)?;
        Ok(whole)
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let end = self.length + bytes.len();
        let to = self.bytes.get_mut(self.length..end);
        to.ok_or(errno::NAMETOOLONG)?.copy_from_slice(bytes);
        self.length = end;
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// # Safety
/// A string.
unsafe fn with<T: From<i8>>(
    folder: c_int,
    name: *const c_char,
    then: impl FnOnce(&[u8]) -> Result<T, Errno>,
) -> T {
    // SAFETY: the caller says so.
    answer(unsafe { Name::of(folder, name) }.and_then(|name| then(name.bytes())))
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
unsafe extern "C" fn openat(
    folder: c_int,
    name: *const c_char,
    flags: c_int,
    mode: c_int,
) -> c_int {
    let open = |name: &[u8]| descriptors::open_file(name, flags as u64, mode as u32);
    // SAFETY: the caller says so.
    unsafe { with(folder, name, open) }
}

/// # Safety
/// A string, and the memory is the caller's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fstatat(
    folder: c_int,
    name: *const c_char,
    to: *mut Stat,
    flags: c_int,
) -> c_int {
    let follows = follows(flags & NO_FOLLOW == 0);
    // SAFETY: the caller says so.
    let tell =
        |name: &[u8]| status::status_at(name, follows).map(|status| unsafe { to.write(status) });
    // SAFETY: as above.
    unsafe { with(folder, name, |name| tell(name).map(|()| 0)) }
}

fn follows(is: bool) -> u32 {
    if is { walk::FOLLOW } else { 0 }
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
unsafe extern "C" fn mkdirat(folder: c_int, name: *const c_char, mode: u32) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(folder, name, |name| {
            names::make_folder(name, mode).map(|()| 0)
        })
    }
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
unsafe extern "C" fn unlinkat(folder: c_int, name: *const c_char, flags: c_int) -> c_int {
    let remove = |name: &[u8]| served::remove(name, flags & FOLDER != 0);
    // SAFETY: the caller says so.
    unsafe { with(folder, name, |name| remove(name).map(|()| 0)) }
}

/// # Safety
/// Strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn renameat(
    from_folder: c_int,
    from: *const c_char,
    folder: c_int,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller says so.
    let both =
        unsafe { Name::of(from_folder, from).and_then(|from| Ok((from, Name::of(folder, name)?))) };
    answer(
        both.and_then(|(from, to)| served::rename(from.bytes(), to.bytes()))
            .map(|()| 0),
    )
}

/// # Safety
/// Strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn linkat(
    from_folder: c_int,
    from: *const c_char,
    folder: c_int,
    name: *const c_char,
    flags: c_int,
) -> c_int {
    if flags & FOLLOW != 0 {
        return answer(Err(errno::NOTSUP));
    }
    // SAFETY: the caller says so.
    let both =
        unsafe { Name::of(from_folder, from).and_then(|from| Ok((from, Name::of(folder, name)?))) };
    answer(
        both.and_then(|(from, to)| served::link(from.bytes(), to.bytes()))
            .map(|()| 0),
    )
}

/// # Safety
/// Strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn symlinkat(target: *const c_char, folder: c_int, name: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let target = unsafe { string(target) };
    // SAFETY: as above.
    unsafe {
        with(folder, name, |name| {
            names::make_link(target, name).map(|()| 0)
        })
    }
}

/// # Safety
/// A string, and room for so many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn readlinkat(
    folder: c_int,
    name: *const c_char,
    to: *mut u8,
    room: usize,
) -> isize {
    if room == 0 {
        return answer(Err(errno::INVAL));
    }
    // SAFETY: the caller says so.
    let to = unsafe { slice::from_raw_parts_mut(to, room) };
    // SAFETY: as above.
    unsafe {
        with(folder, name, |name| {
            served::target(name, to).map(|length| length as isize)
        })
    }
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
unsafe extern "C" fn faccessat(
    folder: c_int,
    name: *const c_char,
    mode: c_int,
    _flags: c_int,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe { with(folder, name, |name| status::may(name, mode).map(|()| 0)) }
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
unsafe extern "C" fn fchmodat(
    folder: c_int,
    name: *const c_char,
    mode: u32,
    flags: c_int,
) -> c_int {
    let follows = follows(flags & NO_FOLLOW == 0);
    let change = |name: &[u8]| served::change(name, Operation::SetMode, mode.into(), follows);
    // SAFETY: the caller says so.
    unsafe { with(folder, name, |name| change(name).map(|()| 0)) }
}

/// # Safety
/// A string; two times of two words, or null: now.
#[unsafe(no_mangle)]
unsafe extern "C" fn utimensat(
    folder: c_int,
    name: *const c_char,
    times: *const [[i64; 2]; 2],
    flags: c_int,
) -> c_int {
    // SAFETY: the caller says so.
    let times = unsafe { times.as_ref() };
    let follows = follows(flags & NO_FOLLOW == 0);
    // SAFETY: as above.
    unsafe {
        with(folder, name, |name| {
            names::touch(name, times, follows).map(|()| 0)
        })
    }
}
