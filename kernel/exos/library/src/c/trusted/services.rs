//! The functions of <exos/service.h>.

use core::ffi::{c_char, c_int, c_long, c_uint};

use postern_exos_abi::errno;
use postern_exos_abi::service::{Found, NAME, SERVICES, WORDS};

use crate::c::trusted::{answer, string};
use crate::process::registry;

/// # Safety
/// A string, and words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_serve(name: *const c_char, words: *const [u64; WORDS]) -> c_int {
    // SAFETY: the caller says so.
    let (name, words) = unsafe { (string(name), *words) };
    answer(registry::serve(name, words).map(|_| 0))
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_serve_no_more(name: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(registry::serve_no_more(name).map(|()| 0))
}

/// `struct exos_service`.
#[repr(C)]
pub struct Service {
    pid: u32,
    birth: u32,
    environment: u32,
    reserved: u32,
    words: [u64; WORDS],
}

/// # Safety
/// A string, and room for what is found.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_service(name: *const c_char, to: *mut Service) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    let found = registry::services().named(name).ok_or(errno::NOENT);
    // SAFETY: the caller says so.
    answer(
        found
            .map(|found| unsafe { to.write(found.into()) })
            .map(|()| 0),
    )
}

impl From<Found> for Service {
    fn from(found: Found) -> Service {
        Service {
            pid: found.pid,
            birth: found.birth,
            environment: found.environment.into(),
            reserved: 0,
            words: found.words,
        }
    }
}

/// # Safety
/// Room for what is found, and for a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_service_at(
    place: c_uint,
    to: *mut Service,
    name: *mut [u8; NAME],
) -> c_int {
    if place as usize >= SERVICES {
        return answer(Err(errno::INVAL));
    }
    let found = registry::services().at(place as usize).ok_or(errno::NOENT);
    answer(found.map(|(found, its)| {
        // SAFETY: the caller says so.
        unsafe {
            to.write(found.into());
            name.write(its);
        }
        0
    }))
}

#[unsafe(no_mangle)]
extern "C" fn exos_blocks(count: u64) -> c_long {
    answer(registry::blocks(count).map(|range| range as c_long))
}

#[unsafe(no_mangle)]
extern "C" fn exos_holdings(count: c_uint) -> c_int {
    answer(registry::holdings(count.into()).map(|count| count as c_int))
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_files_in_memory(name: *const c_char, pages: c_uint) -> c_int {
    // SAFETY: the caller says so.
    let name = unsafe { string(name) };
    answer(crate::files::ram::serve(name, pages).map(|()| 0))
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_unmount(path: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let path = unsafe { string(path) };
    answer(crate::files::served::unmount(path).map(|()| 0))
}
