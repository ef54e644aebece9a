//! Why a signal came, as handlers are told it (`siginfo_t`).

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use postern_aegis::entry::Frame;
use postern_exos_abi::signal;
use postern_exos_abi::table::state;

use crate::memory::Reason;
use crate::process::{own, registry};

/// The last exception: where, its vector, and why it was not served, if it is a fault.
static AT: AtomicU64 = AtomicU64::new(0);
static VECTOR: AtomicU64 = AtomicU64::new(0);
static PROTECTED: AtomicU32 = AtomicU32::new(0);

/// Signals that came of an exception, of this process itself, of its clock.
static OF_EXCEPTION: AtomicU64 = AtomicU64::new(0);
static OF_ITSELF: AtomicU64 = AtomicU64::new(0);
static OF_CLOCK: AtomicU64 = AtomicU64::new(0);

/// Codes, as `<sys/signal.h>` has them.
pub mod code {
    #![allow(missing_docs, reason = "names as in C")]

    pub const USER: i32 = 1;
    pub const TIMER: i32 = 3;
    pub const SEGV_MAPERR: i32 = 11;
    pub const SEGV_ACCERR: i32 = 12;
    pub const CLD_EXITED: i32 = 21;
    pub const CLD_KILLED: i32 = 22;
    pub const CLD_STOPPED: i32 = 24;
    pub const CLD_CONTINUED: i32 = 25;
    pub const ILL_ILLOPC: i32 = 31;
    pub const FPE_INTDIV: i32 = 41;
    pub const FPE_FLTINV: i32 = 42;
    pub const BUS_ADRALN: i32 = 51;
    pub const TRAP_BRKPT: i32 = 61;
    pub const TRAP_TRACE: i32 = 62;
}

/// Why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// [`code`].
    pub code: i32,
    /// Where, of an exception.
    pub address: u64,
    /// Who: a process that sent it, or the child that it is about.
    pub pid: u32,
    /// Of a child that ended, its exit status or signal.
    pub status: u32,
}

/// Notes an exception that becomes a signal.
pub fn excepted(number: u32, frame: &Frame, reason: Option<Reason>) {
    let at = if reason.is_some() {
        frame.address
    } else {
        frame.rip
    };
    AT.store(at, Relaxed);
    VECTOR.store(frame.vector, Relaxed);
    PROTECTED.store(u32::from(reason == Some(Reason::Protected)), Relaxed);
    OF_EXCEPTION.fetch_or(1 << number, Relaxed);
}

/// Notes a signal of this process to itself.
pub fn raised(number: u32) {
    OF_ITSELF.fetch_or(1 << number, Relaxed);
}

/// Notes that an alarm was due.
pub fn rang() {
    OF_CLOCK.fetch_or(1 << signal::ALRM, Relaxed);
}

fn taken(from: &AtomicU64, number: u32) -> bool {
    from.fetch_and(!(1 << number), Relaxed) & 1 << number != 0
}

/// Why a signal came that is about to be acted on. Of signals of others only the last one's sender is
/// known.
pub fn take(number: u32) -> Cause {
    if taken(&OF_EXCEPTION, number) {
        let code = match VECTOR.load(Relaxed) {
            0 => code::FPE_INTDIV,
            1 => code::TRAP_TRACE,
            3 => code::TRAP_BRKPT,
            6 => code::ILL_ILLOPC,
            16 | 19 => code::FPE_FLTINV,
            17 => code::BUS_ADRALN,
            _ if PROTECTED.load(Relaxed) != 0 => code::SEGV_ACCERR,
            _ => code::SEGV_MAPERR,
        };
        let address = AT.load(Relaxed);
        return Cause {
            code,
            address,
            ..Cause::default()
        };
    }
    let (own, clock) = (taken(&OF_ITSELF, number), taken(&OF_CLOCK, number));
    let sender = registry::mailbox().sender.load(Relaxed) as u32;
    match number {
        _ if own => Cause {
            code: code::USER,
            pid: own::pid(),
            ..Cause::default()
        },
        _ if clock => Cause {
            code: code::TIMER,
            ..Cause::default()
        },
        signal::CHLD => of_child(sender),
        _ => Cause {
            code: code::USER,
            pid: sender,
            ..Cause::default()
        },
    }
}

fn of_child(pid: u32) -> Cause {
    let record = registry::find(pid);
    let word = |record: &postern_exos_abi::table::Process| {
        [record.state.load(Relaxed), record.status.load(Relaxed)]
    };
    let [now, how] = record.map_or([state::FREE, 0], word);
    let (code, status) = match (now, how & 0x7f) {
        (state::ENDED, 0) => (code::CLD_EXITED, how >> 8 & 0xff),
        (state::ENDED, signal) => (code::CLD_KILLED, signal),
        (state::STOPPED, _) => (code::CLD_STOPPED, how >> 8 & 0xff),
        (state::LIVES, _) if how == signal::CONTINUED => (code::CLD_CONTINUED, signal::CONT),
        _ => (code::USER, 0),
    };
    Cause {
        code,
        pid,
        status,
        address: 0,
    }
}
