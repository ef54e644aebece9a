//! Ends a call at the instruction that a signal has interrupted: what can be known of the
//! extension there, and where the thread goes on.

use crate::bulk;
use crate::control::Control;
use crate::gate::Label;
use crate::memory;
use crate::outcome::{BACKTRACE, RawFault};
use crate::thread::Thread;
use libc::ucontext_t;
use std::sync::atomic::Ordering;

/// Whether `pc` is in the domain's window: in its text or slots, or where a jump to a forged
/// landing pad in data led.
pub(super) fn in_window(control: &Control, pc: usize) -> bool {
    (control.address(0)..control.address(u32::MAX)).contains(&pc)
}

/// Has the interrupted call end where it was interrupted.
pub(crate) fn at(thread: &Thread, control: &Control, context: &mut ucontext_t, kind: u32) {
    record(thread, control, context, kind);
    end(thread, context, kind);
}

/// Makes the interrupted thread continue at the gates' way out.
pub(super) fn end(thread: &Thread, context: &mut ucontext_t, kind: u32) {
    thread.abort_kind.store(kind, Ordering::Relaxed);
    // Whatever the reason, nobody need ask for this call any more.
    let sequence = thread.sequence.load(Ordering::Relaxed);
    thread.end_request().done(sequence);
    let registers = &mut context.uc_mcontext.gregs;
    registers[libc::REG_RIP as usize] = Label::postern_aborted.address() as i64;
    registers[libc::REG_RSP as usize] = thread.frame.load(Ordering::Relaxed) as i64;
    clear_flags(context);
}

/// What host code does not expect to find set.
pub(crate) fn clear_flags(context: &mut ucontext_t) {
    const DIRECTION_ALIGNMENT_NESTED: i64 = 1 << 10 | 1 << 18 | 1 << 14;
    context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !DIRECTION_ALIGNMENT_NESTED;
}

/// Notes what can be known of the interrupted extension.
pub(super) fn record(thread: &Thread, control: &Control, context: &ucontext_t, kind: u32) {
    use libc::*;
    const ORDER: [c_int; 17] = [
        REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8, REG_R9, REG_R10,
        REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP, REG_RSP,
    ];
    let registers = &context.uc_mcontext.gregs;
    let base = control.address(0) as u64;
    let rsp = registers[REG_RSP as usize] as u64;
    let end = thread.call_base();
    let fault = &mut thread.extra().fault;
    *fault = RawFault {
        kind,
        trap: registers[REG_TRAPNO as usize] as u64,
        error: registers[REG_ERR as usize] as u64,
        address: registers[REG_CR2 as usize] as u64,
        base,
        located: true,
        ..Default::default()
    };
    for (place, register) in fault.registers.iter_mut().zip(ORDER) {
        *place = registers[register as usize] as u64;
    }
    let mut rsp = rsp;
    let pc = registers[REG_RIP as usize] as usize;
    let called = bulk::contains(pc) && rsp < end;
    if called {
        // SAFETY: below the base of the innermost call there is a return address, for the memory
        // gate pushes nothing.
        fault.registers[15] = unsafe { bulk::caller(control, rsp) };
        rsp += 8;
    }
    // While text runs, the control stack holds return addresses and nothing else.
    if (called || in_window(control, pc)) && rsp <= end && rsp.is_multiple_of(8) {
        // The last word is the gate's own return address.
        fault.depth = ((end - rsp) / 8).saturating_sub(1);
        for i in 0..fault.depth.min(BACKTRACE as u64) {
            // SAFETY: below the base of the innermost call, and not below the interrupted stack
            // pointer.
            let word = unsafe { memory::host_word(rsp + i * 8) };
            fault.backtrace[i as usize] = word.wrapping_sub(base) as u32;
        }
    }
}
