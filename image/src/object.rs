//! Relocatable objects: code that is not bound to any place yet, whoever made it, with its names
//! and the addresses that are open.
//!
//! E-code makes them of source and a namespace of ELF files; they are linked to image files, or
//! added to a window. Nothing here is believed when code is judged: the verifier looks at the text
//! once it has its place.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use postern_verifier::relocation::{OutOfRange, Places, Relocation, Section, Sections, relocate};

/// A function or variable of an object.
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
    /// Of a function: its types as the extension ABI spells them (section 7), or empty if they are
    /// not known.
    pub signature: String,
}

/// Something that an object uses and does not define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its name.
    pub name: String,
    /// It may be a function: it is called or its address is taken, or the object does not say. Else
    /// it is a variable.
    pub function: bool,
    /// Of a function: its types as the source declares them, or empty if they are not known.
    pub signature: String,
}

/// Machine code with everything around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Machine code, ending with a trap.
    pub text: Vec<u8>,
    /// Constants.
    pub rodata: Vec<u8>,
    /// Initial values.
    pub data: Vec<u8>,
    /// Bytes of zeroed variables.
    pub bss: u32,
    /// Functions and variables.
    pub symbols: Vec<Symbol>,
    /// What others must provide.
    pub imports: Vec<Import>,
    /// Addresses to fill in.
    pub relocations: Vec<Relocation>,
    /// Where the code of a line begins: position in text and line, ascending.
    pub lines: Vec<(u32, u32)>,
}

/// Why an object cannot be placed.
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
            PlaceError::Range => f.write_str("a part of the object does not lie in the window"),
        }
    }
}

impl core::error::Error for PlaceError {}

impl Object {
    /// The object's text, constants and data as they are at `places`. `resolve` says the window
    /// offset of an import.
    ///
    /// # Errors
    /// An import that nothing provides, or an address that does not fit.
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

    /// As [`Object::place`], in the object itself. `imports` says where each import is, `slot` the
    /// slot of an exported function that begins at a position in text: so whatever refers to it
    /// follows when it is replaced.
    ///
    /// # Errors
    /// An address does not fit. Those before it are filled in.
    pub fn relocate(
        &mut self,
        places: &Places,
        imports: &[u32],
        slot: impl Fn(u32) -> Option<u32>,
    ) -> Result<(), OutOfRange> {
        let sections = Sections {
            text: &mut self.text,
            rodata: &mut self.rodata,
            data: &mut self.data,
        };
        relocate(&self.relocations, places, imports, slot, sections)
    }

    /// The exported functions.
    pub fn functions(&self) -> impl Iterator<Item = &Symbol> {
        let exported = |s: &&Symbol| s.exported && s.section == Section::Text;
        self.symbols.iter().filter(exported)
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

/// An object's bytes at their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Machine code, for the verifier to judge.
    pub text: Vec<u8>,
    /// Constants.
    pub rodata: Vec<u8>,
    /// Initial values.
    pub data: Vec<u8>,
}
