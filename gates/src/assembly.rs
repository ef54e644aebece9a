//! The gates' assembly and the structures that it reads, bound together field by field.
//!
//! `gate.s` and `peer.s` say what each instruction is for; this file gives them the offsets, the
//! classes that exist, and the functions that decide for them.

use super::call_state::CallPhase;
use super::control::{Control, PEER, SLOTS, ServiceEntry, ThreadSlot};
use super::entry::Entry;
use super::gate::{
    FACT_FLOAT, FACT_GS, FACT_X87, FACT_XMM, FACT_YMM, FLAG_FLOATS, PEER_FROM_FLOAT, PEER_TO_FLOAT,
    SAVED, STATUS_ENDED, STATUS_PEER,
};
use super::host::{MXCSR_DEFAULT, X87_CONTROL};
use super::lifecycle::Phase;
use super::outcome;
use super::peer::{Peer, SLOW};
use super::record::Record;
use super::thread::{Extra, Thread};
use super::{slow, stray};
use core::arch::global_asm;
use core::mem::{offset_of, size_of};

// The slot's stride and the service entry's size are shifts and address arithmetic in gate.s.
const _: () = assert!(size_of::<ServiceEntry>() == 64 && size_of::<ThreadSlot>() == 16);
// The peer gate takes a Peer for its Entry, and reads a slot's first two fields in one go.
const _: () = assert!(
    offset_of!(Peer, entry) == 0
        && offset_of!(ThreadSlot, stack) == 0
        && offset_of!(ThreadSlot, waiting) == 4
);

global_asm!(
    include_str!("gate.s"),
    include_str!("peer.s"),
    SAVED = const SAVED,
    FRAME_RETURN = const 6 * 8,
    THREAD_SIZE = const size_of::<Thread>(),
    E_CONTROL = const offset_of!(Entry, control),
    E_OFFSET = const offset_of!(Entry, offset),
    E_FLAGS = const offset_of!(Entry, flags),
    E_EXPECTED = const offset_of!(Entry, expected),
    E_INNER = const offset_of!(Entry, inner),
    E_BODY = const offset_of!(Entry, body),
    E_INT_MASKS = const offset_of!(Entry, int_masks),
    E_FLOAT_MASKS = const offset_of!(Entry, float_masks),
    F_FLOATS = const FLAG_FLOATS,
    T_STACK_LOW = const offset_of!(Thread, stack_low),
    T_STACK_SPAN = const offset_of!(Thread, stack_span),
    T_CALL_STATE = const offset_of!(Thread, call_state),
    T_SLOT = const offset_of!(Thread, slot),
    T_INSIDE_AT = const offset_of!(Thread, inside_at),
    T_ENTRY_SLOT = const offset_of!(Thread, entry_slot),
    T_SEQUENCE = const offset_of!(Thread, sequence),
    T_FRAME = const offset_of!(Thread, frame),
    T_CONTROL = const offset_of!(Thread, control),
    T_PENDING = const offset_of!(Thread, pending),
    T_ABORT_KIND = const offset_of!(Thread, abort_kind),
    T_SERVICE_RSP = const offset_of!(Thread, service_rsp),
    T_HOST_RSP = const offset_of!(Thread, host_rsp),
    T_SERVICE_R15 = const offset_of!(Thread, service_r15),
    T_SERVICE = const offset_of!(Thread, service),
    T_CONTEXT = const offset_of!(Thread, context),
    T_FOREIGN = const offset_of!(Thread, foreign),
    T_STACK_SIZE = const offset_of!(Thread, stack_size),
    T_MXCSR = const offset_of!(Thread, mxcsr),
    T_MXCSR_NOW = const offset_of!(Thread, mxcsr_now),
    T_HOST_GS = const offset_of!(Thread, host_gs),
    T_EXTRA = const offset_of!(Thread, extra),
    X_X87 = const offset_of!(Extra, x87),
    X87_CONTROL = const X87_CONTROL,
    MXCSR_DEFAULT = const MXCSR_DEFAULT,
    T_REQUEST = const offset_of!(Thread, request),
    T_RECORD = const offset_of!(Thread, record),
    T_LAST_RECORD = const offset_of!(Thread, last_record),
    T_NESTED = const offset_of!(Thread, nested),
    T_PEER_FAILED = const offset_of!(Thread, peer_failed),
    R_SEQUENCE = const offset_of!(Record, sequence),
    R_CONTROL = const offset_of!(Record, control),
    R_REQUEST = const offset_of!(Record, request),
    R_REQUEST_KIND = const offset_of!(Record, request_kind),
    R_R15 = const offset_of!(Record, service_r15),
    R_LIMIT = const offset_of!(Record, limit),
    R_FRAME = const offset_of!(Record, frame),
    R_SERVICE = const offset_of!(Record, service),
    R_CONTEXT = const offset_of!(Record, context),
    RECORD_SIZE = const size_of::<Record>(),
    P_GATE_STACK = const offset_of!(Peer, gate_stack),
    P_LIMIT = const offset_of!(Peer, limit),
    P_RESULT_MASK = const offset_of!(Peer, result_mask),
    P_FLOAT_MASK = const offset_of!(Peer, float_mask),
    P_VECTORS = const offset_of!(Peer, vectors),
    PEER_HIGH = const PEER >> 32,
    SLOW_HIGH = const SLOW >> 32,
    T_PLAN_R15 = const offset_of!(Thread, plan_r15),
    T_PLAN_RSP = const offset_of!(Thread, plan_rsp),
    C_LIFECYCLE = const offset_of!(Control, lifecycle),
    C_BASE = const offset_of!(Control, base),
    C_FACTS = const offset_of!(Control, facts),
    C_INSIDE = const offset_of!(Control, inside),
    C_SERVICES = const offset_of!(Control, services),
    C_SLOTS = const SLOTS,
    S_FUNCTION = const offset_of!(ServiceEntry, function),
    S_CONTEXT = const offset_of!(ServiceEntry, context),
    S_STACK = const offset_of!(ServiceEntry, stack),
    S_CALLS = const offset_of!(ServiceEntry, calls),
    S_RESULT_MASK = const offset_of!(ServiceEntry, result_mask),
    S_FLOAT_MASK = const offset_of!(ServiceEntry, float_mask),
    FACT_XMM = const FACT_XMM,
    FACT_YMM = const FACT_YMM,
    FACT_X87 = const FACT_X87,
    FACT_GS = const FACT_GS,
    FACT_FLOAT = const FACT_FLOAT,
    FACT_HOST_STATE = const FACT_FLOAT | FACT_X87 | FACT_GS,
    PEER_TO_FLOAT = const PEER_TO_FLOAT,
    PEER_FROM_FLOAT = const PEER_FROM_FLOAT,
    KIND_SERVICE_STACK = const outcome::SERVICE_STACK,
    KIND_ANOTHER = const outcome::ANOTHER,
    STATUS_ENDED = const STATUS_ENDED,
    STATUS_PEER = const STATUS_PEER,
    OPEN = const Phase::Open as u32,
    POISONED = const Phase::Poisoned as u32,
    CLOSED = const Phase::Closed as u32,
    OUTSIDE = const CallPhase::Outside as u32,
    INSIDE = const CallPhase::Inside as u32,
    IN_SERVICE = const CallPhase::InService as u32,
    LEAVING = const CallPhase::Leaving as u32,
    ENTERING = const CallPhase::Entering as u32,
    slow_entry = sym slow::slow_entry,
    slow_exit = sym slow::slow_exit,
    abort_exit = sym slow::abort_exit,
    service_stray = sym stray::service_stray,
);
