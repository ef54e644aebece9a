//! What the machine's end means: the emulator's exit status in words.

use std::fmt;
use std::process::ExitStatus;

use postern_aegis_abi::status::{BOOT, FAILED, PANIC, ROOT_ENDED, STOPPED, WELL};

/// How a machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The root environment stopped it with this status.
    Stopped(u8),
    /// The kernel panicked.
    Panic,
    /// The kernel lacks something, and did not start.
    Boot,
    /// The root environment ended, and nobody could stop the machine.
    RootEnded,
    /// Without a word: a triple fault, or somebody left the emulator.
    Silent,
    /// It ran longer than it was given.
    TimedOut,
    /// The emulator refused its options, or is missing.
    Emulator(i32),
    /// A status that the kernel has no words for.
    Unknown(i32),
    /// The emulator itself was killed by a signal.
    Killed,
}

impl Status {
    /// From the exit status of the emulator, run by `timeout`; `late` if its time was over when it
    /// ended: then some numbers are `timeout`'s own.
    pub fn of(status: ExitStatus, late: bool) -> Status {
        match status.code() {
            None => Status::Killed,
            Some(124 | 137) if late => Status::TimedOut,
            Some(0) => Status::Silent,
            Some(code @ (1 | 125..=127)) => Status::Emulator(code),
            Some(code) => Status::of_code(code),
        }
    }

    fn of_code(code: i32) -> Status {
        let byte = (code >> 1) as u8;
        match byte {
            _ if code & 1 == 0 => Status::Unknown(code),
            PANIC => Status::Panic,
            BOOT => Status::Boot,
            ROOT_ENDED => Status::RootEnded,
            STOPPED.. => Status::Stopped(byte - STOPPED),
            _ => Status::Unknown(code),
        }
    }

    /// Whether all went well.
    pub fn is_well(self) -> bool {
        self == Status::Stopped(WELL)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Stopped(WELL) => {
                f.write_str("the root environment stopped the machine: all went well")
            }
            Status::Stopped(FAILED) => {
                f.write_str("the root environment stopped the machine: a test failed")
            }
            Status::Stopped(status) => write!(
                f,
                "the root environment stopped the machine with status {status}"
            ),
            Status::Panic => f.write_str("the kernel panicked: its backtrace stands above"),
            Status::Boot => f.write_str("the kernel did not start: what it lacks stands above"),
            Status::RootEnded => {
                f.write_str("the root environment ended, and nobody was left to stop the machine")
            }
            Status::Silent => f.write_str(
                "the machine ended without a status: a triple fault, or somebody left the emulator",
            ),
            Status::TimedOut => {
                f.write_str("the machine ran longer than it was given, and was ended")
            }
            Status::Emulator(code) => write!(
                f,
                "the emulator did not start (status {code}): `make setup-aegis` installs it"
            ),
            Status::Unknown(code) => write!(
                f,
                "the emulator ended with {code}, which the kernel has no words for"
            ),
            Status::Killed => f.write_str("the emulator was killed by a signal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn every_byte_of_the_kernel_has_words_of_its_own() {
        let of = |code: i32, late| Status::of(ExitStatus::from_raw(code << 8), late);
        let mut seen = std::collections::BTreeSet::new();
        for byte in [PANIC, BOOT, ROOT_ENDED].into_iter().chain(STOPPED..=127) {
            let status = of(i32::from(byte) * 2 + 1, false);
            assert!(seen.insert(status.to_string()), "{byte}: {status}");
            assert!(
                !matches!(status, Status::Unknown(_) | Status::Emulator(_)),
                "{byte}"
            );
            assert_eq!(status.is_well(), byte == STOPPED + WELL);
        }
        assert_eq!(of(0, false), Status::Silent);
        assert_eq!(of(1, false), Status::Emulator(1));
        assert_eq!(of(127, false), Status::Emulator(127));
        assert_eq!(of(124, true), Status::TimedOut);
        assert_eq!(
            (of(137, true), of(137, false)),
            (Status::TimedOut, Status::Stopped(4))
        );
        assert_eq!(Status::of(ExitStatus::from_raw(9), false), Status::Killed);
    }
}
