//! Folders: <dirent.h>. A folder that is read is its descriptor.

use core::ffi::{c_char, c_int, c_long};
use core::ptr::null;
use core::sync::atomic::Ordering::Relaxed;

use postern_exos_abi::directory::{Entry, NAME};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Kind;
use postern_exos_load::archive;

use super::file;
use crate::c::trusted::{answer, string};
use crate::files::descriptors::{self, flag, kind};
use crate::files::offsets;
use crate::files::served::File;

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
#[unsafe(link_section = ".bss..lazy")]
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
        return null();
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
            Ok(None) => null(),
            Err(error) => {
                let _: c_int = answer(Err(error));
                null()
            }
        };
    }
    let offset = offsets::word(place);
    let index = offset.fetch_add(1, Relaxed);
    let entry: Option<&Entry> = archive::files().get(index as usize);
    let Some(entry) = entry else {
        return null();
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
extern "C" fn dirfd(handle: usize) -> c_int {
    answer(folder(handle).map(|(number, _)| number))
}

#[unsafe(no_mangle)]
extern "C" fn fdopendir(number: c_int) -> usize {
    let handle = number.wrapping_add(1) as usize;
    match folder(handle) {
        Ok(_) => handle,
        Err(error) => {
            let _: c_int = answer(Err(error));
            0
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn telldir(handle: usize) -> c_long {
    answer(folder(handle).map(|(_, place)| offsets::word(place).load(Relaxed) as c_long))
}

#[unsafe(no_mangle)]
extern "C" fn seekdir(handle: usize, to: c_long) {
    if let Ok((_, place)) = folder(handle) {
        offsets::word(place).store(to as u64, Relaxed);
    }
}

#[unsafe(no_mangle)]
extern "C" fn rewinddir(handle: usize) {
    if let Ok((_, place)) = folder(handle) {
        offsets::word(place).store(0, Relaxed);
    }
}
