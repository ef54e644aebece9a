//! Snippets: short texts that the verifier accepted, each to be run from its first byte.
//!
//! Every snippet is judged alone, at the offset where it will lie, and all of a batch are judged
//! once more as one text.

use crate::instruction::{Encoder, Origin};
use crate::random::Draw;
use crate::window::{DATA, FORGED, IMPORTS};
use fastrand::Rng;
use postern_verifier::window::{GATES, INFO, PAD, slot};
use postern_verifier::{
    Facts, Layout, Links, Profile, Rule, Segment, Violation, buffer_len, verify,
};

/// A text in the making whose branches go to items, not yet to offsets.
struct Draft {
    items: Vec<Item>,
}

struct Item {
    bytes: Vec<u8>,
    fix: Fix,
}

/// What of an item depends on where things lie.
#[derive(Clone, Copy)]
enum Fix {
    None,
    /// The last byte, or the last four, are the distance to an item.
    Branch {
        to: usize,
        near: bool,
    },
    /// The last four bytes are the distance to a gate slot.
    Slot(u32),
    /// The last four bytes are the offset of an item.
    Offset(usize),
    /// The four bytes at a position are the distance to an item, from the end of those four bytes.
    Middle {
        at: usize,
        to: usize,
    },
}

/// What one snippet is.
#[derive(Clone, Debug)]
pub struct Snippet {
    /// Its text.
    pub bytes: Vec<u8>,
    /// Where its first instruction came from.
    pub origin: Origin,
    /// It is one instruction (followed by `int3`).
    pub single: bool,
    /// What the verifier says of it.
    pub facts: Facts,
}

/// The verifier's word on `text` at window offset `offset`.
///
/// # Errors
/// The verifier's violation.
pub fn judge(text: &[u8], offset: u32) -> Result<Facts, Violation> {
    let layout = Layout {
        text: offset,
        gates: GATES,
        imports: IMPORTS,
        links: Links::NONE,
        segment: Segment::Gs,
    };
    let mut buffer = vec![0; buffer_len(text.len())];
    verify(text, &layout, Profile::User, &mut buffer)
}

/// One instruction, then room for its branches.
pub fn single(encoder: &Encoder, random: &mut Rng, offset: u32) -> Snippet {
    alone(offset, |bytes| encoder.any(random, bytes).0)
}

/// The same of one row of the allow list.
pub fn of_row(encoder: &Encoder, row: usize, random: &mut Rng, offset: u32) -> Snippet {
    alone(offset, |bytes| {
        encoder.of_row(row, random, bytes);
        Origin::Row(row)
    })
}

fn alone(offset: u32, mut make: impl FnMut(&mut Vec<u8>) -> Origin) -> Snippet {
    loop {
        let mut bytes = Vec::with_capacity(64);
        let origin = make(&mut bytes);
        bytes.resize(bytes.len() + 16, 0xcc);
        if let Ok(facts) = judge(&bytes, offset) {
            return Snippet {
                bytes,
                origin,
                single: true,
                facts,
            };
        }
    }
}

/// A few instructions with branches forward, calls, gate slots and guarded indirect branches;
/// sometimes with flipped bits.
pub fn sequence(encoder: &Encoder, random: &mut Rng, offset: u32) -> Snippet {
    loop {
        let draft = draft(encoder, random);
        let Some(mut bytes) = draft.place(offset) else {
            continue;
        };
        let mut origin = Origin::Fixed;
        if random.chance(15) {
            origin = Origin::Bytes;
            for _ in 0..=random.u32(..2) {
                let at = random.usize(..bytes.len());
                bytes[at] ^= 1 << random.u32(..8);
            }
        }
        match judge(&bytes, offset) {
            Ok(facts) => {
                return Snippet {
                    bytes,
                    origin,
                    single: false,
                    facts,
                };
            }
            Err(violation) => assert!(
                origin == Origin::Bytes || violation.rule == Rule::StrayPad,
                "refused at offset {offset:#x}: {violation}: {bytes:02x?}"
            ),
        }
    }
}

fn draft(encoder: &Encoder, random: &mut Rng) -> Draft {
    let count = 3 + random.usize(..8);
    let mut draft = Draft { items: Vec::new() };
    // Items that later branches may name: their numbers are known once all are made, so targets are
    // drawn at the end.
    let mut branches = Vec::new();
    while draft.items.len() < count {
        let mut bytes = Vec::new();
        match random.u32(..100) {
            0..60 => {
                encoder.straight(random, &mut bytes);
                draft.push(bytes, Fix::None);
            }
            60..72 => {
                let near = random.chance(60);
                let condition = random.u8(..16);
                if near {
                    bytes.extend([0x70 | condition, 0]);
                } else {
                    bytes.extend([0x0f, 0x80 | condition, 0, 0, 0, 0]);
                }
                branches.push(draft.items.len());
                draft.push(bytes, Fix::Branch { to: 0, near });
            }
            72..76 => {
                branches.push(draft.items.len());
                draft.push(vec![0xeb, 0], Fix::Branch { to: 0, near: true });
            }
            76..82 => {
                branches.push(draft.items.len());
                draft.push(vec![0xe8, 0, 0, 0, 0], Fix::Branch { to: 0, near: false });
            }
            82..86 => {
                let opcode = random.pick(&[0xe8, 0xe9]);
                let slot = random.u32(..IMPORTS);
                draft.push(vec![opcode, 0, 0, 0, 0], Fix::Slot(slot));
            }
            86..92 => draft.push(PAD.to_vec(), Fix::None),
            _ => guarded(random, &mut draft),
        }
    }
    draft.push(vec![0xc3], Fix::None);
    let last = draft.items.len();
    draft.push(vec![0xcc], Fix::None);
    for at in branches {
        if let Fix::Branch { to, .. } = &mut draft.items[at].fix {
            // Forward; sometimes to the trap behind the return.
            *to = at + 1 + random.usize(..last - at);
        }
    }
    let pads: Vec<usize> = (0..last).filter(|&i| draft.items[i].bytes == PAD).collect();
    for at in 0..last {
        match &mut draft.items[at].fix {
            Fix::Offset(to) => {
                let later: Vec<usize> = pads.iter().copied().filter(|&p| p > at).collect();
                *to = match random.u32(..8) {
                    0 => random.usize(..last),
                    _ if !later.is_empty() => random.pick(&later),
                    _ => at,
                };
            }
            Fix::Middle { to, .. } => *to = last,
            _ => {}
        }
    }
    draft
}

/// A guarded sequence, most times after a constant that makes it succeed.
fn guarded(random: &mut Rng, draft: &mut Draft) {
    let register = loop {
        let register = random.u8(..16);
        if register != 4 && register != 15 {
            break register;
        }
    };
    let (low, high) = (register & 7, register >> 3);
    match random.u32(..10) {
        0 => {
            let to = match random.u32(..4) {
                0 => FORGED,
                _ => slot(random.u32(..IMPORTS + 1)),
            };
            let mut bytes = vec![0x40 | high, 0xb8 | low];
            bytes.extend(to.to_le_bytes());
            draft.push(bytes, Fix::None);
        }
        1 => {}
        _ => draft.push(vec![0x40 | high, 0xb8 | low, 0, 0, 0, 0], Fix::Offset(0)),
    }
    let mut bytes = match random.u32(..8) {
        0 => {
            let mut bytes = vec![0x65, 0x67, 0x44, 0x8b, 0x1c, 0x25];
            bytes.extend((DATA + random.u32(..4096)).to_le_bytes());
            bytes
        }
        1..4 => vec![0x44 | high, 0x8b, 0xd8 | low],
        _ => vec![0x41 | high << 2, 0x89, 0xc3 | low << 3],
    };
    bytes.extend([0x65, 0x67, 0x49, 0x81, 0x3b]);
    bytes.extend(&PAD[..4]);
    bytes.extend([0x0f, 0x85, 0, 0, 0, 0]);
    let at = bytes.len() - 4;
    bytes.extend([0x65, 0x67, 0x4c, 0x0b, 0x1c, 0x25]);
    bytes.extend(INFO.to_le_bytes());
    bytes.extend([0x41, 0xff, random.pick(&[0xe3, 0xd3])]);
    draft.push(bytes, Fix::Middle { at, to: 0 });
}

impl Draft {
    fn push(&mut self, bytes: Vec<u8>, fix: Fix) {
        self.items.push(Item { bytes, fix });
    }

    /// The text at window offset `offset`; `None` if a short branch does not reach.
    fn place(&self, offset: u32) -> Option<Vec<u8>> {
        let mut starts = Vec::with_capacity(self.items.len());
        let mut length = 0;
        for item in &self.items {
            starts.push(length);
            length += item.bytes.len();
        }
        let mut text = Vec::with_capacity(length);
        for item in &self.items {
            text.extend(&item.bytes);
            let end = text.len();
            let distance = |to: usize| starts[to] as i32 - end as i32;
            match item.fix {
                Fix::None => {}
                Fix::Branch { to, near: true } => {
                    text[end - 1] = i8::try_from(distance(to)).ok()? as u8;
                }
                Fix::Branch { to, near: false } => {
                    text[end - 4..].copy_from_slice(&distance(to).to_le_bytes());
                }
                Fix::Slot(k) => {
                    let distance = slot(k).wrapping_sub(offset + end as u32);
                    text[end - 4..].copy_from_slice(&distance.to_le_bytes());
                }
                Fix::Offset(to) => {
                    let to = offset + starts[to] as u32;
                    text[end - 4..].copy_from_slice(&to.to_le_bytes());
                }
                Fix::Middle { at, to } => {
                    let from = end - item.bytes.len() + at + 4;
                    let distance = starts[to] as i32 - from as i32;
                    text[from - 4..from].copy_from_slice(&distance.to_le_bytes());
                }
            }
        }
        debug_assert!(offset >= GATES);
        Some(text)
    }
}
