//! Where text lies in its window, what lies around it, and what of that branches may go to.
//!
//! Invariant: a target that [`to_slot`] takes is the first byte of a slot that the layout has.

use crate::rule::Rule;
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
    /// What may run in ring 0 on the kernel's own stack: general registers only, memory through fs,
    /// no indirect branches, and no recursion, so that the deepest call is known. Loops are
    /// allowed; text without one has its longest path told, too.
    Kernel,
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
    /// after them. More than [`MAX_IMPORTS`] make a layout that [`crate::verify`] refuses.
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
    /// that [`crate::verify`] refuses.
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
    pub(crate) const fn holds(&self, text_len: usize) -> bool {
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
