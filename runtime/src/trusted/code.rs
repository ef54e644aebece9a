//! The code area of a namespace: text that comes while threads run in the window.
//!
//! A memory file holds link slots, text, the slots' targets and constants, in this order. The window maps slots and text executable
//! and never writable, targets and constants readable only; the host writes through one other mapping, at a random address that no
//! extension can reach, and the file is sealed so that no further writable mapping can be made.
//!
//! Invariants, from which `docs/src/internals/namespaces.md` argues:
//! - Text is written only as [`Area::judge`] accepted it, for the place where it is written, with the slots that exist.
//! - Of slots and text only that much is mapped as was in use: there, where no text is, and between any two, stands `CC`.
//! - A slot's instructions never change once made. They jump to what the slot's target says: a start of text that is placed, or
//!   the slot's own trap. Targets are data, changed by one aligned store.
//! - Text has its landing pads only from [`Area::open_pads`] on, when all threads see the rest of it. Before, nothing leads there.
//! - Text that has had its pads is removed only while nobody is inside the domain and nobody can enter: any thread inside may jump to
//!   a pad whenever it likes, whether a target leads there or not.

use super::inside::Nobody;
use super::machine;
use super::map::{self, MapError, Protection};
use super::memory;
use postern_verifier::window::{FILL, PAD, SLOT_SIZE};
use postern_verifier::{Facts, Layout, Links, Profile, Segment, Starts, Violation};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where in a slot its trap is: behind pad and jump.
pub(crate) const TRAP: u32 = 16;

/// Where the parts of an area lie in the window. All are multiples of a page, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
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
    /// The offset of a slot.
    pub(crate) fn slot(&self, number: u32) -> u32 {
        self.start + number * SLOT_SIZE
    }

    pub(crate) fn text(&self) -> Range<u32> {
        let start = self.slot(self.slots);
        start..start + self.text
    }

    fn targets(&self) -> Range<u32> {
        let start = self.text().end;
        start..start + (self.slots * 8).next_multiple_of(4096)
    }

    pub(crate) fn constants(&self) -> Range<u32> {
        let start = self.targets().end;
        start..start + self.constants
    }

    /// Bytes of all parts.
    pub(crate) fn bytes(&self) -> u32 {
        self.constants().end - self.start
    }
}

/// Text that the verifier has accepted for its place.
pub(crate) struct Judged {
    at: u32,
    text: Arc<[u8]>,
    starts: Vec<u64>,
    pub(crate) facts: Facts,
}

impl Judged {
    /// A place where this text may be entered.
    pub(crate) fn start(&self, offset: u32) -> Option<Start> {
        let starts = Starts::new(&self.starts, self.text.len(), self.at);
        starts.contains(offset).then_some(Start(offset))
    }
}

/// A place where verified text may be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start(u32);

impl Start {
    /// One of the image's, of which the verifier found these.
    pub(crate) fn of_image(starts: &Starts<'_>, offset: u32) -> Option<Start> {
        starts.contains(offset).then_some(Start(offset))
    }
}

/// Text that is placed.
struct Placed {
    text: Arc<[u8]>,
    /// Slots that lead into it.
    linked: u32,
    /// It has its landing pads.
    open: bool,
}

/// The code area.
pub(crate) struct Area {
    plan: Plan,
    /// Address of the host's mapping, and of the window.
    alias: u64,
    window: u64,
    /// Offset and number of the gate slots.
    gates: (u32, u32),
    /// Ends of what is mapped executable of slots and of text.
    open: [u32; 2],
    /// Slots that were made before the last barrier.
    seen: u32,
    /// Where each slot that is made leads; 0 is its trap.
    targets: Vec<u32>,
    placed: BTreeMap<u32, Placed>,
    constants: BTreeMap<u32, Arc<[u8]>>,
}

impl Area {
    /// Makes an area in the window at address `window`, whose image has gate slots at this offset, so many. The window's range is the
    /// caller's, and nobody uses it.
    pub(crate) fn new(plan: Plan, window: u64, gates: (u32, u32)) -> Result<Area, MapError> {
        machine::register_code_barrier()
            .map_err(|error| failed("register for membarrier", error))?;
        let bytes = plan.bytes() as usize;
        let alias = random_reservation(bytes)?;
        // The mappings keep the file, so that a namespace needs no descriptor.
        new_file(bytes)
            .and_then(|file| map_data(&plan, alias, window, &file))
            .inspect_err(|_| map::release(alias as *mut u8, bytes))?;
        let area = Area {
            plan,
            alias,
            window,
            gates,
            open: [plan.start, plan.text().start],
            seen: 0,
            targets: Vec::new(),
            placed: BTreeMap::new(),
            constants: BTreeMap::new(),
        };
        Ok(area)
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Slots that are made.
    pub(crate) fn slots(&self) -> u32 {
        self.targets.len() as u32
    }

    /// Makes some more slots, which lead to their traps. False if there can be none.
    pub(crate) fn make_slots(&mut self) -> bool {
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
    pub(crate) fn barrier(&mut self) -> std::io::Result<()> {
        machine::code_barrier()?;
        self.seen = self.slots();
        Ok(())
    }

    /// Whether every thread sees the instructions of this slot.
    pub(crate) fn is_seen(&self, slot: u32) -> bool {
        slot < self.seen
    }

    /// Where a slot leads, if not to its trap.
    pub(crate) fn target(&self, slot: u32) -> Option<Start> {
        let offset = *self.targets.get(slot as usize)?;
        (offset != 0).then_some(Start(offset))
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
        let place = (self.window + u64::from(from)) as usize;
        map::protect(place, (to - from) as usize, Protection::ReadExecute)?;
        self.open[part] = to;
        Ok(())
    }

    fn write_slot(&self, number: u32) {
        let at = self.plan.slot(number);
        let jump_end = at + PAD.len() as u32 + 6;
        let mut code = [FILL; SLOT_SIZE as usize];
        code[..8].copy_from_slice(&PAD);
        // jmp *target(%rip)
        code[8..10].copy_from_slice(&[0xff, 0x25]);
        let distance = self.target_place(number) - jump_end;
        code[10..14].copy_from_slice(&distance.to_le_bytes());
        // Before the instructions that read it.
        self.store_target(number);
        self.write(at, &code);
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
        let place = self.alias + u64::from(self.target_place(number) - self.plan.start);
        // SAFETY: the place lies in the host's mapping of the area, which lives as long as `self`; it is a multiple of 8, and only this
        // function writes it.
        let target = unsafe { AtomicU64::from_ptr(place as *mut u64) };
        target.store(self.window + u64::from(offset), Ordering::SeqCst);
    }

    /// Judges text for the place `at`, with the slots that are made.
    pub(crate) fn judge(&self, at: u32, text: Vec<u8>) -> Result<Judged, Violation> {
        let count = self.slots();
        let start = self.plan.start;
        let (gates, imports) = self.gates;
        let layout = Layout {
            text: at,
            gates,
            imports,
            links: Links { start, count },
            segment: Segment::Gs,
        };
        let mut starts = vec![0; postern_verifier::buffer_len(text.len())];
        let facts = postern_verifier::verify(&text, &layout, Profile::User, &mut starts)?;
        let text = text.into();
        Ok(Judged {
            at,
            text,
            starts,
            facts,
        })
    }

    /// Writes text to its place, if there is none. Nobody can be led there before [`Area::link`].
    #[must_use]
    pub(crate) fn place(&mut self, judged: &Judged) -> bool {
        let range = judged.at..judged.at + judged.text.len() as u32;
        // `CC` stays on both sides.
        let wide = range.start.saturating_sub(1)..range.end.saturating_add(1);
        let room = self.plan.text();
        let inside = room.start < range.start && range.end < room.end;
        if !inside || overlaps(&self.placed, &wide, |p| p.text.len()) {
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
        let placed = Placed {
            text: judged.text.clone(),
            linked: 0,
            open: false,
        };
        self.placed.insert(judged.at, placed);
        true
    }

    /// Gives text its landing pads: one byte each, so that a pad is there or not. All threads see the rest: [`Area::barrier`] was called.
    pub(crate) fn open_pads(&mut self, at: u32) {
        let Some(placed) = self.placed.get_mut(&at) else {
            return;
        };
        placed.open = true;
        let text = placed.text.clone();
        for pad in pads(&text) {
            self.write(at + pad as u32, &PAD[..1]);
        }
    }

    /// Leads a slot to a start, or to its trap. False if it does not exist, or the text of the start is gone.
    #[must_use]
    pub(crate) fn link(&mut self, slot: u32, start: Option<Start>) -> bool {
        let Some(&old) = self.targets.get(slot as usize) else {
            return false;
        };
        let new = start.map_or(0, |start| start.0);
        if self.plan.text().contains(&new) {
            match self.text_at(new).filter(|text| text.open) {
                Some(text) => text.linked += 1,
                None => return false,
            }
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
        ((offset - at) < text.text.len() as u32).then_some(text)
    }

    /// The bytes of text from `offset` on.
    pub(crate) fn text(&self, offset: u32) -> Option<&[u8]> {
        let (&at, placed) = self.placed.range(..=offset).next_back()?;
        placed.text.get((offset - at) as usize..)
    }

    /// Takes text away while nobody is inside. False if a slot leads there.
    #[must_use]
    pub(crate) fn remove(&mut self, at: u32, _: &Nobody) -> bool {
        self.take_away(at, true)
    }

    /// Takes text away that never had its pads, so that nobody could ever be in it. False if it had.
    #[must_use]
    pub(crate) fn remove_closed(&mut self, at: u32) -> bool {
        self.take_away(at, false)
    }

    fn take_away(&mut self, at: u32, open: bool) -> bool {
        let may = |text: &&Placed| text.linked == 0 && (open || !text.open);
        let Some(text) = self.placed.get(&at).filter(may) else {
            return false;
        };
        let fill = vec![FILL; text.text.len()];
        self.write(at, &fill);
        self.placed.remove(&at);
        true
    }

    /// Writes constants, where there are none.
    #[must_use]
    pub(crate) fn place_constants(&mut self, at: u32, bytes: &Arc<[u8]>) -> bool {
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
    pub(crate) fn remove_constants(&mut self, at: u32) {
        self.constants.remove(&at);
    }

    fn write(&self, offset: u32, bytes: &[u8]) {
        // The file cannot shrink, and the callers keep to the plan.
        let _ = memory::write_at(self.alias, offset - self.plan.start, bytes);
    }

    /// In a forked child: a file of its own with the same contents, for the parent goes on writing the other. No other thread is here.
    pub(crate) fn renew(&mut self) -> Result<(), MapError> {
        let file = new_file(self.plan.bytes() as usize)?;
        let end = std::mem::replace(&mut self.open, [self.plan.start, self.plan.text().start]);
        map_data(&self.plan, self.alias, self.window, &file)?;
        self.open(0, end[0])?;
        self.open(1, end[1])?;
        for slot in 0..self.slots() {
            self.write_slot(slot);
        }
        for (at, placed) in &self.placed {
            self.write(*at, &placed.text);
        }
        for (at, bytes) in &self.constants {
            self.write(*at, bytes);
        }
        Ok(())
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        map::release(self.alias as *mut u8, self.plan.bytes() as usize);
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
fn map_data(plan: &Plan, alias: u64, window: u64, file: &File) -> Result<(), MapError> {
    let bytes = plan.bytes() as usize;
    let code = (plan.text().end - plan.start) as usize;
    let (host, start) = (alias as usize, window as usize + plan.start as usize);
    map::share(host, bytes, Protection::ReadWrite, file.as_fd(), 0)?;
    machine::seal_writers(file).map_err(|e| failed("seal a file", e))?;
    // Mapped after the seal, so nobody can give it the right to write. In a forked child the parent's pages are still there.
    map::share(start, code, Protection::None, file.as_fd(), 0)?;
    let (rest, at) = (bytes - code, code as u64);
    map::share(start + code, rest, Protection::Read, file.as_fd(), at)?;
    map::hide(host, bytes);
    map::hide(start, bytes);
    Ok(())
}

/// Address space at a place that nobody can guess.
fn random_reservation(bytes: usize) -> Result<u64, MapError> {
    /// Below the end of user space on every processor.
    const SPACE: u64 = 1 << 46;
    for _ in 0..8 {
        let Ok(random) = machine::random() else { break };
        let start = ((u64::from_le_bytes(random) % SPACE) & !0xfff) | (1 << 40);
        if map::reserve_at(start as usize, bytes).is_ok() {
            return Ok(start);
        }
    }
    map::reserve(bytes).map(|start| start as u64)
}
