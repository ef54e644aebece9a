//! Filters that the program has the kernel put before its calls: they are of the program's calls,
//! and not of those that the loader makes for itself.
//!
//! A filter is told where a call comes from. In front of each goes a piece that lets pass what
//! comes from the loader's text, but for the places there from which it makes calls of the
//! program's.

use crate::stubs::{self, OWN};
use crate::system::{self, error, number};
use crate::trap::{self, Call};
use alloc::vec::Vec;

/// An instruction of the kernel's: code, where it goes if so and if not, a word.
#[derive(Clone, Copy)]
#[repr(C)]
struct Instruction {
    code: u16,
    so: u8,
    not: u8,
    word: u32,
}

/// Instructions of a filter, at most.
const MOST: usize = 4096;

fn load(offset: u32) -> Instruction {
    Instruction {
        code: 0x20,
        so: 0,
        not: 0,
        word: offset,
    }
}

fn jump(code: u16, word: u32, so: u8, not: u8) -> Instruction {
    Instruction {
        code,
        so,
        not,
        word,
    }
}

/// What goes in front.
fn front() -> [Instruction; 9] {
    const EQUAL: u16 = 0x15;
    const AT_LEAST: u16 = 0x35;
    const PLACE: u32 = 8;
    let low = |at: u64| at as u32;
    let [a, b, c] = trap::places();
    [
        load(PLACE + 4),
        jump(EQUAL, (OWN >> 32) as u32, 0, 6),
        load(PLACE),
        jump(AT_LEAST, low(stubs::START), 4, 0),
        jump(EQUAL, low(a), 3, 0),
        jump(EQUAL, low(b), 2, 0),
        jump(EQUAL, low(c), 1, 0),
        // It passes.
        Instruction {
            code: 0x06,
            so: 0,
            not: 0,
            word: 0x7fff_0000,
        },
        // As a filter finds it.
        Instruction {
            code: 0x00,
            so: 0,
            not: 0,
            word: 0,
        },
    ]
}

/// The calls `seccomp` and `prctl`, which install the filter at this address.
pub fn install(call: &mut Call<'_>, words: [u64; 6], index: usize) {
    let mut head = [0; 16];
    if !system::read_program(words[index], &mut head) {
        return call.answer(error::EFAULT);
    }
    let count = usize::from(u16::from_le_bytes([head[0], head[1]]));
    let at = head[8..].try_into().map_or(0, u64::from_le_bytes);
    let front = front();
    if count == 0 || count + front.len() > MOST {
        return call.answer(error::EINVAL);
    }
    let mut bytes = alloc::vec![0; 8 * count];
    if !system::read_program(at, &mut bytes) {
        return call.answer(error::EFAULT);
    }
    let mut all = Vec::from(front);
    all.extend(bytes.chunks_exact(8).map(|b| Instruction {
        code: u16::from_le_bytes([b[0], b[1]]),
        so: b[2],
        not: b[3],
        word: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
    }));
    let program = [all.len() as u64, all.as_ptr() as u64];
    let mut words = words;
    words[index] = &raw const program as u64;
    // SAFETY: the kernel reads the filter, which stays until then.
    call.answer(unsafe { system::call(call.number, words) });
}

/// Whether a call installs one: which of its words is where the filter is.
pub fn installs(number: u64, words: [u64; 6]) -> Option<usize> {
    const SET_FILTER: u64 = 1;
    const SET_SECCOMP: u64 = 22;
    const FILTER: u64 = 2;
    match number {
        number::SECCOMP if words[0] == SET_FILTER => Some(2),
        number::PRCTL if words[0] == SET_SECCOMP && words[1] == FILTER => Some(2),
        _ => None,
    }
}
