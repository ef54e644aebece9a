//! What Rust knows of the gates' assembly: statuses, flags and facts, labels, and which gate is for
//! whom.
//!
//! Invariant: the numbers are those with which `gate.s` and `peer.s` are assembled
//! ([`super::assembly`]), and the labels are theirs.

use super::machine;
use postern_image::Type;
use postern_verifier::Facts;

/// A status that a gate returns in r11d: the call returned normally.
pub const STATUS_OK: u32 = 0;
/// The call was ended; [`super::above::Above::ended`] was told how.
pub const STATUS_ENDED: u32 = 1;
/// It was refused; [`super::above::Above::refused`] was told why.
pub(crate) const STATUS_REFUSED: u32 = 2;
/// Between `abort_exit` and the gates only: the ended call was a peer's, and its caller goes on.
pub(crate) const STATUS_PEER: u32 = 3;

/// Entry flag: at least one floating-point parameter.
pub(crate) const FLAG_FLOATS: u32 = 1;
/// Entry flag: calls bring more than arguments, in `Thread::payload`.
pub(crate) const FLAG_PAYLOAD: u32 = 2;
/// Bytes below the recorded frame where the slow path keeps the argument registers, rdi lowest.
pub(crate) const SAVED: u64 = 184;
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
/// Other processes have the domain's memory, too.
pub const FACT_COMMON: u32 = 128;

/// The fact bits of text of which the verifier has found these facts.
pub fn fact_bits(facts: &Facts) -> u32 {
    let bit = |fact: bool, bits: u32| if fact { bits } else { 0 };
    bit(facts.xmm, FACT_XMM)
        | bit(facts.ymm, FACT_YMM | FACT_XMM)
        | bit(facts.float, FACT_FLOAT)
        | bit(facts.x87, FACT_X87)
}

/// Whether the processor has what gates for these fact bits use.
pub(super) fn has(facts: u32) -> bool {
    facts & FACT_YMM == 0 || machine::has_avx2()
}

/// Bits of [`super::peer::Peer::vectors`] besides the facts: the peer has [`FACT_FLOAT`] and its
/// caller has not …
pub(crate) const PEER_TO_FLOAT: u32 = 32;
/// … or the other way around.
pub(crate) const PEER_FROM_FLOAT: u32 = 64;

macro_rules! labels {
    ($($name:ident),* $(,)?) => {
        unsafe extern "C" { $( static $name: u8; )* }
        /// Addresses of the labels of `gate.s`.
        #[allow(non_camel_case_types, dead_code, missing_docs)] // What each is, `gate.s` and `peer.s` say.
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
    postern_masked_none_noted, postern_gate_none_noted, postern_body_none_noted,
    postern_marked_none_noted, postern_returned_none_noted, postern_left_none_noted,
    postern_masked_sse_noted, postern_gate_sse_noted, postern_body_sse_noted,
    postern_marked_sse_noted, postern_returned_sse_noted, postern_left_sse_noted,
    postern_masked_sse_float_noted, postern_gate_sse_float_noted, postern_body_sse_float_noted,
    postern_marked_sse_float_noted, postern_returned_sse_float_noted, postern_left_sse_float_noted,
    postern_masked_avx_noted, postern_gate_avx_noted, postern_body_avx_noted,
    postern_marked_avx_noted, postern_returned_avx_noted, postern_left_avx_noted,
    postern_masked_avx_float_noted, postern_gate_avx_float_noted, postern_body_avx_float_noted,
    postern_marked_avx_float_noted, postern_returned_avx_float_noted, postern_left_avx_float_noted,
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

/// The gate of typed entries with words on the stack, which refuses: [`super::enter::all`] knows
/// how many its caller has.
pub(crate) fn without_words() -> usize {
    unsafe extern "C" {
        static postern_without_words: u8;
    }
    &raw const postern_without_words as usize
}

/// The gate in front of a masked gate that extends a result of this type for C, if it needs to be.
pub(crate) fn narrow(result: Option<Type>) -> Option<usize> {
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
pub(crate) enum PcRegion {
    /// The call can be ended here and now: T_FRAME is right and the extension's work is not
    /// complete.
    Abortable,
    /// The call is already leaving (or has not begun); nothing is to be done.
    Leaving,
    /// Not in the gates.
    Elsewhere,
}

/// Classifies a program counter while the thread's phase is `Inside`.
pub(crate) fn region_of(pc: usize) -> PcRegion {
    use Label::*;
    const ABORTABLE: [(Label, Label); 16] = [
        (postern_marked_none, postern_returned_none),
        (postern_marked_sse, postern_returned_sse),
        (postern_marked_sse_float, postern_returned_sse_float),
        (postern_marked_avx, postern_returned_avx),
        (postern_marked_avx_float, postern_returned_avx_float),
        (postern_marked_none_noted, postern_returned_none_noted),
        (postern_marked_sse_noted, postern_returned_sse_noted),
        (
            postern_marked_sse_float_noted,
            postern_returned_sse_float_noted,
        ),
        (postern_marked_avx_noted, postern_returned_avx_noted),
        (
            postern_marked_avx_float_noted,
            postern_returned_avx_float_noted,
        ),
        (postern_full, postern_returned_full),
        (postern_service, postern_service_out),
        (postern_service_back, postern_peer),
        // The caller's call, then the peer's, each with its own T_FRAME; in between the phase is
        // `Entering`.
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
pub(crate) struct GateClass {
    /// For callers whose argument registers may hold more than arguments.
    pub masked: usize,
    /// For callers that filled all six integer registers.
    pub gate: usize,
    /// After the host's registers are saved.
    pub body: usize,
}

/// The gate class for an image with `facts`; `full` forces the slow path at every call.
pub(crate) fn class(facts: u32, full: bool) -> GateClass {
    use Label::*;
    let [none, sse, sse_float, avx, avx_float] = match facts & FACT_COMMON {
        0 => [
            (postern_masked_none, postern_gate_none, postern_body_none),
            (postern_masked_sse, postern_gate_sse, postern_body_sse),
            (
                postern_masked_sse_float,
                postern_gate_sse_float,
                postern_body_sse_float,
            ),
            (postern_masked_avx, postern_gate_avx, postern_body_avx),
            (
                postern_masked_avx_float,
                postern_gate_avx_float,
                postern_body_avx_float,
            ),
        ],
        _ => [
            (
                postern_masked_none_noted,
                postern_gate_none_noted,
                postern_body_none_noted,
            ),
            (
                postern_masked_sse_noted,
                postern_gate_sse_noted,
                postern_body_sse_noted,
            ),
            (
                postern_masked_sse_float_noted,
                postern_gate_sse_float_noted,
                postern_body_sse_float_noted,
            ),
            (
                postern_masked_avx_noted,
                postern_gate_avx_noted,
                postern_body_avx_noted,
            ),
            (
                postern_masked_avx_float_noted,
                postern_gate_avx_float_noted,
                postern_body_avx_float_noted,
            ),
        ],
    };
    let float = facts & FACT_FLOAT != 0;
    let (masked, gate, body) = if full || facts & (FACT_X87 | FACT_GS) != 0 {
        (postern_masked_full, postern_gate_full, postern_body_full)
    } else if facts & FACT_YMM != 0 && float {
        avx_float
    } else if facts & FACT_YMM != 0 {
        avx
    } else if float {
        sse_float
    } else if facts & FACT_XMM != 0 {
        sse
    } else {
        none
    };
    GateClass {
        masked: masked.address(),
        gate: gate.address(),
        body: body.address(),
    }
}
