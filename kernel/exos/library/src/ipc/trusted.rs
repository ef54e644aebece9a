//! Bytes of rings, and of the program's own memory.

use core::arch::asm;

use postern_aegis::PAGE;

use crate::ipc::ring::{Ring, SIZE};
use crate::ipc::slots;

/// A pipe's ring.
pub fn ring(slot: usize) -> &'static Ring {
    // SAFETY: an end names a place where a pipe's pages are bound, to be read and written, until no
    // descriptor has it; all words that are accessed are atomics, since others store to them.
    unsafe { &*(slots::address(slot) as *const Ring) }
}

fn data(slot: usize, offset: usize) -> *mut u8 {
    (slots::address(slot) + (PAGE + offset % SIZE) as u64) as *mut u8
}

/// Bytes of the ring, which do not go over its end, to the caller's memory.
pub fn copy_out(slot: usize, offset: usize, to: *mut u8, bytes: usize) {
    copy(data(slot, offset), to, bytes.min(SIZE - offset % SIZE));
}

/// Bytes of the caller's memory to the ring.
pub fn copy_in(slot: usize, offset: usize, from: *const u8, bytes: usize) {
    copy(from, data(slot, offset), bytes.min(SIZE - offset % SIZE));
}

/// Words, then bytes: other processes may store to either side meanwhile.
fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: one side is a ring's bytes (above), which no reference of Rust covers; the other is
    // what C passed to read or write: its own memory, or the instruction faults as C's own would.
    unsafe {
        asm!(
            "rep movsq",
            "mov rcx, {rest}",
            "rep movsb",
            rest = in(reg) bytes % 8,
            inout("rcx") bytes / 8 => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}
