//! What a set's program looks up in its memory: ranks, by the values of fields.
//!
//! A rank says who gets a packet: the priority, then the age; the higher one wins and 0 is nobody.
//! Fields become a key of words of 64 bits as cheaply as the packet's bytes allow: what lies side
//! by side is loaded at once, in the machine's byte order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::expression::{Expr, ExprId, Exprs};

/// A way to find a rank. Places are offsets in the window.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    /// It stands there.
    Rank { at: u32 },
    /// The field's value is an index; the descriptor is at `at`, and positions in it count from
    /// `base`.
    Direct { field: ExprId, at: u32, base: u32 },
    /// The fields' values are a key of a hash table; the same.
    Hash { layout: Layout, at: u32, base: u32 },
}

/// Descriptors of tables, in bytes: the highest rank (8), how many entries or the buckets' mask
/// (4), where they begin (4), the lowest index or the keys of the two hashes.
pub(crate) const BOUND: u32 = 0;
pub(crate) const COUNT: u32 = 8;
pub(crate) const ENTRIES: u32 = 12;
pub(crate) const REST: u32 = 16;

/// How fields lie in a key.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub fields: Vec<ExprId>,
    pub words: u32,
    /// Those of one word stand together.
    pub chunks: Vec<Chunk>,
    /// By field.
    positions: Vec<FieldPosition>,
}

/// Bits of a word that are computed at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub word: u32,
    pub shift: u8,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    pub source: Source,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// The packet's, as they stand there.
    Bytes { base: Option<ExprId>, off: u32 },
    /// An expression's value.
    Value(ExprId),
}

#[derive(Clone, Copy, Debug, Default)]
struct FieldPosition {
    word: u32,
    shift: u8,
    /// Bytes that stand in the packet's order.
    size: u8,
}

/// Where bytes come from, how many, and the fields in them with their positions.
type Run = (Source, u8, Vec<(usize, u8)>);

impl Layout {
    pub fn new(exprs: &Exprs, fields: &[ExprId]) -> Layout {
        let load = |id: ExprId| match exprs.get(id) {
            Expr::Load { size, base, off } => Some((base, off, size)),
            _ => None,
        };
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|field| load(fields[*field]));
        // Fields side by side that have 1, 2, 4 or 8 bytes together.
        let mut runs: Vec<Run> = Vec::new();
        let mut rest = &order[..];
        while let Some((first, others)) = rest.split_first() {
            let Some((base, off, size)) = load(fields[*first]) else {
                runs.push((Source::Value(fields[*first]), 4, alloc::vec![(*first, 0)]));
                rest = others;
                continue;
            };
            let (mut end, mut taken, mut whole) = (size, 1, (size, 1));
            for other in others {
                let Some((next, at, size)) = load(fields[*other]) else {
                    break;
                };
                let adjacent = off.checked_add(end.into()) == Some(at) && next == base;
                if !adjacent || end + size > 8 {
                    break;
                }
                end += size;
                taken += 1;
                if end.is_power_of_two() {
                    whole = (end, taken);
                }
            }
            let mut at = 0;
            let mut run = Vec::new();
            for field in &rest[..whole.1] {
                run.push((*field, at));
                at += load(fields[*field]).map_or(0, |(.., size)| size);
            }
            runs.push((Source::Bytes { base, off }, whole.0, run));
            rest = &rest[whole.1..];
        }
        // The large ones first, so that none crosses a word's end.
        runs.sort_by_key(|(source, size, _)| (core::cmp::Reverse(*size), simple(source)));
        let mut positions = alloc::vec![FieldPosition::default(); fields.len()];
        let (mut chunks, mut bytes) = (Vec::new(), 0u32);
        for (source, size, run) in runs {
            let (word, shift) = (bytes / 8, (bytes % 8 * 8) as u8);
            chunks.push(Chunk {
                word,
                shift,
                size,
                source,
            });
            for (field, at) in run {
                positions[field] = FieldPosition {
                    word,
                    shift: shift + 8 * at,
                    size: load(fields[field]).map_or(0, |(.., size)| size),
                };
            }
            bytes += u32::from(size);
        }
        // What needs registers to be computed comes first within its word.
        chunks.sort_by_key(|chunk: &Chunk| (chunk.word, simple(&chunk.source), chunk.shift));
        Layout {
            fields: fields.to_vec(),
            words: bytes.div_ceil(8).max(1),
            chunks,
            positions,
        }
    }

    /// The key of these values, in the order of the fields.
    pub fn pack(&self, values: impl Iterator<Item = u32>, key: &mut Vec<u64>) {
        key.clear();
        key.resize(self.words as usize, 0);
        for (position, value) in self.positions.iter().zip(values) {
            let value = match position.size {
                1..=4 => value.swap_bytes() >> (32 - 8 * u32::from(position.size)),
                _ => value,
            };
            key[position.word as usize] |= u64::from(value) << position.shift;
        }
    }

    /// The same with other expressions.
    pub fn with(&self, ids: &BTreeMap<ExprId, ExprId>) -> Option<Layout> {
        let mut layout = self.clone();
        for field in &mut layout.fields {
            *field = *ids.get(field)?;
        }
        for chunk in &mut layout.chunks {
            match &mut chunk.source {
                Source::Bytes { base: None, .. } => {}
                Source::Bytes { base: Some(id), .. } | Source::Value(id) => *id = *ids.get(id)?,
            }
        }
        Some(layout)
    }

    /// Bytes of an entry: the key and the rank, a power of two.
    pub fn entry(&self) -> u32 {
        ((self.words + 1) * 8).next_power_of_two()
    }
}

/// Whether it is loaded without computing anything.
fn simple(source: &Source) -> bool {
    matches!(source, Source::Bytes { base: None, .. })
}
