//! An object in the making, before its symbols have names and its code is whole.

use alloc::vec::Vec;

use crate::ir::sym;
use crate::names::Name;
use crate::types::Type;
use postern_verifier::relocation::Section;
use postern_x86::Assembler;

/// A function or object of file scope, or a static one of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Global {
    pub name: Name,
    /// What it is called outside of the source, or nothing if that is its name.
    pub label: Name,
    pub ty: Type,
    pub at: u32,
    pub function: bool,
    /// Nobody outside the source can use it.
    pub is_static: bool,
    /// It belongs to a block.
    pub in_block: bool,
    /// Declared without `extern` and without a value.
    pub tentative: bool,
    pub used: bool,
    /// What the declarations ask for beyond the type's alignment.
    pub align: u32,
    /// Where it is, if it is defined here.
    pub section: Option<Section>,
    pub offset: u32,
    pub size: u32,
}

/// An address inside data: the symbol's number as in [`crate::ir::sym`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    pub at: u32,
    pub symbol: u32,
    pub addend: i64,
}

/// An object in the making.
#[derive(Debug, Default)]
pub(crate) struct Building {
    /// Text, and the addresses inside it; symbols are numbers as in [`crate::ir::sym`].
    pub asm: Assembler,
    pub rodata: Vec<u8>,
    pub data: Vec<u8>,
    pub bss: u64,
    pub globals: Vec<Global>,
    pub rodata_references: Vec<Reference>,
    pub data_references: Vec<Reference>,
    /// Positions in text and in the source.
    pub lines: Vec<(u32, u32)>,
    recent: Vec<(u64, u32, u32)>,
}

/// Floating constants that are looked at before a new one is made.
const RECENT: usize = 32;

impl Building {
    pub fn reset(&mut self) {
        self.asm.clear();
        self.rodata.clear();
        self.data.clear();
        self.bss = 0;
        self.globals.clear();
        self.rodata_references.clear();
        self.data_references.clear();
        self.lines.clear();
        self.recent.clear();
    }

    pub fn add(&mut self, global: Global) -> u32 {
        self.globals.push(global);
        self.globals.len() as u32 - 1
    }

    /// The position of a constant of `size` bytes.
    pub fn constant(&mut self, bits: u64, size: u32) -> u32 {
        if let Some((.., at)) = self
            .recent
            .iter()
            .rev()
            .take(RECENT)
            .find(|(b, s, _)| (*b, *s) == (bits, size))
        {
            return *at;
        }
        let at = self.rodata.len().next_multiple_of(size as usize);
        self.rodata.resize(at, 0);
        self.rodata
            .extend_from_slice(&bits.to_le_bytes()[..size as usize]);
        self.recent.push((bits, size, at as u32));
        at as u32
    }

    /// The position of a string whose elements have this size.
    pub fn text_constant(&mut self, bytes: &[u8], unit: u32) -> u32 {
        let at = self.rodata.len().next_multiple_of(unit as usize);
        self.rodata.resize(at, 0);
        self.rodata.extend_from_slice(bytes);
        at as u32
    }
}

/// The global that a symbol number stands for.
pub(crate) fn global_of(symbol: u32) -> Option<usize> {
    (sym::GLOBAL..sym::FRAME)
        .contains(&symbol)
        .then(|| (symbol - sym::GLOBAL) as usize)
}
