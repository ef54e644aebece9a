//! How the console is read.

use core::ffi::c_int;

use postern_exos_abi::errno;

use crate::c::trusted::answer;
use crate::files::{console, descriptors};

/// As the header says it: Linux's.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Termios {
    flags: [u32; 4],
    line: u8,
    characters: [u8; 32],
    speeds: [u32; 2],
}

/// Which of the flags are those of reading.
const LOCAL: usize = 3;

/// Ctrl-C, none, Backspace, Ctrl-U, Ctrl-D, no time, at least one byte.
const CHARACTERS: [u8; 7] = [3, 0, 127, 21, 4, 0, 1];

/// # Safety
/// The memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcgetattr(number: c_int, to: *mut Termios) -> c_int {
    let mut mode = Termios::default();
    mode.flags[LOCAL] = console::mode();
    mode.characters[..CHARACTERS.len()].copy_from_slice(&CHARACTERS);
    let result = descriptors::console(number);
    // SAFETY: the caller says so.
    answer(result.map(|()| unsafe { to.write(mode) }).map(|()| 0))
}

/// # Safety
/// The memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcsetattr(number: c_int, _when: c_int, from: *const Termios) -> c_int {
    let result = descriptors::console(number);
    // SAFETY: the caller says so.
    answer(
        result
            .map(|()| console::set_mode(unsafe { from.read() }.flags[LOCAL]))
            .map(|()| 0),
    )
}

/// What there is to be asked of devices in ways of their own: nothing.
#[unsafe(no_mangle)]
extern "C" fn ioctl(number: c_int) -> c_int {
    answer(descriptors::get(number).and(Err(errno::NOTTY)))
}
