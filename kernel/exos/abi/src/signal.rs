//! Signals' numbers, as the C library (newlib) has them, and how `wait` says how a process ended.
#![allow(missing_docs, reason = "names as in C, without SIG")]

/// Numbers are below this.
pub const COUNT: u32 = 32;

pub const HUP: u32 = 1;
pub const INT: u32 = 2;
pub const QUIT: u32 = 3;
pub const ILL: u32 = 4;
pub const TRAP: u32 = 5;
pub const ABRT: u32 = 6;
pub const FPE: u32 = 8;
pub const KILL: u32 = 9;
pub const BUS: u32 = 10;
pub const SEGV: u32 = 11;
pub const SYS: u32 = 12;
pub const PIPE: u32 = 13;
pub const ALRM: u32 = 14;
pub const TERM: u32 = 15;
pub const URG: u32 = 16;
pub const STOP: u32 = 17;
pub const TSTP: u32 = 18;
pub const CONT: u32 = 19;
pub const CHLD: u32 = 20;
pub const TTIN: u32 = 21;
pub const TTOU: u32 = 22;
pub const XCPU: u32 = 24;
pub const WINCH: u32 = 28;
pub const USR1: u32 = 30;
pub const USR2: u32 = 31;

/// The status of a process that ended with an exit code.
pub const fn exited(code: i32) -> u32 {
    (code as u32 & 0xff) << 8
}

/// The status of a process that a signal ended.
pub const fn killed(signal: u32) -> u32 {
    signal & 0x7f
}

/// The status of a process that a signal stopped.
pub const fn stopped(signal: u32) -> u32 {
    (signal & 0x7f) << 8 | 0x7f
}

/// The status of a process that goes on.
pub const CONTINUED: u32 = 0xffff;

/// A status that stands for an end, whatever a process says.
pub const fn status(word: u64) -> u32 {
    let (code, signal) = (word as u32 & 0xff00, word as u32 & 0x7f);
    match signal {
        0 => code,
        _ => killed(signal),
    }
}

/// What ends a process that has no handler for an exception of a vector.
pub const fn of_exception(vector: u32) -> u32 {
    match vector {
        0 | 16 | 19 => FPE,
        1 | 3 => TRAP,
        4 | 5 | 13 | 14 => SEGV,
        17 => BUS,
        _ => ILL,
    }
}
