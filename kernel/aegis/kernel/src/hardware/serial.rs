//! The console: the first serial line, polled. One processor writes at a time.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use super::port;

const BASE: u16 = 0x3f8;
/// Line status: a byte has come, the next can be written, all are out.
const STATUS: u16 = BASE + 5;
const COME: u8 = 1;
const ROOM: u8 = 0x20;
const EMPTY: u8 = 0x40;

static BUSY: AtomicBool = AtomicBool::new(false);

/// 115,200 bits a second, no interrupts.
pub fn start() {
    for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 0xc7), (4, 3)] {
        port::write(BASE + register, value);
    }
}

/// Whether a byte has come.
pub fn has_come() -> bool {
    port::read(STATUS) & COME != 0
}

/// A byte, if one has come.
pub fn read() -> Option<u8> {
    has_come().then(|| port::read(BASE))
}

/// Waits until everything written is out.
pub fn drain() {
    while port::read(STATUS) & EMPTY == 0 {}
}

fn put(byte: u8) {
    while port::read(STATUS) & ROOM == 0 {}
    port::write(BASE, byte);
}

/// The console, held until dropped. `poll` is called while another processor has it.
pub struct Console(());

impl Console {
    /// Waits for the console.
    pub fn hold(poll: impl Fn()) -> Console {
        while BUSY.swap(true, Ordering::Acquire) {
            poll();
            core::hint::spin_loop();
        }
        Console(())
    }

    /// The console, whoever has it: for last words.
    pub fn seize() -> Console {
        BUSY.store(true, Ordering::Relaxed);
        Console(())
    }

    /// Writes a byte.
    pub fn put(&mut self, byte: u8) {
        put(byte);
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(put);
        Ok(())
    }
}
