//! Files in memory: <sys/mman.h>. Pages of the archive are bound; bytes of a server's file are read into
//! pages of this process's own, since those of its cache change when the file does.

use core::ffi::c_int;
use core::slice;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::protocol::status;

use crate::c::trusted::answer;
use crate::files::descriptors::{self, Descriptor, flag, kind};
use crate::files::served::File;
use crate::memory::c::{self, MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED};

const READ: c_int = 1;
const WRITE: c_int = 2;
const FAILED: u64 = u64::MAX;

/// Maps memory, or a file.
#[unsafe(no_mangle)]
extern "C" fn mmap(
    address: u64,
    length: u64,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> u64 {
    let found = descriptors::get(descriptor);
    if flags & MAP_ANONYMOUS == 0
        && let Ok(found) = found
        && let Some(file) = descriptors::served(found)
    {
        let shared = flags & MAP_SHARED != 0;
        let is = may(found, shared, protection).and_then(|()| {
            let whole = offset >= 0 && offset % 4096 == 0;
            match whole && shared != (flags & MAP_PRIVATE != 0) {
                true => Ok(()),
                false => Err(errno::INVAL),
            }
        });
        return match is {
            Ok(()) => read_in((address, length), protection, flags, file, offset as u64),
            Err(error) => answer::<i64>(Err(error)) as u64,
        };
    }
    c::map(address, length, protection, flags, || {
        let descriptor = found.map_err(|error| error.0)?;
        match descriptor.kind {
            kind::FILE => Ok((descriptor.words[0] as u32, offset)),
            _ => Err(errno::NODEV.0),
        }
    })
}

fn may(found: Descriptor, shared: bool, protection: c_int) -> Result<(), Errno> {
    let writes = shared && protection & WRITE != 0;
    match found.flags & flag::ACCESS {
        flag::WRITES => Err(errno::ACCES),
        0 if writes => Err(errno::ACCES),
        // What is stored there would be the file's, and nobody would see to that.
        _ if writes => Err(errno::NODEV),
        _ => Ok(()),
    }
}

fn read_in(
    (address, length): (u64, u64),
    protection: c_int,
    flags: c_int,
    file: File,
    offset: u64,
) -> u64 {
    let size = match file.status() {
        Ok(status) => status[status::SIZE],
        Err(error) => return answer::<i64>(Err(error)) as u64,
    };
    let own = flags & !MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS;
    let at = c::map(address, length, READ | WRITE, own, || Err(errno::NODEV.0));
    if at == FAILED {
        return FAILED;
    }
    let some = size.saturating_sub(offset).min(length) as usize;
    // SAFETY: it has just been mapped, to be written, and nobody knows it yet.
    let bytes = unsafe { slice::from_raw_parts_mut(at as *mut u8, some) };
    let read = file.read_at(offset, bytes);
    if let Err(error) = read {
        c::munmap(at, length);
        return answer::<i64>(Err(error)) as u64;
    }
    if protection != READ | WRITE && c::mprotect(at, length, protection) != 0 {
        c::munmap(at, length);
        return FAILED;
    }
    at
}
