//! The upcall gate's assembly, with what it reads, and where an upcall can be ended.

use crate::call_state::CallPhase;
use crate::control::Control;
use crate::entry::Entry;
use crate::gate::{FACT_COMMON, FACT_X87, FACT_XMM, FACT_YMM};
use crate::outcome;
use crate::thread::Thread;
use crate::upcall::clock::Clock;
use crate::upcall::suspended::{DEEPEST, PROMOTION, Promotion, Registers};
use core::arch::global_asm;
use core::mem::offset_of;

global_asm!(
    include_str!("../upcall.s"),
    E_CONTROL = const offset_of!(Entry, control),
    E_OFFSET = const offset_of!(Entry, offset),
    C_LIFECYCLE = const offset_of!(Control, lifecycle),
    C_BASE = const offset_of!(Control, base),
    C_FACTS = const offset_of!(Control, facts),
    C_INSIDE = const offset_of!(Control, inside),
    T_FRAME = const offset_of!(Thread, frame),
    T_CALL_STATE = const offset_of!(Thread, call_state),
    T_MXCSR = const offset_of!(Thread, mxcsr),
    T_ABORT_KIND = const offset_of!(Thread, abort_kind),
    T_INSIDE_AT = const offset_of!(Thread, inside_at),
    T_UPCALL = const offset_of!(Thread, upcall),
    U_ALLOWED = const offset_of!(Clock, allowed),
    U_SUSPEND = const PROMOTION + offset_of!(Promotion, suspend),
    U_RSP = const PROMOTION + offset_of!(Promotion, rsp),
    U_SERVICE = const PROMOTION + offset_of!(Promotion, registers) + offset_of!(Registers, service),
    U_INTEGERS = const PROMOTION + offset_of!(Promotion, registers) + offset_of!(Registers, integers),
    U_FLOATS = const PROMOTION + offset_of!(Promotion, registers) + offset_of!(Registers, floats),
    DEEPEST = const DEEPEST,
    FACT_COMMON = const FACT_COMMON,
    FACT_X87 = const FACT_X87,
    FACT_XMM = const FACT_XMM,
    FACT_YMM = const FACT_YMM,
    KIND_NOT_ALLOWED = const outcome::NOT_IN_UPCALLS,
    KIND_TOO_DEEP = const outcome::TOO_DEEP_TO_WAIT,
    INSIDE = const CallPhase::Inside as u32,
    LEAVING = const CallPhase::Leaving as u32,
);

unsafe extern "C" {
    static postern_upcall_marked: u8;
    static postern_upcall_returned: u8;
    static postern_upcall_service: u8;
    static postern_upcall_service_end: u8;
    static postern_resume_in: u8;
    static postern_resume_refused: u8;

    /// `upcall.s` says what each register is.
    pub(super) fn postern_upcall_enter(
        entry: *const core::ffi::c_void,
        stack: u32,
        event: u32,
        data: u64,
        expected: u64,
    ) -> u32;
    /// Goes on with `then(argument)` on the stack with this top.
    pub(super) fn postern_upcall_switch(
        argument: *mut core::ffi::c_void,
        top: u64,
        then: unsafe extern "C" fn(*mut core::ffi::c_void) -> !,
    ) -> !;
}

/// Where gate slots lead while an upcall runs.
pub(super) fn service() -> u64 {
    &raw const postern_upcall_service as u64
}

/// Whether an upcall that is *Inside*, or the call of a handler that goes on, can be ended at this
/// instruction of their gates.
pub(crate) fn contains(pc: usize) -> bool {
    let enters =
        (&raw const postern_upcall_marked as usize)..(&raw const postern_upcall_returned as usize);
    let serves = (&raw const postern_upcall_service as usize)
        ..(&raw const postern_upcall_service_end as usize);
    let resumes =
        (&raw const postern_resume_in as usize)..(&raw const postern_resume_refused as usize);
    enters.contains(&pc) || serves.contains(&pc) || resumes.contains(&pc)
}

/// The gate from its first instruction to its last, for tests.
#[cfg(feature = "testing")]
pub fn bounds() -> (usize, usize) {
    (
        postern_upcall_enter as *const () as usize,
        &raw const postern_upcall_service_end as usize,
    )
}
