//! One instruction: its length, and whether the allow list has it with operands that stay in the
//! window.
//!
//! The invariant: where this says yes, every processor that implements the instruction reads
//! exactly `length` bytes, its only access to memory is at segment base + a 32-bit address, and rsp
//! is neither read nor written (but for the implied use by `call` and `ret`). Nothing that an
//! earlier instruction did matters.
//!
//! [`common`] knows the prefixes that nearly all instructions have, in at most six bytes before
//! displacement and immediate, and has no branch that depends on the text: all checks are gathered
//! into one word, tested once. [`rare`] knows the whole grammar. Both look into the same tables and
//! end in the same [`operands`]. Why an instruction is refused is worked out afterwards, by
//! [`crate::explain`].

use crate::allow::FIXED;
use crate::row::InstructionKind;
use crate::table::*;

/// Bytes that the decoder looks at: more than the 15 of the longest instruction, so that it never
/// checks bounds.
pub(crate) const CHUNK: usize = 24;

/// An accepted instruction.
#[derive(Clone, Copy)]
pub(crate) struct Decoded {
    /// Bytes.
    pub length: usize,
    /// Entry of the table, with [`YMM`]; the class in it says what is left to check.
    pub entry: u64,
}

/// Decodes the instruction at the start of `chunk`; `segment` is the override's byte. `None`
/// refuses.
#[inline(always)]
pub(crate) fn decode(chunk: &[u8; CHUNK], segment: u8) -> Option<Decoded> {
    common(word(chunk, 0), segment).or_else(|| rare(chunk, segment))
}

/// The instruction in the first bytes of `w`, if it has at most one prefix besides segment, 67h and
/// REX, and an opcode of the one-byte or the 0F map.
#[inline(always)]
pub(crate) fn common(mut w: u64, segment: u8) -> Option<Decoded> {
    // Segment and address size, always together.
    let mut lead = if w & 0xffff == u64::from(segment) | 0x6700 {
        CONFINED
    } else {
        0
    };
    w >>= lead & SKIP & !7;
    let prefix = u64::from(PREFIX[(w & 0xff) as usize]);
    w >>= prefix & SKIP;
    let rex = REX[(w & 0xff) as usize];
    w >>= rex & SKIP;
    let escape = u64::from(ESCAPE[(w & 0xff) as usize]);
    w >>= escape & SKIP;
    lead += prefix + rex + escape;
    let entry = LEGACY[((lead as u32 >> INDEX) as usize & 0xf00) | (w & 0xff) as usize];
    operands(w, entry, lead)
}

/// Checks ModRM, SIB, registers, width and segment of the instruction whose opcode is the first
/// byte of `w`.
#[inline(always)]
fn operands(w: u64, entry: u64, lead: u64) -> Option<Decoded> {
    let operand = u64::from(OPERAND[(w >> 8 & 0xff) as usize]);
    // What of the operand matters to this opcode: its length, and everything that is wrong.
    let found = operand & u64::from(BASES[(w >> 16 & 7) as usize]) & lead >> EXTENSIONS & entry;
    // Memory is accessed if and only if segment and 67h are there; and the form is one of the
    // entry's.
    if (found ^ lead) & WRONG != 0 || entry >> (operand >> FORM & 63) & 1 == 0 {
        return None;
    }
    let after = (found & BYTES).wrapping_mul(SUM) >> 12 & 15;
    let length = (lead & SKIP) / 8 + 1 + after;
    Some(Decoded {
        length: length as usize,
        entry,
    })
}

/// The whole grammar.
#[cold]
#[inline(never)]
pub(crate) fn rare(chunk: &[u8; CHUNK], segment: u8) -> Option<Decoded> {
    full(chunk, segment).or_else(|| {
        let fixed = FIXED.iter().find(|fixed| chunk.starts_with(fixed.bytes))?;
        let entry = FIXED_ENTRY
            | if fixed.kind == InstructionKind::Nop {
                NO_ACCESS
            } else {
                0
            };
        Some(Decoded {
            length: fixed.bytes.len(),
            entry,
        })
    })
}

/// The whole grammar but for instructions that are fixed strings of bytes.
pub(crate) fn full(chunk: &[u8; CHUNK], segment: u8) -> Option<Decoded> {
    // `lea` computes with 32-bit addresses under 67h alone.
    let short = word(chunk, 0) & 0xff == 0x67;
    let confined = word(chunk, 0) & 0xffff == u64::from(segment) | 0x6700;
    let mut before = if short { 1 } else { 2 * u64::from(confined) };
    let mut w = word(chunk, before as usize);
    let access = if confined { MEMORY } else { 0 };
    if w & 0xfe == 0xc4 {
        return if short { None } else { vex(w, access, before) };
    }

    // 66h, then one of F3h, F2h, F0h.
    let p66 = u64::from(w & 0xff == 0x66);
    w >>= 8 * p66;
    let second = u64::from(PREFIX[(w & 0xff) as usize]);
    if w & 0xff == 0x66 {
        return None;
    }
    w >>= second & SKIP;
    let prefix = second >> 28 | p66;
    let rex = REX[(w & 0xff) as usize];
    let wide = w & 0xf8 == 0x48;
    w >>= rex & SKIP;
    before += p66 + (second & SKIP) / 8 + (rex & SKIP) / 8;
    let mut map = 0;
    if w & 0xff == 0x0f {
        w >>= 8;
        (map, before) = (1, before + 1);
        if w & 0xfd == 0x38 {
            map = 2 + (w >> 1 & 1);
            w >>= 8;
            before += 1;
        }
    }
    let mut entry = LEGACY[((map & 3) << 11 | (prefix & 7) << 8 | w & 0xff) as usize];
    let mut lead = (8 * before) | access | rex >> EXTENSIONS << EXTENSIONS;
    let mut more = 0;
    if entry & ABSOLUTE != 0 {
        // Memory is accessed without ModRM.
        lead ^= MEMORY;
        if !wide || entry & ABSOLUTE_WIDE != 0 {
            entry &= !(15 << REFUSED_WL);
        }
    }
    if entry & IMMEDIATE_WIDE != 0 && wide {
        entry &= !(0b0100 << REFUSED_WL);
        more = 4;
    }
    let decoded = operands(w, entry, lead)?;
    if short && entry & LEA == 0 {
        return None;
    }
    Some(Decoded {
        length: decoded.length + more,
        entry: decoded.entry,
    })
}

/// The instruction after a VEX prefix; `w` starts with C4h or C5h.
#[inline(always)]
fn vex(w: u64, access: u64, before: u64) -> Option<Decoded> {
    // The two-byte form is the three-byte form with map 1 and X, B, W as zero.
    let three = u64::from(w & 1 == 0);
    let (rxb, map, last) = if three != 0 {
        (!w >> 13 & 7, w >> 8 & 0x1f, w >> 16 & 0xff)
    } else {
        (!w >> 13 & 4, 1, w >> 8 & 0x7f)
    };
    let map = map.checked_sub(1).filter(|map| *map < 3)?;
    let w = w >> (16 + 8 * three);
    let (wide, l, vvvv) = (last >> 7, last >> 2 & 1, !last >> 3 & 15);
    let entry = *VEX.get((map << 10 | (last & 3) << 8 | w & 0xff) as usize)?;
    let extensions = u64::from(VEX_EXTENSIONS[(l << 4 | wide << 3 | rxb) as usize & 31]);
    let mut decoded = operands(
        w,
        entry,
        (8 * (before + 2 + three)) | access | extensions << EXTENSIONS,
    )?;
    // vvvv: all ones where it is unused, and never rsp.
    let register = u64::from(w >> 8 & 0xff >= 0xc0);
    if (vvvv != 0 && entry >> VVVV_USED >> register & 1 == 0)
        || (vvvv == 4 && entry & VVVV_GENERAL != 0)
    {
        return None;
    }
    if l == 1 && entry & XMM != 0 {
        decoded.entry |= YMM;
    }
    Some(decoded)
}

/// Eight bytes of the chunk.
#[inline(always)]
pub(crate) fn word(chunk: &[u8; CHUNK], at: usize) -> u64 {
    match chunk.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => 0,
    }
}

/// The opcode and the byte after it, of an accepted instruction of the one-byte map at `at`.
pub(crate) fn opcode(text: &[u8], at: usize) -> (u8, u8) {
    let mut bytes = text.get(at..).unwrap_or(&[]).iter().copied();
    let opcode = bytes.find(|byte| !matches!(byte, 0x64..=0x67 | 0xf0 | 0x40..=0x4f));
    (opcode.unwrap_or(0), bytes.next().unwrap_or(0))
}

/// Whether the x87 instruction with this opcode and ModRM byte is allowed, as far as it has no
/// memory operand.
pub(crate) fn x87_allowed((opcode, modrm): (u8, u8)) -> bool {
    let set = SECOND
        .get(usize::from(opcode).wrapping_sub(0xd8))
        .copied()
        .unwrap_or(0);
    modrm < 0xc0 || set >> (modrm - 0xc0) & 1 == 1
}

/// The bytes of `text` from `at` on, with zeros after its end.
pub(crate) fn chunk_at(text: &[u8], at: usize) -> [u8; CHUNK] {
    let mut chunk = [0; CHUNK];
    for (to, from) in chunk.iter_mut().zip(text.get(at..).unwrap_or(&[])) {
        *to = *from;
    }
    chunk
}

/// Where the direct branch at `at` goes, relative to text.
#[inline(always)]
pub(crate) fn target(text: &[u8], at: usize, decoded: &Decoded) -> i64 {
    at as i64 + decoded.length as i64 + i64::from(displacement(text, at, decoded))
}

/// The first instruction of text, a sequence of allowed ones, that `wanted` is true for.
pub(crate) fn first_where(
    text: &[u8],
    segment: u8,
    mut wanted: impl FnMut(usize, &Decoded) -> bool,
) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        let decoded = decode(&chunk_at(text, at), segment)?;
        if wanted(at, &decoded) {
            return Some(at);
        }
        at += decoded.length;
    }
    None
}

/// The displacement of the direct branch at `at`: its last byte or four bytes.
#[inline(always)]
pub(crate) fn displacement(text: &[u8], at: usize, decoded: &Decoded) -> i32 {
    let end = at.saturating_add(decoded.length);
    let short = decoded.entry >> IMMEDIATE & 7 == 1;
    match end
        .checked_sub(4)
        .and_then(|from| text.get(from..end)?.first_chunk::<4>())
    {
        Some(bytes) => {
            // Chosen without a branch: nothing predicts which of both it is.
            let last = i32::from_le_bytes(*bytes);
            last >> if short { 24 } else { 0 }
        }
        // A short branch in the first four bytes of text.
        None => text
            .get(end.wrapping_sub(1))
            .map_or(0, |byte| i32::from(*byte as i8)),
    }
}
