//! Gate slots: the code behind an image's imports, which nobody judges.

use super::bulk::Function;
use super::thread::SERVICE_GATE;
use alloc::vec::Vec;
use core::arch::asm;
use postern_verifier::window::{FILL, PAD, SLOT_SIZE};
use postern_x86::{Assembler, Gpr, Mem};

/// Distance from the thread pointer to the calling copy's `postern_thread`, as gate slots encode
/// it.
fn thread_offset() -> i32 {
    let offset: i64;
    // SAFETY: loads the linker's constant for the thread-local symbol.
    unsafe {
        asm!("mov {}, qword ptr [rip + postern_thread@GOTTPOFF]", out(reg) offset, options(nostack, readonly, preserves_flags));
    }
    i32::try_from(offset)
        .expect("static thread-local storage lies within 2 GiB of the thread pointer")
}

/// The gate slots: landing pad, number into r11d, jump through thread-local state. No address of
/// the host. Those of some names lead to the memory gate, all others to the service gate.
pub(super) fn slot_code(slots: &[&str]) -> Vec<u8> {
    let mut asm = Assembler::new();
    for (k, name) in (0..).zip(slots) {
        let word = Function::of(name).map_or(SERVICE_GATE, Function::word);
        asm.bytes(&PAD);
        asm.mov_imm32(Gpr::R11, k);
        asm.jmp_rm(Mem::absolute(thread_offset() + word as i32).fs());
        asm.align(SLOT_SIZE as usize, FILL);
    }
    asm.align(4096, FILL);
    asm.take_code()
}
