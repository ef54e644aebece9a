//! The gates' assembly and the structures it reads, bound together field by field.
//!
//! `gate.s` and `peer.s` say what each instruction is for; this file gives it the offsets and the classes that exist.

use super::call_state::CallPhase;
use super::control::{Control, Entry, ServiceEntry, Slot};
use super::host::MXCSR_DEFAULT;
use super::lifecycle::Phase;
use super::peer::{PEER, Peer, SLOW};
use super::record::Record;
use super::thread::{Extra, Thread};
use postern_image::Type;
use std::arch::global_asm;
use std::mem::{offset_of, size_of};

/// A status that a gate returns in r11d: the call returned normally.
pub const STATUS_OK: u32 = 0;
/// The call was ended; [`super::above::Above::ended`] was told how. (2 is: refused.)
pub const STATUS_ENDED: u32 = 1;
/// Between `abort_exit` and the gates only: the ended call was a peer's, and its caller goes on.
pub const STATUS_PEER: u32 = 3;

/// Entry flag: at least one floating-point parameter.
pub const FLAG_FLOATS: u32 = 1;
/// Entry flag: calls bring more than arguments, in `Thread::payload`.
pub const FLAG_PAYLOAD: u32 = 2;
/// Bytes below the recorded frame where the slow path keeps the argument registers, rdi lowest.
pub const SAVED: u64 = 184;
/// Fact bits as the gates test them.
pub const FACT_XMM: u32 = 1;
/// The image can touch the upper halves of vector registers.
pub const FACT_YMM: u32 = 2;
/// The image can touch the x87 registers.
pub const FACT_X87: u32 = 4;
/// The host wants its gs base back: no fact of the image, but of the configuration.
pub const FACT_GS: u32 = 8;
/// The image has instructions that MXCSR governs, or that raise its flags.
pub const FACT_FLOAT: u32 = 16;

/// Bits of [`Peer::vectors`] besides the facts: the peer has [`FACT_FLOAT`] and its caller has not …
pub const PEER_TO_FLOAT: u32 = 32;
/// … or the other way around.
pub const PEER_FROM_FLOAT: u32 = 64;

// The slot's stride and the service entry's size are shifts and address arithmetic in gate.s.
const _: () = assert!(size_of::<ServiceEntry>() == 64 && size_of::<Slot>() == 16);
// The peer gate takes a Peer for its Entry, and reads a slot's first two fields in one go.
const _: () = assert!(
    offset_of!(Peer, entry) == 0 && offset_of!(Slot, stack) == 0 && offset_of!(Slot, waiting) == 4
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
    C_SERVICES = const offset_of!(Control, services),
    C_SLOTS = const super::control::SLOTS,
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
    KIND_SERVICE_STACK = const super::outcome::SERVICE_STACK,
    KIND_ANOTHER = const super::outcome::ANOTHER,
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
    slow_entry = sym super::slow::slow_entry,
    slow_exit = sym super::slow::slow_exit,
    abort_exit = sym super::slow::abort_exit,
    service_stray = sym super::stray::service_stray,
);

macro_rules! labels {
    ($($name:ident),* $(,)?) => {
        unsafe extern "C" { $( static $name: u8; )* }
        /// Addresses of the labels of `gate.s`.
        #[allow(non_camel_case_types, dead_code)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Label { $($name),* }
        impl Label {
            /// Every label with its name.
            #[cfg(feature = "testing")]
            pub const ALL: &[(Label, &str)] = &[$((Label::$name, stringify!($name))),*];

            /// Where the label is.
            pub fn address(self) -> usize {
                match self { $( Label::$name => &raw const $name as usize ),* }
            }
        }
    };
}

labels! {
    postern_masked_none, postern_gate_none, postern_body_none, postern_marked_none, postern_returned_none, postern_left_none,
    postern_masked_sse, postern_gate_sse, postern_body_sse, postern_marked_sse, postern_returned_sse, postern_left_sse,
    postern_masked_sse_float, postern_gate_sse_float, postern_body_sse_float,
    postern_marked_sse_float, postern_returned_sse_float, postern_left_sse_float,
    postern_masked_avx, postern_gate_avx, postern_body_avx, postern_marked_avx, postern_returned_avx, postern_left_avx,
    postern_masked_avx_float, postern_gate_avx_float, postern_body_avx_float,
    postern_marked_avx_float, postern_returned_avx_float, postern_left_avx_float,
    postern_masked_full, postern_gate_full, postern_body_full,
    postern_unmark, postern_slow, postern_full, postern_returned_full, postern_left_full,
    postern_aborted, postern_aborted_left,
    postern_service, postern_service_out, postern_service_back,
    postern_peer, postern_peer_marked, postern_peer_returned, postern_peer_back, postern_peer_unmark, postern_peer_pop,
    postern_peer_slow, postern_peer_failed, postern_peer_stack, postern_service_stack, postern_peer_request,
    postern_gates_end,
}

unsafe extern "C" {
    static postern_narrow_i8: u8;
    static postern_narrow_u8: u8;
    static postern_narrow_i16: u8;
    static postern_narrow_u16: u8;
    static postern_narrow_bool: u8;
}

/// The gate in front of a masked gate that extends a result of this type for C, if it needs to be.
pub fn narrow(result: Option<Type>) -> Option<usize> {
    let gate = match result? {
        Type::I8 => &raw const postern_narrow_i8,
        Type::U8 => &raw const postern_narrow_u8,
        Type::I16 => &raw const postern_narrow_i16,
        Type::U16 => &raw const postern_narrow_u16,
        Type::Bool => &raw const postern_narrow_bool,
        _ => return None,
    };
    Some(gate as usize)
}

/// Where an interrupted instruction of the gates stands, for the decision to abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PcRegion {
    /// The call can be ended here and now: T_FRAME is right and the extension's work is not complete.
    Abortable,
    /// The call is already leaving (or has not begun); nothing is to be done.
    Leaving,
    /// Not in the gates.
    Elsewhere,
}

/// Classifies a program counter while the thread's phase is `Inside`.
pub fn region_of(pc: usize) -> PcRegion {
    use Label::*;
    const ABORTABLE: [(Label, Label); 11] = [
        (postern_marked_none, postern_returned_none),
        (postern_marked_sse, postern_returned_sse),
        (postern_marked_sse_float, postern_returned_sse_float),
        (postern_marked_avx, postern_returned_avx),
        (postern_marked_avx_float, postern_returned_avx_float),
        (postern_full, postern_returned_full),
        (postern_service, postern_service_out),
        (postern_service_back, postern_peer),
        // The caller's call, then the peer's, each with its own T_FRAME; in between the phase is `Entering`.
        (postern_peer, postern_peer_returned),
        (postern_peer_back, postern_peer_unmark),
        (postern_peer_pop, postern_peer_failed),
    ];
    if pc < postern_masked_none.address() || pc >= postern_gates_end.address() {
        PcRegion::Elsewhere
    } else if ABORTABLE
        .iter()
        .any(|(from, to)| (from.address()..to.address()).contains(&pc))
    {
        PcRegion::Abortable
    } else {
        PcRegion::Leaving
    }
}

/// The three addresses of one class of entry gate.
#[derive(Clone, Copy)]
pub struct GateClass {
    /// For callers whose argument registers may hold more than arguments.
    pub masked: usize,
    /// For callers that filled all six integer registers.
    pub gate: usize,
    /// After the host's registers are saved.
    pub body: usize,
}

/// The gate class for an image with `facts`; `full` forces the slow path at every call.
pub fn class(facts: u32, full: bool) -> GateClass {
    use Label::*;
    let float = facts & FACT_FLOAT != 0;
    let (masked, gate, body) = if full || facts & (FACT_X87 | FACT_GS) != 0 {
        (postern_masked_full, postern_gate_full, postern_body_full)
    } else if facts & FACT_YMM != 0 && float {
        (
            postern_masked_avx_float,
            postern_gate_avx_float,
            postern_body_avx_float,
        )
    } else if facts & FACT_YMM != 0 {
        (postern_masked_avx, postern_gate_avx, postern_body_avx)
    } else if float {
        (
            postern_masked_sse_float,
            postern_gate_sse_float,
            postern_body_sse_float,
        )
    } else if facts & FACT_XMM != 0 {
        (postern_masked_sse, postern_gate_sse, postern_body_sse)
    } else {
        (postern_masked_none, postern_gate_none, postern_body_none)
    };
    GateClass {
        masked: masked.address(),
        gate: gate.address(),
        body: body.address(),
    }
}
