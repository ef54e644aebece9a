//! The web server: <exos/web.h>.

use core::ffi::{c_char, c_int};

use crate::c::trusted::{answer, string};
use crate::web::serve::{self, Settings};

/// `struct exos_web`.
#[repr(C)]
pub struct Web {
    folder: *const c_char,
    connections: u32,
    port: u16,
    logs: u8,
    plugins: u8,
}

/// # Safety
/// Settings with a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_web_serve(web: *const Web) -> c_int {
    // SAFETY: the caller says so.
    let (web, folder) = unsafe { (&*web, string((*web).folder)) };
    let settings = Settings {
        port: web.port,
        folder,
        connections: web.connections as usize,
        logs: web.logs != 0,
        plugins: web.plugins != 0,
    };
    answer(serve::run(&settings).map(|()| 0))
}
