//! Exceptions and ends of slices: faults of extensions become values, calls that take too long end,
//! everything else is whoever's it was.
//!
//! Both come while the process stands between two instructions, on a stack of the library's, with
//! the registers in memory: a call is ended by editing these. They allocate nothing and lock
//! nothing.

use super::below::below;
use super::bulk;
use super::call_state::{CallPhase, Interrupted, OnAbort};
use super::control::Control;
use super::gate::{self, Label, PcRegion};
use super::memory;
use super::outcome::{self, BACKTRACE, RawFault};
use super::record::MAX_NESTING;
use super::register;
use super::thread::{self, Thread};
use core::sync::atomic::{AtomicU64, Ordering};

/// Where rip and rsp stand in [`Registers::words`].
const RIP: usize = 15;
const RSP: usize = 16;

/// What was interrupted.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// rax rbx rcx rdx rsi rdi rbp r8…r15, in this order, then rip and rsp.
    pub words: [u64; 17],
    /// The flags.
    pub flags: u64,
}

/// An exception of the processor's.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Which one.
    pub vector: u64,
    /// Its error code.
    pub code: u64,
    /// The address of a page fault.
    pub address: u64,
}

const PAGE_FAULT: u64 = 14;
/// Most bytes of the process's stack that pages come for while an extension runs: what it takes by
/// calls without end is the process's own.
const CONTROL_STACK: u64 = 1 << 20;

/// An exception. True if it was an extension's fault: its call goes on at the gates' way out then,
/// with the registers as they are now. `mapped` says of an address in the domain's window, the
/// error code beside it, whether the domain may do what it did there: then the fault is that of
/// whoever maps pages when they are touched, as faults on the process's own stack are, so far down.
pub fn excepted(
    exception: Exception,
    registers: &mut Registers,
    mapped: impl Fn(&Control, u32, u64) -> bool,
) -> bool {
    if !register::known() {
        return false;
    }
    let thread = thread::current();
    if thread.call_state.own() != CallPhase::Inside {
        return false;
    }
    // SAFETY: control blocks are never unmapped; the pointer of a thread in a call is set.
    let control = unsafe { &*thread.control.load(Ordering::Relaxed) };
    let pc = registers.words[RIP] as usize;
    if !in_window(control, pc) && !abortable(pc) {
        return false;
    }
    if exception.vector == PAGE_FAULT {
        let at = exception.address;
        let offset = at.wrapping_sub(control.address(0) as u64);
        if u32::try_from(offset).is_ok_and(|offset| mapped(control, offset, exception.code)) {
            return false;
        }
        let (low, top) = thread.extra().stack;
        let low = low.max(thread.call_base().saturating_sub(CONTROL_STACK));
        if (low..top).contains(&at) {
            return false;
        }
    }
    record(thread, control, registers, outcome::SIGNAL);
    let fault = &mut thread.extra().fault;
    fault.trap = exception.vector;
    fault.error = exception.code;
    fault.address = exception.address;
    end(thread, registers, outcome::SIGNAL);
    true
}

/// A copy between host and window met a page that did not come: it ends there, and says so. False
/// if it was no copy.
pub fn ends_copy(registers: &mut Registers) -> bool {
    match memory::after_fault(registers.words[RIP] as usize) {
        Some(over) => {
            registers.words[RIP] = over as u64;
            true
        }
        None => false,
    }
}

/// Calls that were seen at ends of slices, by depth: number, and when it was seen first.
static SEEN: [[AtomicU64; 2]; MAX_NESTING + 1] =
    [const { [const { AtomicU64::new(0) }; 2] }; MAX_NESTING + 1];

/// A slice ends. True if a call took too long and was ended here: it goes on at the gates' way out
/// then, with the registers as they are now.
///
/// Every call counts from the first end of a slice that finds it begun, whether it is the innermost
/// or waits for another one; one that waits ends when it is the innermost again.
pub fn slice_ends(registers: &mut Registers) -> bool {
    if !register::known() {
        return false;
    }
    let thread = thread::current();
    let phase = thread.call_state.own();
    if !matches!(phase, CallPhase::Inside | CallPhase::InService) {
        return false;
    }
    let now = (below().now)();
    let depth = thread.depth();
    for (level, waiting) in thread.records()[..depth].iter().enumerate() {
        let number = waiting.sequence.load(Ordering::Relaxed);
        let limit = shortest(waiting.domain(), waiting.limit.load(Ordering::Relaxed));
        if number != 0 && late(level, number, limit, now) {
            waiting.end(number, outcome::DEADLINE);
        }
    }
    let number = thread.sequence.load(Ordering::Relaxed);
    let own = thread.records()[depth].limit.load(Ordering::Relaxed);
    let own = match thread.limit_of(number) {
        0 => own,
        limit if own == 0 => limit,
        limit => own.min(limit),
    };
    if late(depth, number, shortest(thread.innermost(), own), now) {
        thread.end_request().ask(number, outcome::DEADLINE);
    }
    on_wish(thread, phase, registers)
}

/// A wish that the innermost call end is looked at, with what was interrupted.
fn on_wish(thread: &Thread, phase: CallPhase, registers: &mut Registers) -> bool {
    let sequence = thread.sequence.load(Ordering::Relaxed);
    let wish = thread.end_request();
    let (wanted, kind) = (wish.wanted(), wish.kind());
    let Some(control) = thread.innermost() else {
        return false;
    };
    let pc = registers.words[RIP] as usize;
    let found = Interrupted {
        phase,
        sequence,
        wanted,
        waits: false,
        abortable: phase == CallPhase::Inside && (in_window(control, pc) || abortable(pc)),
    };
    match found.decide() {
        OnAbort::WhenServiceReturns => {
            // Unless the service has asked for an end itself.
            if thread.pending.load(Ordering::SeqCst) != sequence {
                thread.pending.store(sequence, Ordering::SeqCst);
                thread.abort_kind.store(kind, Ordering::SeqCst);
            }
            wish.done(wanted);
            false
        }
        OnAbort::Now => {
            record(thread, control, registers, kind);
            end(thread, registers, kind);
            true
        }
        OnAbort::ToRecord | OnAbort::Nothing => false,
    }
}

/// The shorter of a domain's deadline and a call's own limit; 0 is none.
fn shortest(control: Option<&Control>, limit: u64) -> u64 {
    match (control.map_or(0, Control::deadline), limit) {
        (0, limit) => limit,
        (deadline, 0) => deadline,
        (deadline, limit) => deadline.min(limit),
    }
}

/// Whether the call with this number has lasted as long as it may.
fn late(level: usize, number: u64, limit: u64, now: u64) -> bool {
    let [call, since] = &SEEN[level];
    if call.swap(number, Ordering::Relaxed) != number {
        since.store(now, Ordering::Relaxed);
        return false;
    }
    limit != 0 && now.saturating_sub(since.load(Ordering::Relaxed)) >= limit
}

/// Whether `pc` is in the domain's window: in its text or slots, or where a jump to a forged
/// landing pad in data led.
fn in_window(control: &Control, pc: usize) -> bool {
    (control.address(0)..control.address(u32::MAX)).contains(&pc)
}

/// Whether a call that is *Inside* can be ended at this instruction of ours: a part of the gates,
/// or all of the memory gate.
fn abortable(pc: usize) -> bool {
    bulk::contains(pc) || gate::region_of(pc) == PcRegion::Abortable
}

/// Makes the interrupted thread continue at the gates' way out.
fn end(thread: &Thread, registers: &mut Registers, kind: u32) {
    thread.abort_kind.store(kind, Ordering::Relaxed);
    // Whatever the reason, nobody need ask for this call any more.
    let sequence = thread.sequence.load(Ordering::Relaxed);
    thread.end_request().done(sequence);
    registers.words[RIP] = Label::postern_aborted.address() as u64;
    registers.words[RSP] = thread.frame.load(Ordering::Relaxed);
    const TRAP_DIRECTION_ALIGNMENT_NESTED: u64 = 1 << 8 | 1 << 10 | 1 << 18 | 1 << 14;
    registers.flags &= !TRAP_DIRECTION_ALIGNMENT_NESTED;
}

/// Notes what can be known of the interrupted extension.
fn record(thread: &Thread, control: &Control, registers: &Registers, kind: u32) {
    let base = control.address(0) as u64;
    let end = thread.call_base();
    let mut rsp = registers.words[RSP];
    let pc = registers.words[RIP] as usize;
    let fault = &mut thread.extra().fault;
    *fault = RawFault {
        kind,
        base,
        registers: registers.words,
        located: true,
        ..Default::default()
    };
    let called = bulk::contains(pc) && rsp < end;
    // Pages of the stack that are mapped when they are touched were, above the stack pointer.
    if called {
        // SAFETY: below the base of the innermost call there is a return address, for the memory
        // gate pushes nothing.
        fault.registers[RIP] = unsafe { bulk::caller(control, rsp) };
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
