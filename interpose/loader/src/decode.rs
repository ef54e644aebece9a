//! Where instructions of programs begin and end: as much of the processor's encoding as that needs.
//!
//! What no processor executes in 64-bit mode has no length.

/// An instruction, as far as it is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes.
    pub length: usize,
    /// Its opcode, if that is a single byte, and behind at most a REX prefix.
    pub simple: Option<u8>,
    /// It names memory by a distance from itself.
    pub relative: bool,
}

/// Opcode maps.
const SINGLE: u8 = 0;
const TWO: u8 = 1;
const THREE_38: u8 = 2;
const THREE_3A: u8 = 3;

/// What follows an opcode.
#[derive(Clone, Copy)]
struct Shape {
    modrm: bool,
    immediate: usize,
}

const fn shape(modrm: bool, immediate: usize) -> Option<Shape> {
    Some(Shape { modrm, immediate })
}

/// Of the single-byte opcodes. `word` is the size of operands' immediates, `long` that of `mov`.
fn single(opcode: u8, word: usize, long: usize, address: usize) -> Option<Shape> {
    match opcode {
        0x06 | 0x07 | 0x0e | 0x16 | 0x17 | 0x1e | 0x1f | 0x27 | 0x2f | 0x37 | 0x3f => None,
        0x60..=0x62 | 0x82 | 0x9a | 0xc4 | 0xc5 | 0xce | 0xd4..=0xd6 | 0xea => None,
        0x00..=0x3f => match opcode & 7 {
            4 => shape(false, 1),
            5 => shape(false, word),
            _ => shape(true, 0),
        },
        0x68 | 0xa9 => shape(false, word),
        0x69 | 0x81 | 0xc7 => shape(true, word),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => shape(true, 1),
        0x63 | 0x84..=0x8f | 0xd0..=0xd3 | 0xd8..=0xdf | 0xf6 | 0xf7 | 0xfe | 0xff => {
            shape(true, 0)
        }
        0x6a | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe0..=0xe7 | 0xeb => shape(false, 1),
        0xa0..=0xa3 => shape(false, address),
        0xb8..=0xbf => shape(false, long),
        0xc2 | 0xca => shape(false, 2),
        0xc8 => shape(false, 3),
        0xe8 | 0xe9 => shape(false, 4),
        _ => shape(false, 0),
    }
}

/// Of those behind 0x0f.
fn two(opcode: u8) -> Option<Shape> {
    match opcode {
        0x04 | 0x0a | 0x0c | 0x0f | 0x24..=0x27 | 0x36 | 0x39 | 0x3b..=0x3f | 0xa6 | 0xa7 => None,
        0x05..=0x09 | 0x0b | 0x0e | 0x30..=0x37 | 0x77 | 0xa0..=0xa2 | 0xa8..=0xaa => {
            shape(false, 0)
        }
        0xc8..=0xcf => shape(false, 0),
        0x80..=0x8f => shape(false, 4),
        0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => shape(true, 1),
        _ => shape(true, 0),
    }
}

/// The instruction that these bytes begin with, if they are all there.
pub fn first(code: &[u8]) -> Option<Instruction> {
    const LONGEST: usize = 15;
    let byte = |at: usize| code.get(at).copied();
    let (mut at, mut small, mut near, mut legacy) = (0, false, false, false);
    loop {
        match byte(at)? {
            0x66 => small = true,
            0x67 => near = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0xf2 | 0xf3 => {}
            _ => break,
        }
        legacy = true;
        at += 1;
        if at >= LONGEST {
            return None;
        }
    }
    let rex = byte(at).filter(|byte| byte & 0xf0 == 0x40).unwrap_or(0);
    at += usize::from(rex != 0);
    let wide = rex & 8 != 0;
    let (map, opcode, vector) = match byte(at)? {
        0x0f => match byte(at + 1)? {
            0x38 => (THREE_38, byte(at + 2)?, false),
            0x3a => (THREE_3A, byte(at + 2)?, false),
            opcode => (TWO, opcode, false),
        },
        // In front of these no other prefix of operands' sizes stands.
        0xc5 if rex == 0 => (TWO, byte(at + 2)?, true),
        0xc4 if rex == 0 => (byte(at + 1)? & 0x1f, byte(at + 3)?, true),
        0x62 if rex == 0 && byte(at + 2)? & 4 != 0 => match byte(at + 1)? & 7 {
            // Those of half precision have no immediates.
            5 | 6 => (THREE_38, byte(at + 4)?, true),
            map => (map, byte(at + 4)?, true),
        },
        opcode => (SINGLE, opcode, false),
    };
    let first = byte(at)?;
    at += match (map, vector, first) {
        (_, true, 0xc5) => 3,
        (_, true, 0xc4) => 4,
        (_, true, _) => 5,
        (SINGLE, ..) => 1,
        (TWO, ..) => 2,
        _ => 3,
    };
    let word = if small && !wide { 2 } else { 4 };
    let long = if wide { 8 } else { word };
    let Shape {
        modrm,
        mut immediate,
    } = match map {
        SINGLE if vector => None,
        SINGLE => single(opcode, word, long, if near { 4 } else { 8 }),
        TWO => two(opcode),
        THREE_38 => shape(true, 0),
        THREE_3A => shape(true, 1),
        _ => None,
    }?;
    // What branches mean with a prefix for small operands depends on the processor.
    let branches = matches!((map, opcode), (SINGLE, 0xe8 | 0xe9) | (TWO, 0x80..=0x8f));
    if branches && small && !vector {
        return None;
    }
    let mut relative = false;
    if modrm {
        let operand = byte(at)?;
        let (mode, register, base) = (operand >> 6, operand >> 3 & 7, operand & 7);
        at += 1;
        match (map, opcode) {
            (SINGLE, 0xf6) if register < 2 => immediate = 1,
            (SINGLE, 0xf7) if register < 2 => immediate = word,
            (SINGLE, 0x8f) if register != 0 => return None,
            (SINGLE, 0xc6 | 0xc7) if register != 0 && operand != 0xf8 => return None,
            (SINGLE, 0xfe) if register > 1 => return None,
            (SINGLE, 0xff) if register == 7 => return None,
            _ => {}
        }
        let mut far = mode == 2;
        if mode != 3 && base == 4 {
            far |= mode == 0 && byte(at)? & 7 == 5;
            at += 1;
        }
        if mode == 0 && base == 5 {
            (far, relative) = (true, true);
        }
        at += match (far, mode) {
            (true, _) => 4,
            (false, 1) => 1,
            _ => 0,
        };
    }
    at += immediate;
    let simple = (map == SINGLE && !legacy).then_some(opcode);
    (at <= LONGEST && at <= code.len()).then_some(Instruction {
        length: at,
        simple,
        relative,
    })
}

/// Bytes that [`before`] wants to see.
pub const WINDOW: usize = 112;

/// The instruction that ends where the window does, if there is no doubt about where it begins.
///
/// Of any 15 places one behind the other at least one is where an instruction begins, if they are
/// all of instructions. So if the ways from all of them, from each instruction to the one behind
/// it, come to the end by the same last instruction, then it is that one: the true way is among
/// them.
pub fn before(window: &[u8; WINDOW]) -> Option<(usize, Instruction)> {
    const ANY: usize = 15;
    let mut begins = [false; WINDOW];
    begins[..ANY].fill(true);
    let mut last = None;
    for at in 0..WINDOW {
        if !begins[at] {
            continue;
        }
        let Some(instruction) = first(&window[at..]) else {
            continue;
        };
        match begins.get_mut(at + instruction.length) {
            Some(next) => *next = true,
            None if last.is_some() => return None,
            None => last = Some((at, instruction)),
        }
    }
    last
}
