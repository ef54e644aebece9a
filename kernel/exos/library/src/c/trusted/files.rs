//! Files.

use core::ffi::{c_char, c_int};
use core::slice;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::time;
use postern_exos_abi::directory::{Entry, NAME};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Kind;
use postern_exos_abi::protocol::{self, Operation, WORDS, walk};
use postern_exos_load::archive;

use crate::c::trusted::{answer, string};
use crate::files::descriptors::{self, flag, kind};
use crate::files::offsets;
use crate::files::paths::{self, Path, Target};
use crate::files::served::{self, File};
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

/// That of a server's file: which server it is makes the device.
fn status_of(server: u64, words: &[u64; WORDS]) -> Stat {
    let kind = match words[protocol::status::KIND] {
        2 => 0o040_000,
        3 => 0o120_000,
        _ => 0o100_000,
    };
    let [modified, changed] = [
        words[protocol::status::MODIFIED],
        words[protocol::status::CHANGED],
    ];
    let [seconds, rest] = [modified / 1_000_000_000, modified % 1_000_000_000];
    let change = [changed / 1_000_000_000, changed % 1_000_000_000];
    Stat {
        device: (server >> 16) + 1,
        inode: words[protocol::status::NODE],
        links: words[protocol::status::LINKS],
        mode: kind | words[protocol::status::MODE] as u32 & 0o777,
        size: words[protocol::status::SIZE] as i64,
        block: 4096,
        blocks: (words[protocol::status::BLOCKS] * 8) as i64,
        times: [seconds, rest, seconds, rest, change[0], change[1]],
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
pub unsafe extern "C" fn open(name: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(descriptors::open_file(name, flags as u64, mode as u32))
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
        kind::SERVED => {
            let file = File::of(descriptor.words);
            file.status().map(|words| status_of(file.word, &words))
        }
        kind::SOCKET => Ok(status(SOCKET, 1, 0)),
        _ => Ok(status(DEVICE, 1, 0)),
    });
    // SAFETY: the caller says so.
    answer(result.map(|status| unsafe { to.write(status) }).map(|()| 0))
}

/// What is known of what a path stands for.
fn status_at(name: &[u8], flags: u32) -> Result<Stat, Errno> {
    let mut path = Path::of(name)?;
    match paths::follow(&mut path, flags, 0)? {
        Target::Archive => Ok(status(FOLDER, 1, 0)),
        Target::File(_) if path.is_folder => Err(errno::NOTDIR),
        Target::File(index) => status_of_file(index),
        Target::Console | Target::Null => Ok(status(DEVICE, 1, 0)),
        Target::Served(server, words) => Ok(status_of(server.word(), &words)),
    }
}

/// # Safety
/// The name is a string, and the memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(name: *const c_char, to: *mut Stat) -> c_int {
    // SAFETY: the caller says so.
    let result = status_at(unsafe { string(name) }, walk::FOLLOW);
    // SAFETY: as above.
    answer(result.map(|status| unsafe { to.write(status) }).map(|()| 0))
}

/// # Safety
/// As [`stat`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lstat(name: *const c_char, to: *mut Stat) -> c_int {
    // SAFETY: the caller says so.
    let result = status_at(unsafe { string(name) }, 0);
    // SAFETY: as above.
    answer(result.map(|status| unsafe { to.write(status) }).map(|()| 0))
}

/// # Safety
/// The name is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(name: *const c_char, mode: c_int) -> c_int {
    let mut status = Stat::default();
    // SAFETY: the caller says so.
    let there = unsafe { stat(name, &raw mut status) };
    match there {
        0 if mode & 2 != 0 && status.device == 0 => answer(Err(errno::ROFS)),
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

/// The file of a server that a descriptor is of, or an error.
fn file(number: c_int) -> Result<File, Errno> {
    descriptors::served(descriptors::get(number)?).ok_or(errno::INVAL)
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
    answer(served::make(name, Kind::Link, 0o777, target).map(|()| 0))
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
    answer(served::make(name, Kind::Folder, mode, b"").map(|()| 0))
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
    answer(served::change(name, Operation::SetMode, mode.into()).map(|()| 0))
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truncate(name: *const c_char, length: i64) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    let length = u64::try_from(length).map_err(|_| errno::INVAL);
    let cut = length.and_then(|length| served::change(name, Operation::SetLength, length));
    answer(cut.map(|()| 0))
}

/// # Safety
/// A string; two times of two words, or null: now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn utimes(name: *const c_char, times: *const [[i64; 2]; 2]) -> c_int {
    // SAFETY: the caller says so.
    let (name, times) = unsafe { (string(name), times.as_ref()) };
    let time = match times {
        None => time::now() * 1_000_000_000,
        Some([_, [seconds, micro]]) => (seconds * 1_000_000 + micro).max(0) as u64 * 1000,
    };
    answer(served::change(name, Operation::SetModified, time).map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate(number: c_int, length: i64) -> c_int {
    let writes = descriptors::get(number).map(|found| found.flags & flag::ACCESS != 0);
    answer(match writes {
        Ok(true) => file(number)
            .and_then(|file| file.set_length(length))
            .map(|()| 0),
        Ok(false) => Err(errno::INVAL),
        Err(error) => Err(error),
    })
}

#[unsafe(no_mangle)]
extern "C" fn fsync(number: c_int) -> c_int {
    let found = descriptors::get(number);
    answer(found.and_then(|found| match descriptors::served(found) {
        Some(file) => file.synchronise().map(|()| 0),
        None => Ok(0),
    }))
}

/// Nothing is kept back here; what servers keep back `fsync` sees to.
#[unsafe(no_mangle)]
extern "C" fn sync() {}

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
    let moved = Path::of(name).and_then(|mut path| {
        path.is_folder = true;
        match paths::follow(&mut path, walk::FOLLOW | walk::FOLDER, 0)? {
            Target::Archive | Target::Served(..) => paths::set_current(&path),
            Target::File(_) | Target::Console | Target::Null => return Err(errno::NOTDIR),
        }
        Ok(())
    });
    answer(moved.map(|()| 0))
}

/// # Safety
/// Room for so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getcwd(to: *mut u8, room: usize) -> *mut u8 {
    let path = paths::current();
    let bytes = path.bytes();
    if to.is_null() || room <= bytes.len() {
        let error = if to.is_null() {
            errno::INVAL
        } else {
            errno::RANGE
        };
        let _: c_int = answer(Err(error));
        return core::ptr::null_mut();
    }
    // SAFETY: the caller says so.
    let room = unsafe { slice::from_raw_parts_mut(to, room) };
    room[..bytes.len()].copy_from_slice(bytes);
    room[bytes.len()] = 0;
    to
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
    let number = answer(descriptors::open_file(name, flag::FOLDER, 0));
    (number + 1) as usize
}

fn folder(handle: usize) -> Result<(i32, u64), Errno> {
    let number = i32::try_from(handle)
        .map_err(|_| errno::BADF)?
        .wrapping_sub(1);
    let descriptor = descriptors::get(number)?;
    match descriptor.kind {
        kind::FOLDER => Ok((number, descriptor.words[1])),
        kind::SERVED => Ok((number, File::of(descriptor.words).place())),
        _ => Err(errno::NOTDIR),
    }
}

#[unsafe(no_mangle)]
extern "C" fn readdir(handle: usize) -> *const Listed {
    let Ok((number, place)) = folder(handle) else {
        return core::ptr::null();
    };
    if let Ok(file) = file(number) {
        return match file.next_entry() {
            Ok(Some((entry, name))) => list(
                number,
                Listed {
                    inode: entry.node,
                    offset: entry.next as i64,
                    length: size_of::<Listed>() as u16,
                    kind: listed_kind(entry.kind),
                    name,
                },
            ),
            Ok(None) => core::ptr::null(),
            Err(error) => {
                let _: c_int = answer(Err(error));
                core::ptr::null()
            }
        };
    }
    let offset = offsets::word(place);
    let index = offset.fetch_add(1, Relaxed);
    let entry: Option<&Entry> = archive::files().get(index as usize);
    let Some(entry) = entry else {
        return core::ptr::null();
    };
    let mut name = [0; 256];
    name[..NAME].copy_from_slice(&entry.name);
    list(
        number,
        Listed {
            inode: index + 2,
            offset: index as i64,
            length: size_of::<Listed>() as u16,
            kind: listed_kind(Kind::File as u32),
            name,
        },
    )
}

/// What an entry is of, as C says it.
fn listed_kind(kind: u32) -> u8 {
    match kind {
        1 => 8,
        2 => 4,
        3 => 10,
        _ => 0,
    }
}

/// Shows an entry, until the next one of the same folder.
fn list(number: c_int, entry: Listed) -> *const Listed {
    // SAFETY: only this function writes there, and C reads what it gave until it is called again.
    unsafe {
        let listed = (&raw mut LISTED)
            .cast::<Listed>()
            .add(number as usize % FOLDERS);
        listed.write(entry);
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
