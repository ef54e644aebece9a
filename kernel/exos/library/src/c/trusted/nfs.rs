//! Folders of other machines: <exos/nfs.h>.

use alloc::boxed::Box;
use core::ffi::{c_char, c_int};
use core::ptr;

use postern_exos_nfs::Patience;

use crate::c::trusted::{answer, string};
use crate::nfs::{self, Folder, Settings};

/// `struct exos_nfs`.
#[repr(C)]
pub struct Nfs {
    host: *const c_char,
    export: *const c_char,
    port: u16,
    mount_port: u16,
    user: u32,
    group: u32,
    timeout: u32,
    tries: u32,
    stream: u8,
    reads_only: u8,
}

/// # Safety
/// Settings with strings, and room for a string's address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_nfs_mount(
    what: *const Nfs,
    words: *mut *const c_char,
) -> *mut Folder {
    // SAFETY: the caller says so.
    let (what, host, export) = unsafe { (&*what, string((*what).host), string((*what).export)) };
    let settings = Settings {
        host,
        export,
        ports: [what.port, what.mount_port],
        user: [what.user, what.group],
        patience: Patience {
            first: Some(what.timeout.into()).filter(|timeout| *timeout != 0),
            tries: Some(what.tries).filter(|tries| *tries != 0),
        },
        is_stream: what.stream != 0,
        reads_only: what.reads_only != 0,
    };
    match nfs::mount(&settings) {
        Ok(folder) => Box::into_raw(Box::new(folder)),
        Err(failure) => {
            // SAFETY: the caller says so.
            unsafe { words.write(failure.words().as_ptr()) };
            let _: c_int = answer(Err(failure.error()));
            ptr::null_mut()
        }
    }
}

/// # Safety
/// What was mounted, which is not used any more, and a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_nfs_serve(folder: *mut Folder, name: *const c_char) -> c_int {
    // SAFETY: the caller says so: `exos_nfs_mount` has made it.
    let (folder, name) = unsafe { (Box::from_raw(folder), string(name)) };
    answer(nfs::serve(*folder, name).map(|()| 0))
}
