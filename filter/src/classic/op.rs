//! What instructions of the classic machine are called, in numbers and letters.

pub(super) const LOAD_NUMBER: u16 = 0x00;
pub(super) const LOAD_PACKET: u16 = 0x20;
pub(super) const LOAD_BEHIND_INDEX: u16 = 0x40;
pub(super) const LOAD_MEMORY: u16 = 0x60;
pub(super) const LOAD_LENGTH: u16 = 0x80;
pub(super) const LOAD_INDEX_MEMORY: u16 = 0x61;
/// Four times the lower half of a byte.
pub(super) const LOAD_INDEX_HEADER: u16 = 0xb1;
pub(super) const STORE: u16 = 0x02;
pub(super) const ADD: u16 = 0x04;
pub(super) const SUBTRACT: u16 = 0x14;
pub(super) const MULTIPLY: u16 = 0x24;
pub(super) const DIVIDE: u16 = 0x34;
pub(super) const OR: u16 = 0x44;
pub(super) const AND: u16 = 0x54;
pub(super) const SHIFT_LEFT: u16 = 0x64;
pub(super) const SHIFT_RIGHT: u16 = 0x74;
pub(super) const MODULO: u16 = 0x94;
pub(super) const XOR: u16 = 0xa4;
/// Added to an operation or a comparison: with the index register, not with a number.
pub(super) const WITH_INDEX: u16 = 0x08;
pub(super) const JUMP: u16 = 0x05;
pub(super) const IF_EQUAL: u16 = 0x15;
pub(super) const IF_GREATER: u16 = 0x25;
pub(super) const IF_AT_LEAST: u16 = 0x35;
pub(super) const IF_SET: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;
pub(super) const RETURN_ACCUMULATOR: u16 = 0x16;
pub(super) const TO_INDEX: u16 = 0x07;

/// What says how many bytes a load has.
pub(super) fn size(bytes: u8) -> u16 {
    match bytes {
        1 => 0x10,
        2 => 0x08,
        _ => 0,
    }
}

/// What an instruction is called.
pub(super) fn name(code: u16) -> &'static str {
    let arithmetic = [
        "add", "sub", "mul", "div", "or", "and", "lsh", "rsh", "neg", "mod", "xor",
    ];
    let jumps = ["ja", "jeq", "jgt", "jge", "jset"];
    let operation = usize::from(code >> 4 & 0xf);
    match code & 7 {
        0 => match code & 0x18 {
            0x08 => "ldh",
            0x10 => "ldb",
            _ => "ld",
        },
        1 if code == LOAD_INDEX_HEADER => "ldxb",
        1 => "ldx",
        2 => "st",
        3 => "stx",
        4 => arithmetic.get(operation).copied().unwrap_or("?"),
        5 => jumps.get(operation).copied().unwrap_or("?"),
        6 => "ret",
        _ if code & 0x80 != 0 => "txa",
        _ => "tax",
    }
}
