//! What is known of files, and of file systems.

use core::ffi::{c_char, c_int};

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Space;
use postern_exos_abi::protocol::{self, WORDS, walk};
use postern_exos_load::archive;

use crate::c::trusted::{answer, string};
use crate::files::descriptors::{self, kind};
use crate::files::paths::{self, Path, Target};
use crate::files::served::{self, File};

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
        blocks: words[protocol::status::BLOCKS].wrapping_mul(8) as i64,
        times: [seconds, rest, seconds, rest, change[0], change[1]],
        ..Stat::default()
    }
}

fn status_of_file(index: usize) -> Result<Stat, Errno> {
    let file = archive::nth(index).ok_or(errno::NOENT)?;
    Ok(status(REGULAR, index as u64 + 2, file.length))
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
pub fn status_at(name: &[u8], flags: u32) -> Result<Stat, Errno> {
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
    // SAFETY: the caller says so.
    answer(may(unsafe { string(name) }, mode).map(|()| 0))
}

const EXECUTES: c_int = 1;
const WRITES: c_int = 2;

/// Whether something may be done with a file: the one user reads and writes all of a server's.
pub fn may(name: &[u8], mode: c_int) -> Result<(), Errno> {
    let status = status_at(name, walk::FOLLOW)?;
    if mode & WRITES != 0 && status.device == 0 && status.mode & 0o222 == 0 {
        return Err(errno::ROFS);
    }
    match mode & EXECUTES != 0 && status.mode & 0o111 == 0 {
        true => Err(errno::ACCES),
        false => Ok(()),
    }
}

/// As the header says it: Linux's.
#[repr(C)]
#[derive(Default)]
pub struct Room {
    block: u64,
    fragment: u64,
    blocks: u64,
    free: u64,
    available: u64,
    files: u64,
    free_files: u64,
    available_files: u64,
    number: u64,
    flags: u64,
    name: u64,
}

/// That it is only read.
const READ_ONLY: u64 = 1;

fn room(space: Option<Space>) -> Room {
    let is_read = space.is_none();
    let Space {
        blocks,
        free,
        files,
        free_files,
    } = space.unwrap_or_else(|| Space {
        blocks: archive::pages() as u64,
        files: archive::files().len() as u64,
        ..Space::default()
    });
    Room {
        block: 4096,
        fragment: 4096,
        blocks,
        free,
        available: free,
        files,
        free_files,
        available_files: free_files,
        flags: if is_read { READ_ONLY } else { 0 },
        name: postern_exos_abi::file::NAME as u64,
        ..Room::default()
    }
}

/// # Safety
/// The name is a string, and the memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statvfs(name: *const c_char, to: *mut Room) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    let found = Path::of(name).and_then(|mut path| paths::follow(&mut path, walk::FOLLOW, 0));
    let space = found.and_then(|found| match found {
        Target::Served(server, _) => served::space(server).map(Some),
        _ => Ok(None),
    });
    // SAFETY: the caller says so.
    answer(
        space
            .map(|space| unsafe { to.write(room(space)) })
            .map(|()| 0),
    )
}

/// # Safety
/// The memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstatvfs(number: c_int, to: *mut Room) -> c_int {
    let space = descriptors::get(number).and_then(|found| match descriptors::served(found) {
        Some(file) => served::space(file.server()).map(Some),
        None => Ok(None),
    });
    // SAFETY: the caller says so.
    answer(
        space
            .map(|space| unsafe { to.write(room(space)) })
            .map(|()| 0),
    )
}
