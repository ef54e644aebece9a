//! The code in the making, and what is still open in it.

use alloc::vec::Vec;

use crate::label::Branch;
use crate::operand::Symbol;

/// What the four bytes of a [`Reference`] become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// The symbol's address plus the addend.
    Absolute,
    /// The same, less the address right behind the four bytes: the distance of a call.
    Relative,
}

/// Four bytes of the code that hold a symbol's address. Until somebody knows that, they hold the
/// addend alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where they begin.
    pub at: u32,
    /// Whose address.
    pub symbol: Symbol,
    /// What is added to it.
    pub addend: i32,
    /// How they count.
    pub kind: ReferenceKind,
}

/// Writes instructions one behind the other. Positions in the code are offsets from its start; it
/// may have 4 GiB.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<u8>,
    references: Vec<Reference>,
    /// Where each label is, or [`UNBOUND`](crate::label::UNBOUND).
    pub(crate) labels: Vec<u32>,
    pub(crate) branches: Vec<Branch>,
}

/// A state that [`Assembler::rewind`] goes back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    code: usize,
    references: usize,
}

impl Assembler {
    /// One without code.
    pub const fn new() -> Assembler {
        Assembler {
            code: Vec::new(),
            references: Vec::new(),
            labels: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// The code so far.
    #[inline]
    pub fn code(&self) -> &[u8] {
        &self.code
    }

    /// The code so far, for changes.
    #[inline]
    pub fn code_mut(&mut self) -> &mut [u8] {
        &mut self.code
    }

    /// The code; nothing is left of it here.
    pub fn take_code(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.code)
    }

    /// The position of the next instruction.
    #[inline]
    pub fn position(&self) -> u32 {
        self.code.len() as u32
    }

    /// Where symbols' addresses are wanted, in ascending order.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// Forgets everything, but keeps the memory.
    pub fn clear(&mut self) {
        self.rewind(Mark {
            code: 0,
            references: 0,
        });
    }

    /// What there is now.
    pub fn mark(&self) -> Mark {
        Mark {
            code: self.code.len(),
            references: self.references.len(),
        }
    }

    /// Drops what came after `mark`, and all labels.
    pub fn rewind(&mut self, mark: Mark) {
        self.code.truncate(mark.code);
        self.references.truncate(mark.references);
        self.clear_labels();
    }

    /// Appends bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.code.extend_from_slice(bytes);
    }

    /// Appends `fill` until the position is a multiple of `to`.
    pub fn align(&mut self, to: usize, fill: u8) {
        let length = self.code.len().next_multiple_of(to);
        self.code.resize(length, fill);
    }

    /// Appends the first `length` of these bytes. Copying all of them and dropping some is faster
    /// than a copy of variable length.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8; 16], length: usize) {
        let at = self.code.len();
        self.code.extend_from_slice(bytes);
        self.code.truncate(at + length);
    }

    /// Notes that the four bytes `behind` the present position hold a symbol's address.
    #[inline]
    pub(crate) fn refer(&mut self, behind: u32, symbol: Symbol, addend: i32, kind: ReferenceKind) {
        let at = self.position() + behind;
        self.references.push(Reference {
            at,
            symbol,
            addend,
            kind,
        });
    }

    /// Writes four bytes at a position where there are four already.
    #[inline]
    pub(crate) fn patch(&mut self, at: u32, value: u32) {
        let at = at as usize;
        self.code[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}
