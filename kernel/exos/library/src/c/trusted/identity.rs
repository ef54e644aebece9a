//! Who the user is, of whom there is one, and what the machine is called.

use core::ffi::{c_char, c_int, c_long};

use postern_exos_abi::errno;
use postern_exos_abi::start::DESCRIPTORS;

use crate::c::trusted::answer;

macro_rules! nobody {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> usize {
                0
            }
        )*
    };
}
// Numbers of users and groups, and records of them, of which there are none.
nobody! { getuid geteuid getgid getegid issetugid getlogin getpwnam getpwuid getgrnam getgrgid }

/// Bytes of each of the names.
const NAME: usize = 65;

/// As `<sys/utsname.h>` has it: system, node, release, version, machine, domain.
type Names = [[u8; NAME]; 6];

/// # Safety
/// The memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uname(to: *mut Names) -> c_int {
    let mut names = [[0; NAME]; 6];
    let values = [
        "ExOS",
        "exos",
        env!("CARGO_PKG_VERSION"),
        "on Aegis",
        "x86_64",
    ];
    for (name, value) in names.iter_mut().zip(values) {
        name[..value.len()].copy_from_slice(value.as_bytes());
    }
    // SAFETY: the caller says so.
    unsafe { to.write(names) };
    0
}

/// # Safety
/// The memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostname(to: *mut c_char, room: usize) -> c_int {
    let name = b"exos\0";
    if room < name.len() {
        return answer(Err(errno::NAMETOOLONG));
    }
    // SAFETY: the caller says so, and that there is room.
    unsafe {
        to.cast::<u8>()
            .copy_from_nonoverlapping(name.as_ptr(), name.len())
    };
    0
}

/// Newlib's numbers.
mod name {
    pub const CLOCK_TICKS: i32 = 2;
    pub const OPEN_MAX: i32 = 4;
    pub const PAGE_SIZE: i32 = 8;
}

#[unsafe(no_mangle)]
extern "C" fn sysconf(name: c_int) -> c_long {
    match name {
        name::PAGE_SIZE => 4096,
        name::OPEN_MAX => DESCRIPTORS as c_long,
        name::CLOCK_TICKS => 1000,
        _ => answer(Err(errno::INVAL)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn getpagesize() -> c_int {
    4096
}
