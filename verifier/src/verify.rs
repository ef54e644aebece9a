//! The judgement of a whole text: one linear pass, then the questions that need all instruction
//! starts.

use crate::bounded::{self, Bounds};
use crate::decode::{first_where, target};
use crate::layout::{Layout, Profile, Segment};
use crate::nesting::{Nesting, nesting};
use crate::pad;
use crate::pass::{Found, Pass};
use crate::rule::{Rule, Violation};
use crate::starts::{bounded_buffer_len, buffer_len, words};
use crate::table::*;

/// What verified text can touch and do: what gates must clear and restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// An instruction uses the x87 unit.
    pub x87: bool,
    /// An instruction uses vector registers (of any width).
    pub xmm: bool,
    /// An instruction depends on MXCSR or raises flags of it: floating-point arithmetic, comparison
    /// or conversion in vector registers.
    pub float: bool,
    /// An instruction uses bits 128 to 255 of a vector register (other than clearing them).
    pub ymm: bool,
    /// There is an indirect branch, so any landing pad can be reached.
    pub indirect: bool,
    /// A direct branch goes to a gate slot.
    pub gates: bool,
    /// A direct branch goes to a link slot.
    pub links: bool,
    /// Number of instructions.
    pub instructions: u32,
    /// Instructions on the longest path from any start to a return or trap: of
    /// [`Profile::Bounded`], and of [`Profile::Kernel`] if nothing loops and there are fewer than
    /// 2^32 - 1.
    pub longest_path: Option<u32>,
    /// How deep calls nest at most, those of gate slots among them: of [`Profile::Bounded`] and
    /// [`Profile::Kernel`].
    pub call_depth: Option<u32>,
}

/// Judges `text`. `buffer` has [`buffer_len`] words ([`bounded_buffer_len`] for other profiles than
/// [`Profile::User`]); what it holds before does not matter. After success its first part holds
/// the instruction starts: see [`crate::Starts`].
///
/// Accepted text, mapped read-only at `layout.text` with no alias that can be written, reads,
/// writes and jumps only inside its window and its gate slots, as `docs/src/internals/abi.md`
/// describes them. Time is linear in the length of text.
pub fn verify(
    text: &[u8],
    layout: &Layout,
    profile: Profile,
    buffer: &mut [u64],
) -> Result<Facts, Violation> {
    judge(text, layout, profile, Bounds::MAX, buffer)
}

/// As [`verify`] with [`Profile::Bounded`], and refuses text whose longest path or deepest call is
/// above `bounds`.
pub fn verify_within(
    text: &[u8],
    layout: &Layout,
    bounds: Bounds,
    buffer: &mut [u64],
) -> Result<Facts, Violation> {
    judge(text, layout, Profile::Bounded, bounds, buffer)
}

fn judge(
    text: &[u8],
    layout: &Layout,
    profile: Profile,
    bounds: Bounds,
    buffer: &mut [u64],
) -> Result<Facts, Violation> {
    let refuse = |at: usize, rule| Violation {
        offset: layout.text.saturating_add(at as u32),
        rule,
    };
    if text.is_empty() {
        return Err(refuse(0, Rule::Empty));
    }
    // What lies behind a link may come back, so no path through one is the longest or the deepest.
    let endless = profile != Profile::User && layout.links.count != 0;
    let taken = profile == Profile::Kernel && layout.segment != Segment::Fs;
    if endless || taken || !layout.holds(text.len()) {
        return Err(refuse(0, Rule::Layout));
    }
    let needed = match profile {
        Profile::User => buffer_len(text.len()),
        Profile::Bounded | Profile::Kernel => bounded_buffer_len(text.len()),
    };
    let too_small = refuse(0, Rule::BufferTooSmall);
    let buffer = buffer.get_mut(..needed).ok_or(too_small)?;
    let (starts, rest) = buffer
        .split_at_mut_checked(words(text.len()))
        .ok_or(too_small)?;
    let (targets, paths) = rest
        .split_at_mut_checked(words(text.len()))
        .ok_or(too_small)?;
    starts.fill(0);
    targets.fill(0);

    let mut pass = Pass {
        text,
        layout,
        profile,
        starts,
        targets,
        found: Found::default(),
    };
    pass.run().map_err(|(at, rule)| refuse(at, rule))?;
    let found = pass.found;
    if let Some(at) = pad::stray(text, starts) {
        return Err(refuse(containing(text, layout.segment, at), Rule::StrayPad));
    }
    if let Some(at) = misplaced(text, layout, starts, targets) {
        return Err(refuse(at, Rule::BranchMisplaced));
    }
    let (longest_path, call_depth) = match profile {
        Profile::User => (None, None),
        Profile::Bounded => {
            let found = bounded::longest_path(text, layout, starts, paths, bounds);
            let path = found.map_err(|(at, rule)| refuse(at, rule))?;
            (Some(path.instructions), Some(path.depth))
        }
        Profile::Kernel => {
            if found.seen & BEYOND_GENERAL != 0 {
                return Err(refuse(vector(text, layout.segment), Rule::KernelVector));
            }
            // The targets have been looked at, so their room is free.
            let found = nesting(text, layout, starts, targets, paths);
            let Nesting { depth, loops } = found.map_err(|(at, rule)| refuse(at, rule))?;
            let path = (!loops)
                .then(|| bounded::longest_path(text, layout, starts, paths, Bounds::MAX).ok())
                .flatten();
            (path.map(|path| path.instructions), Some(depth))
        }
    };
    Ok(Facts {
        x87: found.seen & X87 != 0,
        xmm: found.seen & XMM != 0,
        float: found.seen & FLOAT != 0,
        ymm: found.seen & YMM != 0,
        indirect: found.indirect,
        gates: found.gates,
        links: found.links,
        instructions: found.count,
        longest_path,
        call_depth,
    })
}

/// The position of a branch whose target is not a start, if there is one.
fn misplaced(text: &[u8], layout: &Layout, starts: &[u64], targets: &[u64]) -> Option<usize> {
    let mut stray = 0;
    for (start, target) in starts.iter().zip(targets) {
        stray |= target & !start;
    }
    if stray == 0 {
        return None;
    }
    // Walk again to name the branch.
    let branch = first_where(text, layout.segment.prefix(), |at, decoded| {
        let class = decoded.entry >> CLASS & 7;
        matches!(class, CLASS_CONDITIONAL | CLASS_JUMP | CLASS_CALL)
            && usize::try_from(target(text, at, decoded))
                .is_ok_and(|target| target < text.len() && !crate::starts::contains(starts, target))
    });
    Some(branch.unwrap_or(0))
}

/// The start of the instruction that the byte at `position` belongs to.
fn containing(text: &[u8], segment: Segment, position: usize) -> usize {
    let found = first_where(text, segment.prefix(), |at, decoded| {
        at + decoded.length > position
    });
    found.unwrap_or(0)
}

/// The start of the first instruction that touches more than general registers.
fn vector(text: &[u8], segment: Segment) -> usize {
    let found = first_where(text, segment.prefix(), |_, decoded| {
        decoded.entry & BEYOND_GENERAL != 0
    });
    found.unwrap_or(0)
}

/// Vector and x87 registers, and what is computed in them.
const BEYOND_GENERAL: u64 = X87 | XMM | YMM | FLOAT;
