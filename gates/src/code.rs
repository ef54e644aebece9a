//! The code area of a namespace: text that comes while threads run in the window.
//!
//! A memory file holds link slots, text, the slots' targets and constants, in this order. The
//! window maps slots and text executable and never writable, targets and constants readable only;
//! the host writes through one other mapping, at a random address that no extension can reach, and
//! the file is sealed so that no further writable mapping can be made.
//!
//! Invariants, from which `docs/src/internals/namespaces.md` argues:
//! - Text is written only as [`CodeArena::judge`] accepted it, for the place where it is written,
//!   with the slots that exist: there is no other way to a [`Judged`], and no other than
//!   [`CodeArena::place`] for it.
//! - The window's pages of the area are the area's alone, from when it is made until the window is
//!   wiped ([`CodePart`]).
//! - Of slots and text only that much is mapped as was in use: there, where no text is, and between
//!   any two, stands `CC`.
//! - A slot's instructions never change once made. They jump to what the slot's target says: a
//!   start of text that is placed, or the slot's own trap. Targets are data, changed by one aligned
//!   store.
//! - Text has its landing pads only from [`CodeArena::open_pads`] on, when all threads see the rest
//!   of it. Before, nothing leads there.
//! - Text that has had its pads is removed only while nobody is inside the domain and nobody can
//!   enter: any thread inside may jump to a pad whenever it likes, whether a target leads there or
//!   not.

use super::control::Control;
use super::gate;
use super::inside::Quiescent;
use super::machine::{self, InChild};
use super::map::{self, MapError, Mapping, Prot};
use super::text::Text;
use super::window::{CodePart, Window};
use postern_verifier::window::{FILL, PAD, SLOT_SIZE};
use postern_verifier::{Facts, Layout, Links, Profile, Segment, Starts, Violation};
use postern_x86::{Assembler, Mem};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where in a slot its trap is: behind pad and jump.
pub const TRAP: u32 = 16;

/// Where the parts of an area lie in the window. All are multiples of a page, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Offset of the first slot.
    pub start: u32,
    /// How many slots there can be.
    pub slots: u32,
    /// Bytes of text.
    pub text: u32,
    /// Bytes of constants.
    pub constants: u32,
}

impl Plan {
    /// Whether all of it lies in a window: nothing below is cut to 32 bits then.
    fn fits(&self) -> bool {
        let slots = u64::from(self.slots) * u64::from(SLOT_SIZE + 8) + 4096;
        let bytes = slots + u64::from(self.text) + u64::from(self.constants);
        u64::from(self.start) + bytes <= u64::from(u32::MAX)
    }

    /// The offset of a slot.
    pub fn slot(&self, number: u32) -> u32 {
        self.start + number * SLOT_SIZE
    }

    /// Offsets of text.
    pub fn text(&self) -> Range<u32> {
        let start = self.slot(self.slots);
        start..start + self.text
    }

    fn targets(&self) -> Range<u32> {
        let start = self.text().end;
        start..start + (self.slots * 8).next_multiple_of(4096)
    }

    /// Offsets of constants.
    pub fn constants(&self) -> Range<u32> {
        let start = self.targets().end;
        start..start + self.constants
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u32 {
        self.constants().end - self.start
    }
}

/// Text that the verifier has accepted for its place in one area.
pub struct Judged {
    area: u64,
    at: u32,
    text: Arc<[u8]>,
    starts: Box<[u64]>,
    /// What the verifier found out.
    pub facts: Facts,
}

impl Judged {
    /// Whether this text may be entered there.
    pub fn is_start(&self, offset: u32) -> bool {
        Starts::new(&self.starts, self.text.len(), self.at).contains(offset)
    }
}

/// Text that is placed.
struct Placed {
    judged: Judged,
    /// Slots that lead into it.
    linked: u32,
    /// It has its landing pads.
    open: bool,
    /// How many barriers there were when it was written.
    since: u64,
}

impl Placed {
    fn text(&self) -> &[u8] {
        &self.judged.text
    }
}

/// The code area.
pub struct CodeArena {
    /// No other area has it.
    number: u64,
    /// The domain's number.
    domain: u32,
    /// Fact bits of the domain, with which its gates are chosen: text of other facts is not placed.
    facts: u32,
    plan: Plan,
    /// The host's mapping, and the window's pages.
    alias: Mapping,
    part: CodePart,
    /// The window's image.
    image: Arc<Text>,
    /// Ends of what is mapped executable of slots and of text.
    open: [u32; 2],
    /// Slots that were made before the last barrier, and how many barriers there were.
    seen: u32,
    barriers: u64,
    /// Where each slot that is made leads; 0 is its trap.
    targets: Vec<u32>,
    placed: BTreeMap<u32, Placed>,
    constants: BTreeMap<u32, Arc<[u8]>>,
}

impl CodeArena {
    /// Makes an area in a window that has an image and no area yet; `control` is that of the domain
    /// whose window this is.
    ///
    /// # Errors
    /// The range is not free, or somebody uses the window all the time; the kernel refused.
    pub fn new(plan: Plan, window: &Window, control: &Control) -> Result<CodeArena, MapError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        machine::register_code_barrier()
            .map_err(|error| failed("register for membarrier", error))?;
        let bytes = plan.bytes() as usize;
        if !plan.fits() {
            return Err(MapError::Taken);
        }
        let (part, image) = window.claim_code(plan.start, plan.constants().end, control)?;
        let alias = Mapping::hidden(bytes)?;
        // The mappings keep the file, so that a namespace needs no descriptor.
        map_data(&plan, &alias, &part, &new_file(bytes)?)?;
        control.has_slots(plan.start, plan.text().start);
        let area = CodeArena {
            number: MADE.fetch_add(1, Ordering::Relaxed),
            domain: control.generation(),
            facts: control.facts(),
            open: [plan.start, plan.text().start],
            plan,
            alias,
            part,
            image,
            seen: 0,
            barriers: 0,
            targets: Vec::new(),
            placed: BTreeMap::new(),
            constants: BTreeMap::new(),
        };
        Ok(area)
    }

    /// Where its parts lie.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Slots that are made.
    pub fn slots(&self) -> u32 {
        self.targets.len() as u32
    }

    /// Makes some more slots, which lead to their traps. False if there can be none.
    pub fn make_slots(&mut self) -> bool {
        /// So that a slot is mostly there, and seen by all threads, before it is wanted.
        const BATCH: u32 = 64;
        let (from, to) = (self.slots(), self.plan.slots.min(self.slots() + BATCH));
        if from == to || self.open(0, self.plan.slot(to)).is_err() {
            return false;
        }
        for number in from..to {
            self.targets.push(0);
            self.write_slot(number);
        }
        true
    }

    /// Has every thread of the process see the text and the slots that were written before.
    pub fn barrier(&mut self) -> std::io::Result<()> {
        machine::code_barrier()?;
        self.seen = self.slots();
        self.barriers += 1;
        Ok(())
    }

    /// Whether every thread sees the instructions of this slot.
    pub fn is_seen(&self, slot: u32) -> bool {
        slot < self.seen
    }

    /// Where a slot leads, if not to its trap.
    pub fn target(&self, slot: u32) -> Option<u32> {
        let offset = *self.targets.get(slot as usize)?;
        (offset != 0).then_some(offset)
    }

    /// Has slots (0) or text (1) mapped up to `end`, which lies in the plan.
    fn open(&mut self, part: usize, end: u32) -> Result<(), MapError> {
        /// A mapping grows by so much at once.
        const STEP: u32 = 64 << 10;
        let limit = [self.plan.text().start, self.plan.text().end][part];
        let from = self.open[part];
        if end <= from {
            return Ok(());
        }
        let to = end.next_multiple_of(STEP).min(limit);
        map::room(3)?;
        self.write(from, &vec![FILL; (to - from) as usize]);
        // SAFETY: these pages of the file have nothing but slots, text that was judged for its
        // place here, and traps; and nobody but this area writes them.
        unsafe { self.part.execute(from, to)? };
        self.open[part] = to;
        Ok(())
    }

    fn write_slot(&self, number: u32) {
        let at = self.plan.slot(number);
        let jump_end = at + PAD.len() as u32 + 6;
        let mut asm = Assembler::new();
        asm.bytes(&PAD);
        asm.jmp_rm(Mem::rip((self.target_place(number) - jump_end) as i32));
        asm.align(SLOT_SIZE as usize, FILL);
        // Before the instructions that read it.
        self.store_target(number);
        self.write(at, asm.code());
    }

    fn target_place(&self, number: u32) -> u32 {
        self.plan.targets().start + 8 * number
    }

    /// Shows the window's threads where a slot leads.
    fn store_target(&self, number: u32) {
        let offset = match self.targets[number as usize] {
            0 => self.plan.slot(number) + TRAP,
            offset => offset,
        };
        let at = (self.target_place(number) - self.plan.start) as usize;
        assert!(at + 8 <= self.alias.bytes());
        let place = (self.alias.address() + at) as *mut u64;
        // SAFETY: the place lies in the host's mapping of the area, which lives as long as `self`;
        // it is a multiple of 8, and only this function writes it.
        let target = unsafe { AtomicU64::from_ptr(place) };
        target.store(self.part.base() + u64::from(offset), Ordering::SeqCst);
    }

    /// Judges text for the place `at`, with the slots that are made.
    pub fn judge(&self, at: u32, text: Vec<u8>) -> Result<Judged, Violation> {
        let count = self.slots();
        let start = self.plan.start;
        let layout = Layout {
            text: at,
            gates: self.image.layout().gates,
            imports: self.image.slots(),
            links: Links { start, count },
            segment: Segment::Gs,
        };
        let mut starts = vec![0; postern_verifier::buffer_len(text.len())];
        let facts = postern_verifier::verify(&text, &layout, Profile::User, &mut starts)?;
        // What else the verifier needed is not looked at again.
        starts.truncate(postern_verifier::buffer_len(text.len()) / 2);
        Ok(Judged {
            area: self.number,
            at,
            text: text.into(),
            starts: starts.into(),
            facts,
        })
    }

    /// Writes text to its place, if there is none. Nobody can be led there before
    /// [`CodeArena::link`].
    #[must_use]
    pub fn place(&mut self, judged: Judged) -> bool {
        let range = judged.at..judged.at + judged.text.len() as u32;
        // `CC` stays on both sides.
        let wide = range.start.saturating_sub(1)..range.end.saturating_add(1);
        let room = self.plan.text();
        let inside = room.start < range.start && range.end < room.end;
        let ours = judged.area == self.number;
        let known = gate::fact_bits(&judged.facts) & !self.facts == 0;
        if !ours || !known || !inside || overlaps(&self.placed, &wide, |p| p.text().len()) {
            return false;
        }
        if self.open(1, wide.end).is_err() {
            return false;
        }
        let mut closed = judged.text.to_vec();
        for at in pads(&judged.text) {
            closed[at] = FILL;
        }
        self.write(judged.at, &closed);
        let at = judged.at;
        let placed = Placed {
            judged,
            linked: 0,
            open: false,
            since: self.barriers,
        };
        self.placed.insert(at, placed);
        true
    }

    /// Gives text its landing pads: one byte each, so that a pad is there or not. Nothing happens
    /// before all threads see the rest: after [`CodeArena::place`] comes [`CodeArena::barrier`].
    pub fn open_pads(&mut self, at: u32) {
        let seen = |placed: &&mut Placed| placed.since < self.barriers;
        let Some(placed) = self.placed.get_mut(&at).filter(seen) else {
            return;
        };
        placed.open = true;
        let text = Arc::clone(&placed.judged.text);
        for pad in pads(&text) {
            self.write(at + pad as u32, &PAD[..1]);
        }
    }

    /// Leads a slot to a start, or to its trap. False if it does not exist, or no text may be
    /// entered there.
    #[must_use]
    pub fn link(&mut self, slot: u32, start: Option<u32>) -> bool {
        let Some(&old) = self.targets.get(slot as usize) else {
            return false;
        };
        let new = start.unwrap_or(0);
        if self.plan.text().contains(&new) {
            let may = |text: &&mut Placed| text.open && text.judged.is_start(new);
            match self.text_at(new).filter(may) {
                Some(text) => text.linked += 1,
                None => return false,
            }
        } else if start.is_some() && !self.image.is_start(new) {
            return false;
        }
        self.targets[slot as usize] = new;
        self.store_target(slot);
        if let Some(text) = self.text_at(old) {
            text.linked -= 1;
        }
        true
    }

    fn text_at(&mut self, offset: u32) -> Option<&mut Placed> {
        let (&at, text) = self.placed.range_mut(..=offset).next_back()?;
        ((offset - at) < text.text().len() as u32).then_some(text)
    }

    /// The bytes of text from `offset` on.
    pub fn text(&self, offset: u32) -> Option<&[u8]> {
        let (&at, placed) = self.placed.range(..=offset).next_back()?;
        placed.text().get((offset - at) as usize..)
    }

    /// Takes text away while nobody is inside the domain. False if a slot leads there.
    #[must_use]
    pub fn remove(&mut self, at: u32, nobody: &Quiescent) -> bool {
        nobody.is_of(self.domain) && self.take_away(at, true)
    }

    /// Takes text away that never had its pads, so that nobody could ever be in it. False if it
    /// had.
    #[must_use]
    pub fn remove_closed(&mut self, at: u32) -> bool {
        self.take_away(at, false)
    }

    fn take_away(&mut self, at: u32, open: bool) -> bool {
        let may = |text: &&Placed| text.linked == 0 && (open || !text.open);
        let Some(text) = self.placed.get(&at).filter(may) else {
            return false;
        };
        let fill = vec![FILL; text.text().len()];
        self.write(at, &fill);
        self.placed.remove(&at);
        true
    }

    /// Writes constants, where there are none.
    #[must_use]
    pub fn place_constants(&mut self, at: u32, bytes: &Arc<[u8]>) -> bool {
        let (range, room) = (at..at + bytes.len() as u32, self.plan.constants());
        let inside = room.start <= range.start && range.end <= room.end;
        if !inside || overlaps(&self.constants, &range, |bytes| bytes.len()) {
            return false;
        }
        self.write(at, bytes);
        self.constants.insert(at, bytes.clone());
        true
    }

    /// Forgets constants.
    pub fn remove_constants(&mut self, at: u32) {
        self.constants.remove(&at);
    }

    fn write(&self, offset: u32, bytes: &[u8]) {
        // The file cannot shrink, and the callers keep to the plan.
        let _ = self.alias.write((offset - self.plan.start) as usize, bytes);
    }

    /// In a forked child: a file of its own with the same contents, for the parent goes on writing
    /// the other. No other thread is here.
    pub fn renew(&mut self, _: &InChild) -> Result<(), MapError> {
        let file = new_file(self.plan.bytes() as usize)?;
        let end = std::mem::replace(&mut self.open, [self.plan.start, self.plan.text().start]);
        map_data(&self.plan, &self.alias, &self.part, &file)?;
        self.open(0, end[0])?;
        self.open(1, end[1])?;
        for slot in 0..self.slots() {
            self.write_slot(slot);
        }
        for (at, placed) in &self.placed {
            self.write(*at, placed.text());
        }
        for (at, bytes) in &self.constants {
            self.write(*at, bytes);
        }
        Ok(())
    }
}

/// Where landing pads stand.
fn pads(text: &[u8]) -> impl Iterator<Item = usize> {
    let windows = text.windows(PAD.len()).enumerate();
    windows.filter(|(_, w)| **w == PAD).map(|(at, _)| at)
}

/// Whether one of the pieces touches `range`.
fn overlaps<T>(pieces: &BTreeMap<u32, T>, range: &Range<u32>, len: impl Fn(&T) -> usize) -> bool {
    let last = pieces.range(..range.end).next_back();
    last.is_some_and(|(&at, piece)| at + len(piece) as u32 > range.start)
}

fn failed(what: &'static str, error: std::io::Error) -> MapError {
    map::failed(what, 0, error)
}

fn new_file(bytes: usize) -> Result<File, MapError> {
    let failed = |error| map::failed("make a file", bytes, error);
    let file = machine::memory_file(c"postern-code", true).map_err(failed)?;
    machine::size(&file, bytes as u64).map_err(failed)?;
    Ok(file)
}

/// Maps the host's side, seals the file, and then maps targets and constants into the window.
fn map_data(plan: &Plan, alias: &Mapping, part: &CodePart, file: &File) -> Result<(), MapError> {
    let code = plan.text().end;
    alias.share(file.as_fd(), Prot::ReadWrite)?;
    machine::seal_writers(file).map_err(|e| failed("seal a file", e))?;
    // Mapped after the seal, so nobody can give it the right to write. In a forked child the
    // parent's pages are still there.
    part.share(plan.start, code, Prot::None, file.as_fd())?;
    part.share(code, plan.constants().end, Prot::Read, file.as_fd())?;
    alias.hide();
    part.hide();
    Ok(())
}
