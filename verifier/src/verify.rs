//! The judgement of a whole text: one linear pass, then the questions that need all instruction
//! starts.

use crate::bounded::{self, Bounds};
use crate::decode::{Decoded, chunk_at, decode};
use crate::pad;
use crate::pass::{Found, Pass};
use crate::rule::{Rule, Violation};
use crate::starts::{bounded_buffer_len, buffer_len, words};
use crate::table::*;
use crate::window::{GATES, LIMIT, MAX_IMPORTS, MAX_LINKS, MAX_SHIFT, PAGE, SLOT_SIZE, text_start};

/// The segment register whose base is the window's base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Segment {
    /// gs, as user space has it free.
    #[default]
    Gs,
    /// fs, for ring 0 of Linux, where gs is taken.
    Fs,
}

impl Segment {
    /// The override prefix.
    pub const fn prefix(self) -> u8 {
        match self {
            Segment::Gs => 0x65,
            Segment::Fs => 0x64,
        }
    }
}

/// What the text may do besides staying inside its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Everything on the allow list; a deadline bounds the time.
    #[default]
    User,
    /// Branches and calls forward only and no indirect ones, so that text ends by itself.
    Bounded,
}

/// Slots outside text that branches may go to besides gate slots: slot `k` begins at `start + 32
/// k`, as long as a gate slot.
///
/// Whoever verifies with links promises that each of them holds, at every moment at which text can
/// run, instructions that lead only to starts of text that was verified for the same window and the
/// same kind of slots, or trap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Links {
    /// Window offset of the first slot, a multiple of [`SLOT_SIZE`].
    pub start: u32,
    /// Number of slots; at most [`MAX_LINKS`].
    pub count: u32,
}

impl Links {
    /// No slots.
    pub const NONE: Links = Links { start: 0, count: 0 };

    /// The offset behind the last slot.
    const fn end(&self) -> u64 {
        self.start as u64 + self.count as u64 * SLOT_SIZE as u64
    }

    /// Whether `offset` lies in one of the slots.
    fn hold(&self, offset: i64) -> bool {
        offset >= i64::from(self.start) && offset < self.end() as i64
    }
}

/// Where text lies in its window, and what it may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Window offset of the first byte of text.
    pub text: u32,
    /// Window offset of the first gate slot: [`GATES`], or as many pages above it as the image
    /// says.
    pub gates: u32,
    /// Number of gate slots that branches may go to.
    pub imports: u32,
    /// Other slots that branches may go to.
    pub links: Links,
    /// The segment register of memory operands.
    pub segment: Segment,
}

impl Layout {
    /// The layout of an image with `imports` gate slots, gs, the slots at [`GATES`], and text right
    /// after them. More than [`MAX_IMPORTS`] make a layout that [`verify`] refuses.
    pub const fn new(imports: u32) -> Layout {
        let slots = if imports > MAX_IMPORTS {
            MAX_IMPORTS
        } else {
            imports
        };
        Layout {
            text: text_start(slots),
            gates: GATES,
            imports,
            links: Links::NONE,
            segment: Segment::Gs,
        }
    }

    /// The same with slots and text so many pages higher. More than [`MAX_SHIFT`] make a layout
    /// that [`verify`] refuses.
    pub const fn shifted(self, pages: u32) -> Layout {
        let pages = if pages > MAX_SHIFT {
            MAX_SHIFT + 1
        } else {
            pages
        };
        Layout {
            text: self.text.saturating_add(pages * PAGE),
            gates: self.gates.saturating_add(pages * PAGE),
            ..self
        }
    }

    /// The offset behind the last gate slot.
    const fn gates_end(&self) -> u64 {
        self.gates as u64 + self.imports as u64 * SLOT_SIZE as u64
    }

    /// Whether `text_len` bytes of text and the slots fit the window without overlap.
    const fn holds(&self, text_len: usize) -> bool {
        self.imports <= MAX_IMPORTS
            && self.gates >= GATES
            && self.gates <= GATES + MAX_SHIFT * PAGE
            && self.gates % PAGE == GATES % PAGE
            && self.text as u64 >= self.gates_end()
            && self.text as u64 + text_len as u64 <= LIMIT as u64
            && (self.links.count == 0 || self.holds_links(text_len))
    }

    const fn holds_links(&self, text_len: usize) -> bool {
        let Links { start, count } = self.links;
        let below = self.links.end() <= self.text as u64;
        let above = start as u64 >= self.text as u64 + text_len as u64;
        count <= MAX_LINKS
            && start % SLOT_SIZE == 0
            && start as u64 >= self.gates_end()
            && self.links.end() <= LIMIT as u64
            && (below || above)
    }
}

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
    /// [`Profile::Bounded`] only: instructions on the longest path from any start to a return or
    /// trap.
    pub longest_path: Option<u32>,
    /// [`Profile::Bounded`] only: how deep calls nest at most, those of gate slots among them.
    pub call_depth: Option<u32>,
}

/// Judges `text`. `buffer` has [`buffer_len`] words ([`bounded_buffer_len`] for
/// [`Profile::Bounded`]); what it holds before does not matter. After success its first part holds
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
    // What lies behind a link may come back, so no path through one is the longest.
    let endless = profile == Profile::Bounded && layout.links.count != 0;
    if endless || !layout.holds(text.len()) {
        return Err(refuse(0, Rule::Layout));
    }
    let needed = match profile {
        Profile::User => buffer_len(text.len()),
        Profile::Bounded => bounded_buffer_len(text.len()),
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
    let longest = match profile {
        Profile::User => None,
        Profile::Bounded => {
            let found = bounded::longest_path(text, layout, starts, paths, bounds);
            Some(found.map_err(|(at, rule)| refuse(at, rule))?)
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
        longest_path: longest.map(|path| path.instructions),
        call_depth: longest.map(|path| path.depth),
    })
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

/// What lies outside of text and may be branched to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotKind {
    Gate,
    Link,
}

/// Whether the branch target, relative to text and outside of it, is the start of a slot that the
/// layout has.
pub(crate) fn to_slot(layout: &Layout, target: i64) -> Result<SlotKind, Rule> {
    let offset = target + i64::from(layout.text);
    if layout.links.hold(offset) {
        let into = offset - i64::from(layout.links.start);
        return match into % i64::from(SLOT_SIZE) {
            0 => Ok(SlotKind::Link),
            _ => Err(Rule::BranchToLink),
        };
    }
    let into = offset - i64::from(layout.gates);
    let slots = i64::from(MAX_IMPORTS * SLOT_SIZE);
    if into < 0 || into >= slots || target >= 0 {
        return Err(Rule::BranchOutside);
    }
    let slot = into / i64::from(SLOT_SIZE);
    if into % i64::from(SLOT_SIZE) == 0 && slot < i64::from(layout.imports) {
        Ok(SlotKind::Gate)
    } else {
        Err(Rule::BranchToGate)
    }
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
    let segment = layout.segment.prefix();
    let mut at = 0;
    while at < text.len() {
        let chunk = chunk_at(text, at);
        let decoded = decode(&chunk, segment)?;
        if matches!(
            decoded.entry >> CLASS & 7,
            CLASS_CONDITIONAL | CLASS_JUMP | CLASS_CALL
        ) {
            let target =
                at as i64 + decoded.length as i64 + i64::from(displacement(text, at, &decoded));
            let inside = target >= 0 && target < text.len() as i64;
            if inside && !crate::starts::contains(starts, target as usize) {
                return Some(at);
            }
        }
        at += decoded.length;
    }
    Some(0)
}

/// The start of the instruction that the byte at `position` belongs to.
fn containing(text: &[u8], segment: Segment, position: usize) -> usize {
    let mut at = 0;
    while let Some(decoded) = decode(&chunk_at(text, at), segment.prefix()) {
        if at + decoded.length > position {
            break;
        }
        at += decoded.length;
    }
    at
}
