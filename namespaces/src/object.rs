//! Code that is not bound to any place yet, whoever made it: what units are made of.

use crate::CreateError;
use postern_verifier::relocation::{OutOfRange, Places, Relocation, Section, Sections, relocate};

/// A function or object that others may use.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub name: String,
    pub section: Section,
    pub offset: u32,
    pub size: u32,
    pub exported: bool,
    /// Empty if unknown.
    pub signature: String,
}

/// Something that others must provide.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub name: String,
    /// Empty if unknown.
    pub signature: String,
}

/// The parts of an object, its names, and the addresses that are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    pub text: Vec<u8>,
    pub rodata: Vec<u8>,
    pub data: Vec<u8>,
    pub bss: u32,
    pub symbols: Vec<Symbol>,
    pub imports: Vec<Import>,
    pub relocations: Vec<Relocation>,
    /// Positions in text and lines, ascending.
    pub lines: Vec<(u32, u32)>,
}

impl Object {
    /// Fills in the addresses. `imports` says where each import is, `slot` the slot of an exported function that begins at a position in
    /// text: so whatever refers to it follows when it is replaced.
    pub(crate) fn place(
        &mut self,
        places: &Places,
        imports: &[u32],
        slot: impl Fn(u32) -> Option<u32>,
    ) -> Result<(), CreateError> {
        let sections = Sections {
            text: &mut self.text,
            rodata: &mut self.rodata,
            data: &mut self.data,
        };
        relocate(&self.relocations, places, imports, slot, sections)
            .map_err(|OutOfRange| CreateError::Address)
    }

    /// The exported functions: name, position, signature.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &Symbol> {
        let exported = |s: &&Symbol| s.exported && s.section == Section::Text;
        self.symbols.iter().filter(exported)
    }

    /// The variables, in a form that says whether two objects have the same ones at the same places.
    pub(crate) fn variables(&self) -> Variables {
        let is = |s: &&Symbol| matches!(s.section, Section::Data | Section::Bss);
        let list = self.symbols.iter().filter(is).map(|s| {
            let bss = s.section == Section::Bss;
            (s.name.clone(), bss, s.offset, s.size)
        });
        Variables {
            data: self.data.len() as u32,
            bss: self.bss,
            list: list.collect(),
        }
    }
}

/// The variables of an object: sizes of data and bss, and name, whether in bss, position and size of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    data: u32,
    bss: u32,
    list: Vec<(String, bool, u32, u32)>,
}

impl Variables {
    pub(crate) fn is_empty(&self) -> bool {
        self.data == 0 && self.bss == 0
    }
}

#[cfg(feature = "ecode")]
impl From<postern_ecode::Unit> for Object {
    fn from(unit: postern_ecode::Unit) -> Object {
        Object {
            text: unit.text,
            rodata: unit.rodata,
            data: unit.data,
            bss: unit.bss,
            symbols: unit
                .symbols
                .into_iter()
                .map(|s| Symbol {
                    name: s.name,
                    section: s.section,
                    offset: s.offset,
                    size: s.size,
                    exported: s.exported,
                    signature: s.signature,
                })
                .collect(),
            imports: unit
                .imports
                .into_iter()
                .map(|i| Import {
                    name: i.name,
                    signature: i.signature,
                })
                .collect(),
            relocations: unit.relocations,
            lines: unit.lines,
        }
    }
}
