//! Random instructions that the verifier accepts: from the rows of the allow list, from mutations
//! of such, and from random bytes.
//!
//! The encoder here knows the notation of rows, not the verifier's rules: what it makes may be
//! refused, and is then made again.

use crate::random::Draw;
use fastrand::Rng;
use postern_verifier::row::{Fixed, Immediate, Prefix};
use postern_verifier::{Instruction, InstructionKind, Row, Segment, fixed, next, rules};

/// Where an instruction came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The row of the allow list with this number.
    Row(usize),
    /// A fixed string of bytes.
    Fixed,
    /// Mutated or random bytes.
    Bytes,
}

/// Makes instructions.
#[derive(Debug)]
pub struct Encoder {
    rows: Vec<&'static Row>,
    fixed: Vec<&'static Fixed>,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder {
            rows: rules().collect(),
            fixed: fixed().collect(),
        }
    }
}

impl Encoder {
    /// The rows, in the order that [`Origin::Row`] counts them.
    pub fn rows(&self) -> &[&'static Row] {
        &self.rows
    }

    /// Appends one accepted instruction.
    pub fn any(&self, random: &mut Rng, out: &mut Vec<u8>) -> (Origin, Instruction) {
        let start = out.len();
        loop {
            let origin = match random.u32(..16) {
                0 => {
                    out.extend_from_slice(random.pick(&self.fixed).bytes);
                    Origin::Fixed
                }
                1..5 => {
                    self.encode(random.usize(..self.rows.len()), random, out);
                    for _ in 0..=random.u32(..3) {
                        let at = start + random.usize(..out.len() - start);
                        out[at] ^= random.pick(&[1, 2, 4, 8, 16, 32, 64, 128, 255]);
                    }
                    out.extend_from_slice(&random.u64(..).to_le_bytes());
                    Origin::Bytes
                }
                5..8 => {
                    if random.chance(60) {
                        out.extend_from_slice(&[0x65, 0x67]);
                    }
                    if random.chance(30) {
                        out.push(random.pick(&[0x66, 0xf2, 0xf3, 0xf0, 0xc4, 0xc5]));
                    }
                    out.extend_from_slice(&random.u64(..).to_le_bytes());
                    out.extend_from_slice(&random.u64(..).to_le_bytes());
                    Origin::Bytes
                }
                _ => {
                    let row = random.usize(..self.rows.len());
                    self.encode(row, random, out);
                    Origin::Row(row)
                }
            };
            if let Ok(seen) = next(out, start, Segment::Gs) {
                let complete = origin == Origin::Bytes || start + seen.length == out.len();
                assert!(complete, "length of {:02x?}: {seen:?}", &out[start..]);
                out.truncate(start + seen.length);
                return (origin, seen);
            }
            out.truncate(start);
        }
    }

    /// Appends one accepted instruction that is no branch, return or trap.
    pub fn straight(&self, random: &mut Rng, out: &mut Vec<u8>) -> (Origin, Instruction) {
        let start = out.len();
        loop {
            let (origin, seen) = self.any(random, out);
            if matches!(
                seen.kind,
                InstructionKind::Plain | InstructionKind::Address | InstructionKind::Nop
            ) {
                return (origin, seen);
            }
            out.truncate(start);
        }
    }

    /// Appends one accepted instruction of the row with this number.
    pub fn of_row(&self, row: usize, random: &mut Rng, out: &mut Vec<u8>) -> Instruction {
        let start = out.len();
        loop {
            self.encode(row, random, out);
            match next(out, start, Segment::Gs) {
                Ok(seen) if start + seen.length == out.len() => return seen,
                _ => out.truncate(start),
            }
        }
    }

    /// Appends an encoding of a row with random operands.
    fn encode(&self, row: usize, random: &mut Rng, out: &mut Vec<u8>) {
        let row = self.rows[row];
        let memory = row.memory && (!row.register || random.bool());
        let accessed =
            memory && !matches!(row.kind, InstructionKind::Address | InstructionKind::Nop);
        if accessed {
            out.extend_from_slice(&[0x65, 0x67]);
        } else if row.kind == InstructionKind::Address && random.bool() {
            out.push(0x67);
        }
        let wl = random.bit(row.wl);
        let mut extension = random.u8(..8); // R, X, B
        let opcode = row.first + random.u8(..=row.last - row.first);
        let prefix = random.bit(row.prefixes);
        let mut wide = wl >> 1 & 1 == 1;
        let mut sixteen = false;
        if row.vex {
            let pp = match prefix {
                p if p == Prefix::P66 as u8 => 1,
                p if p == Prefix::F3 as u8 => 2,
                p if p == Prefix::F2 as u8 => 3,
                _ => 0,
            };
            let used = !matches!(row.vvvv, postern_verifier::row::Operand::None);
            let vvvv = if used { random.u8(..16) } else { 0 };
            let tail = (!vvvv & 15) << 3 | (wl & 1) << 2 | pp;
            if row.map == 1 && !wide && extension & 3 == 0 && random.chance(70) {
                out.extend_from_slice(&[0xc5, (!extension & 4) << 5 | tail]);
            } else {
                let rxb = (!extension & 7) << 5;
                out.extend_from_slice(&[0xc4, rxb | row.map, u8::from(wide) << 7 | tail]);
            }
        } else {
            sixteen = prefix & 1 == 1 && prefix < 6 || prefix == Prefix::P66Lock as u8;
            if sixteen {
                out.push(0x66);
                wide = false;
            }
            match prefix >> 1 {
                1 => out.push(0xf3),
                2 => out.push(0xf2),
                3 => out.push(0xf0),
                _ if row.lock && memory && random.chance(25) => out.push(0xf0),
                _ => {}
            }
            let branch = !matches!(
                row.kind,
                InstructionKind::Plain | InstructionKind::Address | InstructionKind::Nop
            );
            if branch
                && !matches!(
                    row.kind,
                    InstructionKind::IndirectCall | InstructionKind::IndirectJump
                )
            {
                extension = 0;
            }
            let rex = u8::from(wide) << 3 | extension;
            if rex != 0 || random.chance(10) {
                out.push(0x40 | rex);
            }
            match row.map {
                1 => out.push(0x0f),
                2 => out.extend_from_slice(&[0x0f, 0x38]),
                3 => out.extend_from_slice(&[0x0f, 0x3a]),
                _ => {}
            }
        }
        out.push(opcode);
        if row.second.0 != 0 {
            out.push(row.second.0 + random.u8(..=row.second.1 - row.second.0));
        } else if row.modrm {
            operand(random.bit(row.digits), memory, random, out);
        }
        let immediate = match row.immediate {
            Immediate::None => 0,
            Immediate::Byte => 1,
            Immediate::Double => 4,
            Immediate::Operand | Immediate::Full if sixteen => 2,
            Immediate::Full if wide => 8,
            _ => 4,
        };
        let value = match random.u32(..4) {
            _ if row.memory && !row.modrm => u64::from(address(random)),
            0 => random.u64(..0x40),
            1 => u64::from(address(random)),
            _ => random.u64(..),
        };
        out.extend_from_slice(&value.to_le_bytes()[..immediate]);
    }
}

/// Appends ModRM, SIB and displacement.
fn operand(digit: u8, memory: bool, random: &mut Rng, out: &mut Vec<u8>) {
    let rm = random.u8(..8);
    if !memory {
        out.push(0xc0 | digit << 3 | rm);
        return;
    }
    let mode = random.u8(..3);
    out.push(mode << 6 | digit << 3 | rm);
    let mut base = rm;
    if rm == 4 {
        let sib = random.u8(..);
        out.push(sib);
        base = sib & 7;
    }
    let displacement = match random.u32(..4) {
        0 => address(random),
        1 => random.u32(..),
        2 => (random.u32(..4096) as i32 - 2048) as u32,
        _ => random.u32(..256),
    };
    match mode {
        1 => out.push(displacement as u8),
        0 if base != 5 => {}
        _ => out.extend_from_slice(&displacement.to_le_bytes()),
    }
}

/// A window offset: usually mapped, sometimes at an edge.
fn address(random: &mut Rng) -> u32 {
    use crate::window::{DATA, DATA_END, LAST};
    match random.u32(..8) {
        0 => LAST.wrapping_add(random.u32(..0x1000)),
        1 => random.pick(&[0, 0xffff, 0x1_0000, 0x1_0ffc, 0x1_1000, 0x1_2000, u32::MAX]),
        2 => DATA + random.u32(..DATA_END - DATA - 64),
        _ => DATA + (1 << 20) + random.u32(..1 << 17),
    }
}
