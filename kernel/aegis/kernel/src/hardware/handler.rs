//! Entering handlers, and all ways out of them.
//!
//! Invariant: one handler runs at a time, on processor 0, and what is said of it in the processor's
//! area is of the one that runs.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::address::MESSAGE;
use postern_aegis_abi::records::run;

use crate::boot::SLICE;

use super::interrupts::Ticks;
use super::local::{self, Local};
use super::memory::{self, NO_EXECUTE, PRESENT};
use super::switch::Frame;
use super::{interrupts, window};

/// Bytes of a slot, as the verifier knows them.
const SLOT: usize = 32;
/// What fills pages of text: `int3`.
const FILL: u8 = 0xcc;

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
    if local::this().interval.ends_handler(&Ticks, SLICE) {
        let at = window::place(frame.rip).map_or(0, |(_, at)| at);
        leave(frame, run::LONG, at);
    }
    true
}

/// A slice begins.
pub fn slice_begins() {
    local::this().interval.begin(&Ticks, SLICE);
}

/// The clock ticked, and no handler runs: whether the tick is a slice's.
pub fn slice_is_over() -> bool {
    local::this().interval.is_over(&Ticks, SLICE)
}

/// Does what runs a handler with interrupts on: how many cycles it took.
pub fn stopped<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let interval = &local::this().interval;
    let stopped = interval.stop(&Ticks, SLICE);
    let result = work();
    (interval.resume(&Ticks, SLICE, stopped), result)
}

/// Does what runs a handler with interrupts off: how many cycles it took.
pub fn short<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let before = interrupts::clock();
    let result = work();
    // The clock goes down, and begins anew at the end of its period.
    let after = interrupts::clock();
    let time = match before.checked_sub(after) {
        Some(time) => time,
        None => before + interrupts::period().saturating_sub(after),
    };
    (time.into(), result)
}
