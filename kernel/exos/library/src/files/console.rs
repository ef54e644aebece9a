//! Lines from the console, with what was typed shown and taken back; bytes to it.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use postern_aegis::{Error, calls, entry};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::request::typed;
use postern_exos_abi::signal;

use crate::process::{groups, own, registry, signals};

const LINE: usize = 512;

/// What was typed and not read yet.
static BYTES: [AtomicU8; LINE] = [const { AtomicU8::new(0) }; LINE];
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// How the console is read: bits of C's `c_lflag`.
pub mod mode {
    /// Ctrl-C is a signal.
    pub const SIGNALS: u32 = 1;
    /// By lines, which are edited.
    pub const LINES: u32 = 2;
    /// What is typed is shown.
    pub const ECHO: u32 = 8;
}

/// This process's way.
static MODE: AtomicU32 = AtomicU32::new(mode::SIGNALS | mode::LINES | mode::ECHO);

/// How this process reads it.
pub fn mode() -> u32 {
    MODE.load(Relaxed)
}

/// Another way from now on.
pub fn set_mode(mode: u32) {
    MODE.store(mode, Relaxed);
}

fn has(bit: u32) -> bool {
    mode() & bit != 0
}

/// Shows what was typed.
fn show(bytes: &[u8]) {
    if has(mode::ECHO) {
        let _ = write(bytes);
    }
}

/// Writes bytes.
pub fn write(bytes: &[u8]) -> Result<usize, Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match calls::write(&bytes[done..]) {
            Ok(0) => entry::yield_slice(),
            Ok(more) => done += more as usize,
            // Pages of others, or not touched yet: through the stack.
            Err(Error::Unmapped | Error::Denied) => {
                let mut piece = [0; 256];
                let length = (bytes.len() - done).min(piece.len());
                piece[..length].copy_from_slice(&bytes[done..done + length]);
                let written = calls::write(&piece[..length]).map_err(|_| errno::IO)?;
                done += written as usize;
            }
            Err(_) => return Err(errno::IO),
        }
    }
    Ok(done)
}

/// A byte that was typed; waits for it.
fn next() -> Result<u8, Errno> {
    loop {
        match registry::typed(typed::TAKE) {
            Ok(byte) => return Ok(byte),
            Err(errno::AGAIN) => entry::yield_slice(),
            Err(_) => return Err(errno::IO),
        }
        if signals::poll() {
            return Err(errno::INTR);
        }
    }
}

/// Ctrl-C: a signal for the group that the console is for.
fn interrupt() {
    let _ = write(b"^C\n");
    let _ = registry::kill_group(groups::foreground(), signal::INT);
}

/// Looks at what is typed for a process that waits and has given the console to others: Ctrl-C is
/// theirs at once, though they do not read, and all else waits for who reads next.
pub fn watch() {
    if registry::typed(typed::WATCH).is_ok() {
        interrupt();
    }
}

/// Whether something was typed and not read. It stays for who reads.
pub fn has_some() -> bool {
    TAKEN.load(Relaxed) < LENGTH.load(Relaxed) || registry::typed(typed::LOOK).is_ok()
}

/// Whether this process has given the console to another group.
static GIVEN: AtomicBool = AtomicBool::new(false);

/// Gives the console to a group.
pub fn give(group: u32) -> Result<(), Errno> {
    registry::set_foreground(group)?;
    GIVEN.store(group != groups::own(), Relaxed);
    Ok(())
}

/// Whether this process watches the console while it waits.
pub fn watches() -> bool {
    GIVEN.load(Relaxed)
}

/// One byte as it was typed.
fn byte(to: &mut [u8]) -> Result<usize, Errno> {
    let byte = next()?;
    if byte == typed::INTERRUPT && has(mode::SIGNALS) {
        interrupt();
        return Err(errno::INTR);
    }
    show(&[byte]);
    let Some(first) = to.first_mut() else {
        return Ok(0);
    };
    *first = byte;
    Ok(1)
}

/// Reads a line: false at its end by Ctrl-D.
fn line() -> Result<bool, Errno> {
    let mut length = 0;
    loop {
        let byte = next()?;
        match byte {
            b'\r' | b'\n' => {
                show(b"\n");
                BYTES[length].store(b'\n', Relaxed);
                LENGTH.store(length + 1, Relaxed);
                return Ok(true);
            }
            typed::INTERRUPT if has(mode::SIGNALS) => {
                let ignores = own::pid() == 1 || signals::ignored() & 1 << signal::INT != 0;
                if groups::own() == groups::foreground() && ignores {
                    show(b"^C\n");
                    BYTES[0].store(b'\n', Relaxed);
                    LENGTH.store(1, Relaxed);
                    return Ok(true);
                }
                interrupt();
                length = 0;
                if signals::poll() || groups::own() == groups::foreground() {
                    return Err(errno::INTR);
                }
            }
            4 => {
                LENGTH.store(length, Relaxed);
                return Ok(length > 0);
            }
            8 | 127 if length > 0 => {
                length -= 1;
                show(b"\x08 \x08");
            }
            21 => {
                for _ in 0..length {
                    show(b"\x08 \x08");
                }
                length = 0;
            }
            b'\t' | 32.. if length + 1 < LINE => {
                BYTES[length].store(byte, Relaxed);
                length += 1;
                show(&[byte]);
            }
            _ => {}
        }
    }
}

/// Reads what there is of a line, and waits for one if there is nothing; 0 at the end.
pub fn read(to: &mut [u8]) -> Result<usize, Errno> {
    if to.is_empty() {
        return Ok(0);
    }
    if TAKEN.load(Relaxed) >= LENGTH.load(Relaxed) {
        TAKEN.store(0, Relaxed);
        LENGTH.store(0, Relaxed);
        if !has(mode::LINES) {
            return byte(to);
        }
        if !line()? {
            return Ok(0);
        }
    }
    let taken = TAKEN.load(Relaxed);
    let bytes = BYTES[..LENGTH.load(Relaxed).min(LINE)].iter().skip(taken);
    let mut count = 0;
    for (to, from) in to.iter_mut().zip(bytes) {
        *to = from.load(Relaxed);
        count += 1;
    }
    TAKEN.store(taken + count, Relaxed);
    Ok(count)
}
