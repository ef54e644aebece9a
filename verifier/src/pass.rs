//! The pass over a text: every instruction judged once, its start and its branch target noted.
//!
//! Decoding is a chain: where an instruction starts is known when the one before it is decoded, and
//! that takes some forty cycles in which the processor is mostly idle. A landing pad may stand only
//! at an instruction start, so long text is cut at pads and its parts are decoded side by side.
//! Each part must end exactly where the next one begins. If anything is wrong the text is judged
//! again from the front, so that the first violation is reported.

use crate::decode::{CHUNK, Decoded, chunk_at, common, decode, opcode, rare, target, x87_allowed};
use crate::explain::explain;
use crate::layout::{Layout, Profile, SlotKind, to_slot};
use crate::rule::Rule;
use crate::starts::insert;
use crate::table::*;
use crate::window::FILL;
use crate::{guard, pad};

/// A position in text, and the rule that the instruction there breaks.
type Broken = (usize, Rule);

/// Instructions that are decoded before their branches are looked at: fewer where stacks are small.
const BATCH: usize = if cfg!(feature = "small-stack") { 4 } else { 64 };
/// Bytes of text that a batch needs ahead, whatever it decodes.
const AHEAD: usize = BATCH * 15 + CHUNK;
/// Parts of a text that are decoded side by side.
const LANES: usize = 3;

/// What the pass finds out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Entries of all instructions, or-ed.
    pub seen: u64,
    /// There is an indirect branch.
    pub indirect: bool,
    /// A direct branch goes to a gate slot.
    pub gates: bool,
    /// A direct branch goes to a link slot.
    pub links: bool,
    /// Number of instructions.
    pub count: u32,
}

/// One of the parts that are decoded side by side.
struct Lane {
    /// Where it is.
    at: usize,
    /// Entries of its instructions, or-ed.
    seen: u64,
    /// Its instructions that ask for more than a look at their operands, with their positions; the
    /// first `waiting` count.
    aside: [(usize, Decoded); BATCH],
    waiting: usize,
}

impl Lane {
    fn new(at: usize) -> Lane {
        Lane {
            at,
            seen: 0,
            aside: [(
                0,
                Decoded {
                    length: 0,
                    entry: 0,
                },
            ); BATCH],
            waiting: 0,
        }
    }

    /// Judges one instruction.
    #[inline(always)]
    fn step(&mut self, text: &[u8], segment: u8, starts: &mut [u64]) -> Result<(), Broken> {
        let at = self.at;
        let Some(bytes) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
            return Err((at, Rule::Truncated));
        };
        let decoded = match common(u64::from_le_bytes(*bytes), segment) {
            Some(decoded) => decoded,
            None => {
                let chunk = chunk_at(text, at);
                rare(&chunk, segment).ok_or_else(|| (at, explain(&chunk, segment)))?
            }
        };
        insert(starts, at);
        self.seen |= decoded.entry;
        self.aside[self.waiting % BATCH] = (at, decoded);
        self.waiting += (decoded.entry >> ASIDE) as usize;
        self.at = at + decoded.length;
        Ok(())
    }
}

/// The pass over `text`. `starts` and `targets` are empty at first.
pub(crate) struct Pass<'a> {
    pub text: &'a [u8],
    pub layout: &'a Layout,
    pub profile: Profile,
    pub starts: &'a mut [u64],
    pub targets: &'a mut [u64],
    pub found: Found,
}

impl Pass<'_> {
    /// Judges all instructions.
    pub(crate) fn run(&mut self) -> Result<(), Broken> {
        if self
            .cuts()
            .is_some_and(|cuts| self.side_by_side(cuts).is_ok())
        {
            return Ok(());
        }
        self.starts.fill(0);
        self.targets.fill(0);
        self.found = Found::default();
        match self.stretch(0, self.text.len())? {
            Some(at) => Err((at, Rule::FallsThrough)),
            None => Ok(()),
        }
    }

    /// Where the parts begin, at about equal distances: at pads, or else behind some fill, where
    /// functions begin. `None` if text is short or has too few of them. A bad cut costs time, no
    /// more: the part before it does not end there.
    fn cuts(&self) -> Option<[usize; LANES]> {
        let mut cuts = [0; LANES];
        let length = self.text.len() / LANES;
        if length < 4 * AHEAD {
            return None;
        }
        for (lane, cut) in cuts.iter_mut().enumerate().skip(1) {
            // Not far behind, or the parts are too unequal to be worth it.
            let from = lane * length;
            let near = self.text.get(..from + length / 4)?;
            *cut = pad::find(near, from).or_else(|| behind_fill(near, from))?;
        }
        Some(cuts)
    }

    /// Judges the parts that begin at `cuts`.
    fn side_by_side(&mut self, cuts: [usize; LANES]) -> Result<(), Broken> {
        let ends: [usize; LANES] =
            core::array::from_fn(|lane| *cuts.get(lane + 1).unwrap_or(&self.text.len()));
        let mut at = cuts;
        while at
            .iter()
            .zip(ends)
            .all(|(at, end)| end.saturating_sub(*at) >= AHEAD)
        {
            self.batch(&mut at)?;
        }
        // One part is done; two of the others may go on together.
        let ([mut a, mut b, mut c], [end_a, end_b, end_c]) = (at, ends);
        self.pair((&mut a, end_a), (&mut b, end_b))?;
        self.pair((&mut b, end_b), (&mut c, end_c))?;
        self.pair((&mut c, end_c), (&mut a, end_a))?;
        for (at, end) in [(a, end_a), (b, end_b), (c, end_c)] {
            let falls = self.stretch(at, end)?;
            if let (Some(at), true) = (falls, end == self.text.len()) {
                return Err((at, Rule::FallsThrough));
            }
        }
        Ok(())
    }

    /// Judges two parts, each from its position towards its end, until one of them is near it.
    fn pair(
        &mut self,
        first: (&mut usize, usize),
        second: (&mut usize, usize),
    ) -> Result<(), Broken> {
        let mut at = [*first.0, *second.0];
        while at
            .iter()
            .zip([first.1, second.1])
            .all(|(at, end)| end.saturating_sub(*at) >= AHEAD)
        {
            self.batch(&mut at)?;
        }
        [*first.0, *second.0] = at;
        Ok(())
    }

    /// Judges the instructions from `at` up to `end`, which the last must not cross. If it can go
    /// on to the next one, that is the result.
    fn stretch(&mut self, at: usize, end: usize) -> Result<Option<usize>, Broken> {
        let mut at = [at];
        while end.saturating_sub(at[0]) >= AHEAD {
            let before = at;
            if self.batch(&mut at).is_err() {
                // A batch looks at branches last: one by one, what is wrong first is found first.
                at = before;
                break;
            }
        }
        let [mut at] = at;
        let segment = self.layout.segment.prefix();
        let mut falls = None;
        while at < end {
            let chunk = chunk_at(self.text, at);
            let decoded = decode(&chunk, segment).ok_or_else(|| (at, explain(&chunk, segment)))?;
            if decoded.length > end - at {
                return Err((at, Rule::Truncated));
            }
            insert(self.starts, at);
            self.found.seen |= decoded.entry;
            self.found.count += 1;
            falls = self.special(at, &decoded)?.then_some(at);
            at += decoded.length;
        }
        Ok(falls)
    }

    /// Judges [`BATCH`] instructions from each position of `lanes` on, all at least [`AHEAD`]
    /// before the end of text, and moves the positions. Instructions that ask for more than a look
    /// at their operands are set aside first, so that the loop has no branch that is hard to
    /// predict.
    fn batch<const N: usize>(&mut self, lanes: &mut [usize; N]) -> Result<(), Broken> {
        let segment = self.layout.segment.prefix();
        let mut lane = lanes.map(Lane::new);
        for _ in 0..BATCH {
            // Spelled out, so that the lanes' positions stay in registers.
            if let Some(lane) = lane.get_mut(0) {
                lane.step(self.text, segment, self.starts)?;
            }
            if let Some(lane) = lane.get_mut(1) {
                lane.step(self.text, segment, self.starts)?;
            }
            if let Some(lane) = lane.get_mut(2) {
                lane.step(self.text, segment, self.starts)?;
            }
        }
        for (lane, at) in lane.iter().zip(lanes) {
            *at = lane.at;
            self.found.seen |= lane.seen;
            self.found.count += BATCH as u32;
            for (at, decoded) in lane.aside.iter().take(lane.waiting) {
                self.special(*at, decoded)?;
            }
        }
        Ok(())
    }

    /// Judges where a direct branch goes.
    #[inline(always)]
    fn direct(&mut self, at: usize, decoded: &Decoded) -> Result<(), Broken> {
        let target = target(self.text, at, decoded);
        if target >= 0 && target < self.text.len() as i64 {
            if self.profile == Profile::Bounded && target <= at as i64 {
                return Err((at, Rule::BoundedBackward));
            }
            insert(self.targets, target as usize);
        } else {
            match to_slot(self.layout, target).map_err(|rule| (at, rule))? {
                SlotKind::Gate => self.found.gates = true,
                SlotKind::Link => self.found.links = true,
            }
        }
        Ok(())
    }

    /// The rest of the judgement where operands do not tell everything; returns whether the next
    /// instruction can follow.
    #[inline(always)]
    fn special(&mut self, at: usize, decoded: &Decoded) -> Result<bool, Broken> {
        let class = decoded.entry >> CLASS & 7;
        // Most are these, and one test for all three is easier to predict than a switch.
        if class.wrapping_sub(CLASS_CONDITIONAL) <= CLASS_CALL - CLASS_CONDITIONAL {
            self.direct(at, decoded)?;
            return Ok(class != CLASS_JUMP);
        }
        match class {
            0 => Ok(true),
            CLASS_RETURN | CLASS_TRAP => Ok(false),
            CLASS_X87 if x87_allowed(opcode(self.text, at)) => Ok(true),
            CLASS_X87 => Err((at, Rule::NotAllowed)),
            // Opcode FFh: inc and dec, or the branch of a guarded sequence.
            _ if opcode(self.text, at).1 >> 3 & 7 < 2 => Ok(true),
            _ => {
                match self.profile {
                    Profile::User => {}
                    Profile::Bounded => return Err((at, Rule::BoundedIndirect)),
                    Profile::Kernel => return Err((at, Rule::KernelIndirect)),
                }
                if !guard::close(self.text, self.layout.segment.prefix(), self.starts, at) {
                    return Err((at, Rule::Unguarded));
                }
                self.found.indirect = true;
                Ok(opcode(self.text, at).1 >> 3 & 7 == 2)
            }
        }
    }
}

/// The first position from `from` on that has four bytes of fill before it and something else at
/// it.
fn behind_fill(text: &[u8], from: usize) -> Option<usize> {
    let position = text
        .get(from..)?
        .windows(5)
        .position(|bytes| matches!(bytes, [FILL, FILL, FILL, FILL, next] if *next != FILL))?;
    Some(from + position + 4)
}

/// What a pass found, with its starts and its targets.
#[cfg(test)]
type Judged = Result<(Found, std::vec::Vec<u64>), Broken>;

/// What judging `text` in parts says, if it is long enough for that.
#[cfg(test)]
pub(crate) fn judged_in_parts(text: &[u8], layout: &Layout) -> Option<Judged> {
    judged(text, layout, |pass| {
        pass.cuts().map(|cuts| pass.side_by_side(cuts))
    })
}

/// What judging `text` from front to end says.
#[cfg(test)]
pub(crate) fn judged_whole(text: &[u8], layout: &Layout) -> Judged {
    let verdict = judged(text, layout, |pass| {
        Some(
            pass.stretch(0, pass.text.len())
                .and_then(|falls| match falls {
                    Some(at) => Err((at, Rule::FallsThrough)),
                    None => Ok(()),
                }),
        )
    });
    verdict.unwrap_or(Err((0, Rule::Empty)))
}

#[cfg(test)]
fn judged(
    text: &[u8],
    layout: &Layout,
    judge: impl FnOnce(&mut Pass) -> Option<Result<(), Broken>>,
) -> Option<Judged> {
    let mut buffer = std::vec![0; 2 * text.len().div_ceil(64)];
    let (starts, targets) = buffer.split_at_mut(text.len().div_ceil(64));
    let mut pass = Pass {
        text,
        layout,
        profile: Profile::User,
        starts,
        targets,
        found: Found::default(),
    };
    let verdict = judge(&mut pass)?;
    let found = pass.found;
    Some(verdict.map(|()| (found, buffer)))
}
