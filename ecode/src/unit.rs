//! What a compilation produces: text, constants, data, and what they need to know before they can run.
//!
//! A [`Unit`] is not bound to any place. [`Unit::place`] gives it one, and finds what it calls by name.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::ir::sym;
use crate::names::Name;
use crate::types::Type;
use postern_verifier::relocation::{OutOfRange, Places, Relocation, Section, Sections, relocate};
use postern_x86::Assembler;

/// A function or object of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub section: Section,
    /// Position in the section.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Others may use it: it is not static.
    pub exported: bool,
    /// Of a function: its types as the extension ABI spells them (section 7), or empty if they cannot be said.
    pub signature: String,
}

/// Something that a unit uses and does not define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its name.
    pub name: String,
    /// It is called, or its address is taken; else it is an object.
    pub function: bool,
    /// Of a function: its types as the source declares them, or empty if they cannot be said.
    pub signature: String,
}

/// Machine code with everything around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Machine code, ending with a trap.
    pub text: Vec<u8>,
    /// Constants.
    pub rodata: Vec<u8>,
    /// Initial values.
    pub data: Vec<u8>,
    /// Bytes of zeroed variables.
    pub bss: u32,
    /// Functions and objects.
    pub symbols: Vec<Symbol>,
    /// What others must provide.
    pub imports: Vec<Import>,
    /// Addresses to fill in.
    pub relocations: Vec<Relocation>,
    /// Where the code of a line begins: position in text and line, ascending.
    pub lines: Vec<(u32, u32)>,
}

/// Why a unit cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// Nobody provides this import.
    Unresolved(String),
    /// An address does not fit where it must be written.
    Range,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Unresolved(name) => write!(
                f,
                "nothing provides `{name}`; define it, or grant the service"
            ),
            PlaceError::Range => f.write_str("a part of the unit does not lie in the window"),
        }
    }
}

impl core::error::Error for PlaceError {}

impl Unit {
    /// The unit's text, constants and data as they are at `places`. `resolve` says the window offset of an import.
    pub fn place(
        &self,
        places: &Places,
        mut resolve: impl FnMut(&Import) -> Option<u32>,
    ) -> Result<Placed, PlaceError> {
        let mut placed = Placed {
            text: self.text.clone(),
            rodata: self.rodata.clone(),
            data: self.data.clone(),
        };
        let mut imports = Vec::with_capacity(self.imports.len());
        for import in &self.imports {
            imports
                .push(resolve(import).ok_or_else(|| PlaceError::Unresolved(import.name.clone()))?);
        }
        let sections = Sections {
            text: &mut placed.text,
            rodata: &mut placed.rodata,
            data: &mut placed.data,
        };
        relocate(&self.relocations, places, &imports, |_| None, sections)
            .map_err(|OutOfRange| PlaceError::Range)?;
        Ok(placed)
    }

    /// The symbol of this name.
    pub fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.iter().find(|symbol| symbol.name == name)
    }

    /// The source line of a position in text.
    pub fn line(&self, position: u32) -> Option<u32> {
        let index = self.lines.partition_point(|(at, _)| *at <= position);
        Some(self.lines.get(index.checked_sub(1)?)?.1)
    }
}

/// A unit's bytes at their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Machine code, for the verifier to judge.
    pub text: Vec<u8>,
    /// Constants.
    pub rodata: Vec<u8>,
    /// Initial values.
    pub data: Vec<u8>,
}

/// A function or object of file scope, or a static one of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Global {
    pub name: Name,
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

/// A unit in the making.
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

    /// The position of a string.
    pub fn text_constant(&mut self, bytes: &[u8]) -> u32 {
        let at = self.rodata.len();
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
