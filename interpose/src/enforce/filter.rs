//! The filter: instructions of classic BPF, which the kernel runs at each call of the programs.

use super::calls::{CALLS, LAST, MEMORY_FILES, Treatment};
use libc::sock_filter;

/// Places in what the kernel tells: number, architecture, words.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const WORDS: u32 = 16;
const X86_64: u32 = 0xc000_003e;
/// The calls of x32, which have other meanings.
const X32: u32 = 0x4000_0000;

const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const SET: u16 = 0x45;
const ABOVE: u16 = 0x25;
const RETURN: u16 = 0x06;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;

fn error(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number as u32
}

fn step(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn ends(with: u32) -> sock_filter {
    step(RETURN, with, 0, 0)
}

/// All of it. Calls by other conventions (`int 0x80`, x32), and those that are not known here, have
/// `ENOSYS`. With `restricted`, what is executed is.
pub fn program(restricted: bool) -> Vec<sock_filter> {
    let mut all = vec![
        step(LOAD, ARCHITECTURE, 0, 0),
        step(EQUAL, X86_64, 1, 0),
        ends(error(libc::ENOSYS)),
        step(LOAD, NUMBER, 0, 0),
        step(SET, X32, 1, 0),
        step(ABOVE, LAST, 0, 1),
        ends(error(libc::ENOSYS)),
    ];
    let memory_files = restricted.then_some(&MEMORY_FILES);
    for (number, treatment) in CALLS.iter().chain(memory_files) {
        let part = part(*treatment);
        all.push(step(EQUAL, *number as u32, 0, part.len() as u8));
        all.extend(part);
    }
    all.push(ends(ALLOW));
    all
}

fn low(word: usize) -> sock_filter {
    step(LOAD, WORDS + 8 * word as u32, 0, 0)
}

/// A call whose first words are each this or -1 passes.
fn same(words: usize, id: u32) -> Vec<sock_filter> {
    let mut part = Vec::new();
    for word in 0..words {
        part.extend([
            low(word),
            step(EQUAL, id, 2, 0),
            step(EQUAL, u32::MAX, 1, 0),
            ends(error(libc::EPERM)),
        ]);
    }
    part.push(ends(ALLOW));
    part
}

/// A call whose word is one of these ends so, and passes otherwise.
fn one_of(word: usize, values: &[u32], with: u32) -> Vec<sock_filter> {
    let mut part = vec![low(word)];
    for value in values {
        part.extend([step(EQUAL, *value, 0, 1), ends(with)]);
    }
    part.push(ends(ALLOW));
    part
}

/// What is done about one call.
fn part(treatment: Treatment) -> Vec<sock_filter> {
    let high = |word: usize| step(LOAD, WORDS + 8 * word as u32 + 4, 0, 0);
    match treatment {
        Treatment::Asked => vec![ends(ASK)],
        Treatment::Refused(number) => vec![ends(error(number))],
        Treatment::AskedIf(word) => vec![
            low(word),
            step(EQUAL, 0, 0, 2),
            high(word),
            step(EQUAL, 0, 1, 0),
            ends(ASK),
            ends(ALLOW),
        ],
        Treatment::RefusedIf(number, word, bits) => vec![
            low(word),
            step(SET, bits, 0, 1),
            ends(error(number)),
            ends(ALLOW),
        ],
        Treatment::SameUser(words) => same(words, rustix::process::geteuid().as_raw()),
        Treatment::SameGroup(words) => same(words, rustix::process::getegid().as_raw()),
        Treatment::AskedFor(word, values) => one_of(word, values, ASK),
        Treatment::RefusedFor(number, word, values) => one_of(word, values, error(number)),
    }
}
