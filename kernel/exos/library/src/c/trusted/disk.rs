//! The functions of <exos/disk.h>.

use core::ffi::{c_char, c_int, c_long, c_void};

use postern_exos_abi::errno;
use postern_exos_fs::TwoQueues;

use crate::c::trusted::{answer, string};
use crate::disk::own;
use crate::disk::policy::Choice;
use crate::disk::serve::{self, How, Make};
use crate::disk::trusted::Functions;

#[unsafe(no_mangle)]
extern "C" fn exos_disk_blocks(range: c_int) -> c_long {
    answer(own::blocks(range.max(0) as usize).map(|blocks| blocks as c_long))
}

/// # Safety
/// The pages are the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_disk_read(
    range: c_int,
    first: u64,
    to: *mut c_void,
    count: usize,
) -> c_int {
    answer(own::read(range.max(0) as usize, first, to as u64, count).map(|()| 0))
}

/// # Safety
/// The pages are the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_disk_write(
    range: c_int,
    first: u64,
    from: *const c_void,
    count: usize,
) -> c_int {
    answer(own::write(range.max(0) as usize, first, from as u64, count).map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn exos_disk_flush(range: c_int) -> c_int {
    answer(own::flush(range.max(0) as usize).map(|()| 0))
}

/// `struct exos_disk_files`.
#[repr(C)]
pub struct DiskFiles {
    name: *const c_char,
    blocks: u64,
    frames: u32,
    make: u32,
    policy: *const Functions,
}

/// # Safety
/// What it says, and what that names, stays as it is while this serves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_files_on_disk(how: *const DiskFiles) -> c_int {
    // SAFETY: the caller says so.
    let how = unsafe { &*how };
    // SAFETY: as above.
    let (name, policy) = unsafe { (string(how.name), how.policy.as_ref()) };
    let make = match how.make {
        0 => Make::No,
        1 => Make::Missing,
        2 => Make::Anew,
        _ => return answer(Err(errno::INVAL)),
    };
    let served = serve::serve(How {
        name,
        blocks: how.blocks,
        frames: how.frames as usize,
        make,
        choice: match policy {
            Some(functions) => Choice::Own(*functions),
            None => Choice::Queues(TwoQueues::new()),
        },
    });
    answer(served.map(|()| 0))
}
