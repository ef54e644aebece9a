//! Calls and touches at random.

use core::arch::global_asm;

use postern_aegis::entry::Frame;
use postern_aegis::{Error, calls, image};

global_asm!(
    ".text",
    ".global hammer_touch",
    "hammer_touch:",
    "movq (%rdi), %rax",
    "movq %rax, (%rdi)",
    ".global hammer_touched",
    "hammer_touched:",
    "ret",
    options(att_syntax)
);

unsafe extern "C" {
    fn hammer_touch(at: u64);
    static hammer_touched: u8;
}

/// Any call with any arguments.
pub fn any_call(number: u64, arguments: [u64; 6]) -> Result<u64, Error> {
    // SAFETY: there is none. This program may put anything over itself; it is here to be broken, and
    // nobody depends on what it does then but for what the kernel keeps.
    unsafe { calls::raw(number, arguments) }
}

/// Reads and writes a word, wherever it is, but not in the program.
pub fn touch(at: u64) {
    if !image::own(at) && !image::own(at.wrapping_add(7)) {
        // SAFETY: no memory of the program is there; if nothing is, the handler goes on behind it.
        unsafe { hammer_touch(at) }
    }
}

/// Whether an exception came from `touch`: then it goes on behind it.
pub fn skip(frame: &mut Frame) -> bool {
    let first = hammer_touch as *const () as u64;
    let last = (&raw const hammer_touched) as u64;
    let inside = (first..last).contains(&frame.rip);
    if inside {
        frame.rip = last;
    }
    inside
}
