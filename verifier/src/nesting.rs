//! How deep calls nest in text that may loop but not recurse: [`crate::Profile::Kernel`].
//!
//! Text falls into parts: each target of a call begins one, and so does the first byte. Calls go
//! forward, so to the beginning of a later part; jumps go to a later part, or stay in theirs, and
//! so does what merely goes on. No step ever leads to an earlier part, and each call leads to a
//! later one. Calls inside each other are therefore in ever later parts, and the walk from the end
//! knows how deep all later parts go.

use crate::decode::{Decoded, chunk_at, decode, target};
use crate::layout::Layout;
use crate::rule::Rule;
use crate::starts::{before, contains, insert};
use crate::table::*;
use crate::window::KERNEL_CALLS;

/// What is found out about text that may loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nesting {
    /// Calls inside each other at most, those of gate slots among them.
    pub depth: u32,
    /// A jump goes backward.
    pub loops: bool,
}

/// How deep the calls of `text` nest; refused, with its place, is a call or jump that could make
/// them go in circles, and the last call from which on they nest deeper than [`KERNEL_CALLS`].
/// There are no indirect branches, and all direct ones go to a member of `starts` or to a slot.
/// `parts` is a set of positions, and `depths` has a word for each byte of text; what both hold
/// before does not matter.
pub(crate) fn nesting(
    text: &[u8],
    layout: &Layout,
    starts: &[u64],
    parts: &mut [u64],
    depths: &mut [u64],
) -> Result<Nesting, (usize, Rule)> {
    let loops = find_parts(text, layout, starts, parts)?;
    let mut deepest = 0;
    // Of the part that the walk is in: where it ends, and how deep it goes as far as is known.
    let (mut part_end, mut depth) = (text.len(), 0u64);
    let mut end = text.len();
    while let Some(at) = before(starts, end) {
        let Some(decoded) = instruction(text, layout, at) else {
            break;
        };
        // Of a part that begins at `part_end` or later: what is in the same part counts by itself,
        // and what lies outside of text is a slot.
        let later = |target: i64| match usize::try_from(target) {
            Ok(target) if target >= part_end => depths.get(target).copied().unwrap_or(0),
            _ => 0,
        };
        let goes_on = later((at + decoded.length) as i64);
        let here = match decoded.entry >> CLASS & 7 {
            CLASS_RETURN | CLASS_TRAP => 0,
            CLASS_JUMP => later(target(text, at, &decoded)),
            CLASS_CONDITIONAL => later(target(text, at, &decoded)).max(goes_on),
            CLASS_CALL => {
                let callee = later(target(text, at, &decoded));
                if callee >= u64::from(KERNEL_CALLS) {
                    return Err((at, Rule::KernelDepth));
                }
                goes_on.max(callee + 1)
            }
            _ => goes_on,
        };
        depth = depth.max(here);
        if contains(parts, at) || before(starts, at).is_none() {
            if let Some(part) = depths.get_mut(at..part_end) {
                part.fill(depth);
            }
            deepest = deepest.max(depth);
            (part_end, depth) = (at, 0);
        }
        end = at;
    }
    Ok(Nesting {
        depth: u32::try_from(deepest).unwrap_or(u32::MAX),
        loops,
    })
}

/// Puts the targets of all calls into `parts`, and says whether a jump goes backward. Calls go
/// forward, so when the walk comes to a position it has seen all calls of positions before it.
fn find_parts(
    text: &[u8],
    layout: &Layout,
    starts: &[u64],
    parts: &mut [u64],
) -> Result<bool, (usize, Rule)> {
    parts.fill(0);
    let (mut at, mut part, mut loops) = (0, 0, false);
    while let Some(decoded) = instruction(text, layout, at) {
        if !contains(starts, at) {
            break;
        }
        if contains(parts, at) {
            part = at;
        }
        let class = decoded.entry >> CLASS & 7;
        if matches!(class, CLASS_CALL | CLASS_JUMP | CLASS_CONDITIONAL) {
            let target = target(text, at, &decoded);
            // Slots lie in front of text or behind it, and are no part of it.
            if let Ok(target) = usize::try_from(target)
                && target < text.len()
            {
                match class {
                    CLASS_CALL if target <= at => return Err((at, Rule::KernelCall)),
                    CLASS_CALL => insert(parts, target),
                    _ if target < part => return Err((at, Rule::KernelJump)),
                    _ => loops |= target <= at,
                }
            }
        }
        at += decoded.length;
    }
    Ok(loops)
}

fn instruction(text: &[u8], layout: &Layout, at: usize) -> Option<Decoded> {
    (at < text.len())
        .then(|| decode(&chunk_at(text, at), layout.segment.prefix()))
        .flatten()
}
