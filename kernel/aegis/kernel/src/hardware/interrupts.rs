//! The local interrupt controller of each processor: its clock, and requests between processors.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_books::Clock;

use super::{memory, port};

/// Vectors.
pub const CLOCK: u8 = 32;
/// Another processor asks for something.
pub const REQUEST: u8 = 33;
/// The controller took an interrupt back.
pub const SPURIOUS: u8 = 34;
/// The network has something.
pub const NETWORK: u8 = 35;
/// The disk is done with something.
pub const DISK: u8 = 36;
/// The last vector that has an entry.
pub const LAST: u8 = DISK;

const IDENTITY: u64 = 0x20;
const END: u64 = 0xb0;
const SPURIOUS_VECTOR: u64 = 0xf0;
const COMMAND: u64 = 0x300;
const COMMAND_TO: u64 = 0x310;
const CLOCK_VECTOR: u64 = 0x320;
const CLOCK_START: u64 = 0x380;
const CLOCK_NOW: u64 = 0x390;
const CLOCK_DIVIDER: u64 = 0x3e0;
/// Vectors that wait, a bit for each, from the clock's on.
const WAITING: u64 = 0x210;

/// Sent and not yet taken.
const PENDING: u32 = 1 << 12;
const MASKED: u32 = 1 << 16;
const PERIODIC: u32 = 1 << 17;

/// Silences the old controllers: nothing of them is used.
pub fn start_machine() {
    for (register, value) in [
        (0x20, 0x11),
        (0xa0, 0x11),
        (0x21, 0xf0),
        (0xa1, 0xf8),
        (0x21, 4),
    ] {
        port::write(register, value);
    }
    for (register, value) in [(0xa1, 2), (0x21, 1), (0xa1, 1), (0x21, 0xff), (0xa1, 0xff)] {
        port::write(register, value);
    }
}

/// Switches this processor's controller on.
pub fn start() {
    memory::controller(SPURIOUS_VECTOR).store(0x100 | u32::from(SPURIOUS), Relaxed);
    memory::controller(CLOCK_DIVIDER).store(0b1011, Relaxed); // by 1
    memory::controller(CLOCK_VECTOR).store(PERIODIC | u32::from(CLOCK), Relaxed);
}

/// The number of this processor's controller.
pub fn identity() -> u32 {
    memory::controller(IDENTITY).load(Relaxed) >> 24
}

/// Starts the clock anew: it ticks after each `period` of the bus's cycles.
pub fn start_clock(period: u32) {
    memory::controller(CLOCK_START).store(period, Relaxed);
}

/// The bus's cycles until the clock ticks.
pub fn clock() -> u32 {
    memory::controller(CLOCK_NOW).load(Relaxed)
}

/// The bus's cycles from each tick to the next.
pub fn period() -> u32 {
    memory::controller(CLOCK_START).load(Relaxed)
}

/// This processor's clock.
pub struct Ticks;

impl Clock for Ticks {
    fn start(&self, period: u32) {
        start_clock(period);
    }

    fn left(&self) -> u32 {
        clock()
    }

    fn waits(&self) -> bool {
        const { assert!(CLOCK == 32) };
        memory::controller(WAITING).load(Relaxed) & 1 != 0
    }
}

/// Runs the clock without its interrupt, for as long as something takes: by how many of the bus's
/// cycles it was lowered. [`start_clock`] comes later.
pub fn measure(what: impl Fn()) -> u32 {
    let vector = memory::controller(CLOCK_VECTOR);
    let before = vector.load(Relaxed);
    vector.store(MASKED | before, Relaxed);
    start_clock(u32::MAX);
    let first = memory::controller(CLOCK_NOW).load(Relaxed);
    what();
    let passed = first.wrapping_sub(memory::controller(CLOCK_NOW).load(Relaxed));
    start_clock(0);
    vector.store(before, Relaxed);
    passed
}

/// Says that an interrupt was served.
pub fn end() {
    memory::controller(END).store(0, Relaxed);
}

fn send(controller: u32, command: u32) {
    memory::controller(COMMAND_TO).store(controller << 24, Relaxed);
    memory::controller(COMMAND).store(command, Relaxed);
    while memory::controller(COMMAND).load(Relaxed) & PENDING != 0 {}
}

/// Interrupts another processor by [`REQUEST`].
pub fn request(controller: u32) {
    send(controller, 0x4000 | u32::from(REQUEST));
}

/// Resets a processor and starts it in real mode at a page below 1 MiB.
pub fn start_processor(controller: u32, page: u8) {
    send(controller, 0xc500);
    send(controller, 0x8500);
    for _ in 0..2 {
        pause();
        send(controller, 0x4600 | u32::from(page));
    }
}

/// Some ten microseconds, by the old clock's port, which takes one each.
fn pause() {
    for _ in 0..200 {
        port::read(0x80);
    }
}
