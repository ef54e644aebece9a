//! Code that is not bound to any place yet, whoever made it: what units are made of.

use crate::namespace::CreateError;

/// A part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Text,
    Constants,
    Data,
    /// Zeroed data.
    Bss,
}

/// How an address is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// Four bytes: the distance from behind the address that [`Relocation::at`] is.
    Relative32,
    /// Four bytes that count modulo 2^32.
    Absolute32,
    Absolute64,
}

/// What an address is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Section(Section),
    /// Number of an import.
    Import(u32),
}

/// An address to fill in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    pub section: Section,
    pub at: u32,
    pub width: Width,
    pub target: Target,
    pub addend: i64,
}

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
    pub constants: Vec<u8>,
    pub data: Vec<u8>,
    pub bss: u32,
    pub symbols: Vec<Symbol>,
    pub imports: Vec<Import>,
    pub relocations: Vec<Relocation>,
    /// Positions in text and lines, ascending.
    pub lines: Vec<(u32, u32)>,
}

/// Where the parts lie in the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub text: u32,
    pub constants: u32,
    pub data: u32,
    pub bss: u32,
}

impl Object {
    /// Fills in the addresses. `resolve` says where an import is, `slot` the slot of an exported function that begins at a position in
    /// text: so whatever refers to it follows when it is replaced.
    pub(crate) fn place(
        &mut self,
        places: &Places,
        imports: &[u32],
        slot: impl Fn(u32) -> Option<u32>,
    ) -> Result<(), CreateError> {
        let start = |section| match section {
            Section::Text => places.text,
            Section::Constants => places.constants,
            Section::Data => places.data,
            Section::Bss => places.bss,
        };
        for relocation in std::mem::take(&mut self.relocations) {
            let function = || u32::try_from(relocation.addend).ok().and_then(&slot);
            let address = match relocation.target {
                Target::Section(Section::Text) => match function() {
                    Some(slot) => slot.into(),
                    None => i64::from(places.text) + relocation.addend,
                },
                Target::Section(section) => i64::from(start(section)) + relocation.addend,
                Target::Import(index) => {
                    let at = imports.get(index as usize).ok_or(CreateError::Address)?;
                    i64::from(*at) + relocation.addend
                }
            };
            let here = i64::from(start(relocation.section)) + i64::from(relocation.at);
            let bytes = match relocation.section {
                Section::Text => &mut self.text,
                Section::Constants => &mut self.constants,
                Section::Data | Section::Bss => &mut self.data,
            };
            let (value, length) = match relocation.width {
                Width::Absolute64 => (address, 8),
                // Addresses count modulo 2^32.
                Width::Absolute32 => (address, 4),
                Width::Relative32 => {
                    let distance = address - here - 4;
                    i32::try_from(distance).map_err(|_| CreateError::Address)?;
                    (distance, 4)
                }
            };
            let at = relocation.at as usize;
            let place = bytes.get_mut(at..at.saturating_add(length));
            place
                .ok_or(CreateError::Address)?
                .copy_from_slice(&value.to_le_bytes()[..length]);
        }
        Ok(())
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
        use postern_ecode as e;
        let section = |section| match section {
            e::Section::Text => Section::Text,
            e::Section::Rodata => Section::Constants,
            e::Section::Data => Section::Data,
            e::Section::Bss => Section::Bss,
        };
        Object {
            text: unit.text,
            constants: unit.rodata,
            data: unit.data,
            bss: unit.bss,
            symbols: unit
                .symbols
                .into_iter()
                .map(|s| Symbol {
                    name: s.name,
                    section: section(s.section),
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
            relocations: unit
                .relocations
                .into_iter()
                .map(|r| Relocation {
                    section: section(r.section),
                    at: r.at,
                    width: match r.width {
                        e::Width::Relative32 => Width::Relative32,
                        e::Width::Absolute32 => Width::Absolute32,
                        e::Width::Absolute64 => Width::Absolute64,
                    },
                    target: match r.target {
                        e::Target::Section(s) => Target::Section(section(s)),
                        e::Target::Import(index) => Target::Import(index),
                    },
                    addend: r.addend,
                })
                .collect(),
            lines: unit.lines,
        }
    }
}
