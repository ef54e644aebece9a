//! Instructions that Rust has no words for.

use core::arch::{asm, global_asm};
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::{Error, calls, context};

global_asm!(include_str!("player.s"), options(att_syntax));

unsafe extern "C" {
    /// Puts patterns into all registers, loops for some time, and compares: 1 if they are there.
    safe fn player_registers() -> u64;
    /// The same of vector registers, of patterns made from a number.
    safe fn player_vectors(seed: u64) -> u64;
    /// Puts patterns into registers and loads from an address where nothing is.
    fn player_fault(missing: u64) -> !;
    static player_spin: u8;
}

/// Whether patterns stay in all registers for some time.
pub fn registers_hold() -> bool {
    player_registers() == 1
}

/// Whether patterns stay in vector registers for some time. The coprocessor must be on.
pub fn vectors_hold(seed: u64) -> bool {
    player_vectors(seed) == 1
}

/// Faults at an address with patterns in all registers. Nobody goes on from there.
pub fn fault_with_patterns(missing: u64) -> ! {
    // SAFETY: the load faults, and nothing of this program's is looked at again: it ends, or
    // begins anew.
    unsafe { player_fault(missing) }
}

/// Divides by zero.
pub fn divide() {
    // SAFETY: the instruction raises an exception, and this program has no handler for it.
    unsafe { asm!("xor ecx, ecx", "div ecx", out("eax") _, out("ecx") _, inout("edx") 0 => _) }
}

/// An instruction that is none.
pub fn undefined() {
    // SAFETY: as above.
    unsafe { asm!("ud2") }
}

/// A breakpoint: an exception that goes on behind it.
pub fn breakpoint() {
    // SAFETY: a handler is there, which changes no register.
    unsafe { asm!("int3", options(nostack)) }
}

/// Has slices end in a loop that does not end.
pub fn never_stop() {
    // SAFETY: the loop touches nothing, and nothing comes after it.
    unsafe {
        let end = core::mem::offset_of!(postern_aegis::abi::Context, end) / 8;
        context::store_word(end, (&raw const player_spin) as u64);
    }
}

/// Any call with any arguments.
pub fn any_call(number: u64, arguments: [u64; 6]) -> Result<u64, Error> {
    // SAFETY: this is done for the maker, whose tests name no address of this program but to have
    // the call refused; should a page be changed after all, a test has failed already.
    unsafe { calls::raw(number, arguments) }
}

/// Has page faults come to an address where nothing is, and no handler for that.
pub fn lose_handlers(missing: u64) {
    let emergency = core::mem::offset_of!(postern_aegis::abi::Context, emergency) / 8;
    // SAFETY: nothing can be run there: the environment ends.
    unsafe {
        context::store_word(emergency, 0);
        context::store_word(14, missing);
    }
}

/// The events that wait.
pub fn events() -> u64 {
    context::context().events.swap(0, Relaxed)
}
