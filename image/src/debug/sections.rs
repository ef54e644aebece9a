//! The section headers of a file: where symbol table and debug information are.
//!
//! A linked extension needs none of this to run; whatever is damaged here is simply absent.

use crate::elf::{u16_at, u32_at, u64_at};

/// Size of an ELF-64 section header in bytes.
pub(super) const SECTION_HEADER_SIZE: u64 = 64;
/// `SHT_SYMTAB`.
pub(super) const SHT_SYMTAB: u32 = 2;
/// `SHT_NOBITS`: no bytes in the file.
const SHT_NOBITS: u32 = 8;
/// `SHF_WRITE`.
pub(super) const SHF_WRITE: u64 = 1;
/// `SHF_EXECINSTR`.
pub(super) const SHF_EXECINSTR: u64 = 4;
/// `SHF_COMPRESSED`; such sections are left alone.
const SHF_COMPRESSED: u64 = 0x800;

/// A section header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    name: u32,
    pub kind: u32,
    pub flags: u64,
    pub address: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u32,
}

/// The section headers of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sections<'a> {
    bytes: &'a [u8],
    table: u64,
    count: u16,
    names: &'a [u8],
}

impl<'a> Sections<'a> {
    /// Finds the section headers; `None` if the file has none.
    pub fn parse(bytes: &'a [u8]) -> Option<Sections<'a>> {
        if bytes.get(..6)? != b"\x7fELF\x02\x01" || u16_at(bytes, 58)? != SECTION_HEADER_SIZE as u16
        {
            return None;
        }
        let sections = Sections {
            bytes,
            table: u64_at(bytes, 40)?,
            count: u16_at(bytes, 60)?,
            names: &[],
        };
        let names = sections.get(u32::from(u16_at(bytes, 62)?))?;
        Some(Sections {
            names: sections.data(&names)?,
            ..sections
        })
    }

    /// The section header with an index.
    pub fn get(&self, index: u32) -> Option<Section> {
        if index >= u32::from(self.count) {
            return None;
        }
        let at = self
            .table
            .checked_add(u64::from(index) * SECTION_HEADER_SIZE)?;
        // Half of the address space away, sums of field offsets cannot overflow.
        if at > u64::MAX / 2 {
            return None;
        }
        Some(Section {
            name: u32_at(self.bytes, at)?,
            kind: u32_at(self.bytes, at + 4)?,
            flags: u64_at(self.bytes, at + 8)?,
            address: u64_at(self.bytes, at + 16)?,
            offset: u64_at(self.bytes, at + 24)?,
            size: u64_at(self.bytes, at + 32)?,
            link: u32_at(self.bytes, at + 40)?,
        })
    }

    /// All section headers.
    pub fn iter(&self) -> impl Iterator<Item = Section> + '_ {
        (0..u32::from(self.count)).map_while(|index| self.get(index))
    }

    /// The section with a name. Each comparison looks at no more bytes than `name` has.
    pub fn named(&self, name: &str) -> Option<Section> {
        let matches = |section: &Section| {
            let text = self.names.get(section.name as usize..).unwrap_or_default();
            text.strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.first() == Some(&0))
        };
        self.iter().find(matches)
    }

    /// A section's bytes.
    pub fn data(&self, section: &Section) -> Option<&'a [u8]> {
        if section.kind == SHT_NOBITS || section.flags & SHF_COMPRESSED != 0 {
            return None;
        }
        let start = usize::try_from(section.offset).ok()?;
        let end = start.checked_add(usize::try_from(section.size).ok()?)?;
        self.bytes.get(start..end)
    }
}
