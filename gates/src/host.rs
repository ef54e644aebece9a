//! What of the processor's state is the host's and not in registers that gates save: MXCSR, the x87
//! environment and, where the host asks for it, the gs base.
//!
//! Invariant, kept by the gates in assembly and by these functions for the slow path: while the
//! innermost call's domain has the fact bit of such a state and the call state says that the thread
//! is inside, the host's value is in the thread's state and the processor's own may be the
//! extension's. At any other time the processor has the host's. In a service that is so, too: what
//! a service sets there is the host's from then on.
//!
//! To code without the fact, MXCSR is nothing: no instruction of it is governed by it or raises
//! flags of it, so it runs with the host's. (Only that memory operands of such instructions may be
//! misaligned where a host of AMD's has set MXCSR.MM.)

use super::gate::{FACT_FLOAT, FACT_GS, FACT_X87};
use super::thread::Thread;
use core::arch::asm;
use core::sync::atomic::Ordering;

/// Rounding to nearest, denormal numbers as they are, all exceptions masked, no flag raised.
pub(crate) const MXCSR_DEFAULT: u32 = 0x1f80;

/// Extended precision, rounding to nearest, all exceptions masked: what `fninit` sets. The service
/// gate restores no environment that has this and no flag of the status word: all that is different
/// after `fninit` then is where the host's last x87 instruction was, which nothing asks for.
pub(crate) const X87_CONTROL: u32 = 0x37f;

/// Keeps the host's state that a domain with these facts may change. The gate that goes in loads
/// the extension's.
pub(crate) fn keep(thread: &Thread, facts: u32) {
    if facts & FACT_FLOAT != 0 {
        let word = thread.mxcsr.as_ptr();
        // SAFETY: stores four bytes into a field of the thread's own state.
        unsafe { asm!("stmxcsr dword ptr [{}]", in(reg) word, options(nostack, preserves_flags)) };
    }
    if facts & FACT_X87 != 0 {
        let environment = &raw mut thread.extra().x87;
        // SAFETY: stores 28 bytes into an array of that size. It masks x87 exceptions, which
        // `bring_back` or the gate undoes.
        unsafe {
            asm!("fnstenv [{}]", in(reg) environment, options(nostack, preserves_flags));
        }
    }
    if facts & FACT_GS != 0 {
        let base: u64;
        // SAFETY: reads the gs base; the processor has the instruction (`machine::unsupported`).
        unsafe { asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
        thread.host_gs.store(base, Ordering::Relaxed);
    }
}

/// Gives the processor the host's state again, after a call of a domain with these facts.
pub(crate) fn bring_back(thread: &Thread, facts: u32) {
    if facts & FACT_FLOAT != 0 {
        let word = thread.mxcsr.as_ptr();
        // SAFETY: loads what `stmxcsr` stored, so no reserved bit is set.
        unsafe { asm!("ldmxcsr dword ptr [{}]", in(reg) word, options(nostack, preserves_flags)) };
    }
    if facts & FACT_X87 != 0 {
        let environment = &raw const thread.extra().x87;
        // SAFETY: empties the x87 stack without waiting (a pending exception of the extension must
        // not fire here), then loads what `fnstenv` stored: at a call, the host's stack was empty
        // by its calling convention.
        unsafe { asm!("fninit", "fldenv [{}]", in(reg) environment, options(nostack)) };
    }
    if facts & FACT_GS != 0 {
        let base = thread.host_gs.load(Ordering::Relaxed);
        // SAFETY: an address that the gs base had, in the same thread; nothing of the runtime uses
        // gs outside of gates.
        unsafe { asm!("wrgsbase {}", in(reg) base, options(nomem, nostack, preserves_flags)) };
    }
}
