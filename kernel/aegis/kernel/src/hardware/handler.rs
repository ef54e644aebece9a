//! Entering handlers, and all ways out of them.
//!
//! Invariant: one handler runs at a time, on processor 0, and what is said of it in the processor's
//! area is of the one that runs.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::address::MESSAGE;
use postern_aegis_abi::records::run;

use crate::boot::SLICE;

use super::local::{self, Local};
use super::memory::{self, NO_EXECUTE, PRESENT};
use super::switch::Frame;
use super::{interrupts, window};

/// Bytes of a slot, as the verifier knows them.
const SLOT: usize = 32;
/// What fills pages of text: `int3`.
const FILL: u8 = 0xcc;

/// Ticks of the clock that a handler with loops may see; the fourth ends it. Each is set when the one
/// before has come: an emulator that was kept from running makes up for none.
const TICKS: u32 = 4;
/// Cycles to the next of them: together they are a slice.
const TICK: u32 = SLICE / TICKS;

unsafe extern "C" {
    fn run_handler(
        entry: u64,
        window: u64,
        stack: u32,
        message: u32,
        length: u32,
        endpoint: u32,
    ) -> u64;
    fn leave_handler();
    fn serve_handler();
}

/// Says where slots lead, at the start.
pub fn start(local: &Local) {
    local.gate.store(serve_handler as *const () as u64, Relaxed);
}

/// A slot for a service of a number: `mov $number, %eax; jmp *%gs:gate`.
pub fn slot(service: u32) -> [u8; SLOT] {
    let mut slot = [FILL; SLOT];
    slot[0] = 0xb8;
    slot[1..5].copy_from_slice(&service.to_le_bytes());
    slot[5..9].copy_from_slice(&[0x65, 0xff, 0x24, 0x25]);
    let gate = core::mem::offset_of!(Local, gate) as u32;
    slot[9..13].copy_from_slice(&gate.to_le_bytes());
    slot
}

/// What a handler is entered with.
pub struct Entrance {
    /// The number of its window.
    pub window: usize,
    /// The page of its window's table.
    pub table: u32,
    /// Where it is entered, an offset.
    pub entry: u32,
    /// The end of its data stack.
    pub stack: u32,
    /// Whether it may run long: interrupts are on then.
    pub loops: bool,
}

/// Runs a handler on a message, which lies in a page of the kernel's: what it returns, or how it
/// ended otherwise, and where. Interrupts are off before and after.
pub fn enter(
    entrance: &Entrance,
    (page, offset, length): (u32, usize, usize),
    endpoint: usize,
) -> Result<u64, (u32, u64)> {
    let local = local::this();
    let base = window::base(entrance.window);
    local.ended.store(0, Relaxed);
    local.ticks.store(0, Relaxed);
    local.loops.store(u32::from(entrance.loops), Relaxed);
    let message = &memory::words(entrance.table)[(MESSAGE >> 12) as usize & 511];
    message.store(u64::from(page) << 12 | PRESENT | NO_EXECUTE, Relaxed);
    // SAFETY: the books open a window for code that the judge has accepted for it, keep it as long as
    // this runs, and know the entry to be one of its instructions. Such code touches what is bound
    // in its window, calls the gate, and returns, or is ended by `end`.
    let result = unsafe {
        run_handler(
            base + u64::from(entrance.entry),
            base,
            entrance.stack,
            (MESSAGE as usize + offset) as u32,
            length as u32,
            endpoint as u32,
        )
    };
    message.store(0, Relaxed);
    memory::forget(base + MESSAGE);
    match local.ended.load(Relaxed) {
        0 => Ok(result),
        how => Err((how, local.ended_at.load(Relaxed))),
    }
}

/// Whether a handler runs here.
pub fn runs() -> bool {
    local::this().handler.load(Relaxed) != 0
}

/// Has the handler that runs here end when the service returns.
pub fn end(how: u32) {
    let local = local::this();
    local.ended_at.store(0, Relaxed);
    local.ended.store(how, Relaxed);
}

/// Ends the handler that was interrupted.
fn leave(frame: &mut Frame, how: u32, at: u64) {
    let local = local::this();
    local.ended_at.store(at, Relaxed);
    local.ended.store(how, Relaxed);
    frame.rip = leave_handler as *const () as u64;
    frame.rflags = 2;
}

/// An exception: if a handler has raised it, it ends.
pub fn has_faulted(frame: &mut Frame) -> bool {
    let inside = !frame.is_users() && runs();
    let place = inside.then(|| window::place(frame.rip)).flatten();
    if let Some((_, at)) = place {
        leave(frame, run::EXCEPTION + frame.vector as u32, at);
    }
    place.is_some()
}

/// The clock ticked: if a handler runs, it is its tick, and the last one ends it. Interrupts are on in
/// it alone, and at the gates.
pub fn has_ticked(frame: &mut Frame) -> bool {
    if frame.is_users() || !runs() {
        return false;
    }
    if local::this().ticks.fetch_add(1, Relaxed) + 1 >= TICKS {
        let at = window::place(frame.rip).map_or(0, |(_, at)| at);
        leave(frame, run::LONG, at);
    }
    interrupts::start_clock(TICK);
    true
}

/// Cycles until the clock ticks, at least: it ticks again and again until it is set, and a processor
/// with a tick at each instruction comes to none.
const LEAST: u32 = SLICE / 100;

/// The clock goes to the end of a slice that a handler has interrupted: it is to be set then.
const REST: u32 = 1;
/// The same, behind a tick that was the handler's.
const REST_AND_ONE: u32 = 2;

/// The clock ticked, and no handler runs: whether the tick is a slice's. Whether the clock must be set
/// for the next one.
pub fn slice_is_over() -> (bool, bool) {
    let rest = &local::this().rest;
    match rest.load(Relaxed) {
        0 => (true, false),
        REST_AND_ONE => {
            rest.store(REST, Relaxed);
            (false, false)
        }
        _ => {
            rest.store(0, Relaxed);
            (true, true)
        }
    }
}

/// The slices' clock, stopped for a handler that may run long.
pub struct Stopped {
    /// Cycles of the slice that were left.
    left: u32,
}

impl Stopped {
    /// Sets the clock to a handler's ticks.
    pub fn new() -> Stopped {
        let left = match interrupts::clock_waits() {
            // The slice is over already, and is told so soon afterwards.
            true => LEAST,
            false => interrupts::clock().max(LEAST),
        };
        interrupts::start_clock(TICK);
        Stopped { left }
    }

    /// The slice goes on. How many cycles the handler took.
    pub fn resume(self) -> u64 {
        let ticks = u64::from(local::this().ticks.load(Relaxed));
        let now = u64::from(TICK.saturating_sub(interrupts::clock()));
        let late = interrupts::clock_waits();
        interrupts::start_clock(self.left);
        let rest = if late { REST_AND_ONE } else { REST };
        local::this().rest.store(rest, Relaxed);
        ticks * u64::from(TICK) + now
    }
}
