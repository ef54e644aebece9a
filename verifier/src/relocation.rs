//! Addresses that are open in code and data, and how they are filled in once all parts have their
//! places.
//!
//! Compilers and loaders use this. No verdict depends on it: what it makes is judged like any other
//! text. It stands in this crate because all of them import this one.

/// A part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// Machine code; 16-byte aligned.
    Text,
    /// Constants, never written; 16-byte aligned.
    Rodata,
    /// Variables with initial values; 16-byte aligned.
    Data,
    /// Variables that begin as zero; 16-byte aligned.
    Bss,
}

/// How an address is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Four bytes: the distance from behind them.
    Relative32,
    /// Four bytes: the offset in the window. They count modulo 2^32.
    Absolute32,
    /// Eight bytes: the offset in the window.
    Absolute64,
}

/// What an address is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The beginning of a section of the same object.
    Section(Section),
    /// Number of an import of the object.
    Import(u32),
}

/// An address that must be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The section whose bytes are changed: text, constants or data.
    pub section: Section,
    /// Position of the bytes in it.
    pub at: u32,
    /// How to write it.
    pub width: Width,
    /// From where.
    pub target: Target,
    /// How far from there.
    pub addend: i64,
}

/// Offsets in the window at which the sections are to lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Of the text.
    pub text: u32,
    /// Of the constants.
    pub rodata: u32,
    /// Of the data.
    pub data: u32,
    /// Of the zeroed data.
    pub bss: u32,
}

impl Places {
    /// Where a section lies.
    pub fn start(&self, section: Section) -> u32 {
        match section {
            Section::Text => self.text,
            Section::Rodata => self.rodata,
            Section::Data => self.data,
            Section::Bss => self.bss,
        }
    }
}

/// The bytes of an object's sections.
#[derive(Debug)]
pub struct Sections<'a> {
    /// Machine code.
    pub text: &'a mut [u8],
    /// Constants.
    pub rodata: &'a mut [u8],
    /// Initial values.
    pub data: &'a mut [u8],
}

/// An address does not fit where it must be written, or that lies outside of its section, or
/// nothing has the import's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

/// Fills in the addresses. `imports` says where each import lies, `slot` the offset that stands for
/// a function that begins at a position in text, if it has one: so whatever refers to the function
/// follows when it is replaced.
///
/// # Errors
/// If one of them cannot be written. Those before it are.
pub fn relocate(
    relocations: &[Relocation],
    places: &Places,
    imports: &[u32],
    slot: impl Fn(u32) -> Option<u32>,
    sections: Sections<'_>,
) -> Result<(), OutOfRange> {
    for relocation in relocations {
        let Relocation { addend, .. } = *relocation;
        let function = match relocation.target {
            Target::Section(Section::Text) => u32::try_from(addend).ok().and_then(&slot),
            _ => None,
        };
        let from = match relocation.target {
            Target::Section(section) => places.start(section),
            Target::Import(index) => *imports.get(index as usize).ok_or(OutOfRange)?,
        };
        let address = match function {
            Some(slot) => Some(slot.into()),
            None => i64::from(from).checked_add(addend),
        };
        let address = address.ok_or(OutOfRange)?;
        let (value, length) = match relocation.width {
            Width::Absolute64 => (address, 8),
            Width::Absolute32 => (address, 4),
            Width::Relative32 => {
                let here = i64::from(places.start(relocation.section)) + i64::from(relocation.at);
                let distance = address.checked_sub(here + 4).ok_or(OutOfRange)?;
                i32::try_from(distance).map_err(|_| OutOfRange)?;
                (distance, 4)
            }
        };
        let bytes = match relocation.section {
            Section::Text => &mut *sections.text,
            Section::Rodata => &mut *sections.rodata,
            Section::Data => &mut *sections.data,
            Section::Bss => return Err(OutOfRange),
        };
        let field = bytes.get_mut(relocation.at as usize..).ok_or(OutOfRange)?;
        let field = field.get_mut(..length).ok_or(OutOfRange)?;
        field.copy_from_slice(&value.to_le_bytes()[..length]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: Places = Places {
        text: 0x1_1000,
        rodata: 0x2_0000,
        data: 0x3_0000,
        bss: 0x4_0000,
    };

    /// Text, constants and data, 16 bytes each, after one relocation; two imports; the function at
    /// 4 has a slot.
    fn after(relocation: Relocation) -> Result<[[u8; 16]; 3], OutOfRange> {
        let mut bytes = [[0xee; 16]; 3];
        let [text, rodata, data] = &mut bytes;
        let sections = Sections { text, rodata, data };
        let imports = [0x500, 0xffff_fff0];
        let slot = |at| (at == 4).then_some(0x9000);
        relocate(&[relocation], &PLACES, &imports, slot, sections).map(|()| bytes)
    }

    const ANY: Relocation = Relocation {
        section: Section::Data,
        at: 4,
        width: Width::Absolute64,
        target: Target::Section(Section::Bss),
        addend: 8,
    };

    #[test]
    fn each_width_is_written_as_it_says_and_nothing_beside_it() {
        let [text, rodata, data] = after(ANY).unwrap();
        assert_eq!((text, rodata), ([0xee; 16], [0xee; 16]));
        let expected = [&[0xee; 4][..], &0x4_0008u64.to_le_bytes(), &[0xee; 4]].concat();
        assert_eq!(data[..], expected);
        let [_, rodata, _] = after(Relocation {
            section: Section::Rodata,
            at: 12,
            width: Width::Absolute32,
            target: Target::Import(1),
            addend: 0x20,
        })
        .unwrap();
        // Modulo 2^32.
        assert_eq!(rodata[12..], 0x10u32.to_le_bytes());
        let [text, ..] = after(Relocation {
            section: Section::Text,
            width: Width::Relative32,
            target: Target::Import(0),
            addend: -1,
            ..ANY
        })
        .unwrap();
        let distance = 0x500 - 1 - (0x1_1000 + 4 + 4);
        assert_eq!(text[4..8], i32::to_le_bytes(distance));
    }

    #[test]
    fn a_function_with_a_slot_is_its_slot() {
        let to = |section, addend| {
            let target = Target::Section(section);
            let [.., data] = after(Relocation {
                target,
                addend,
                ..ANY
            })
            .unwrap();
            u64::from_le_bytes(data[4..12].try_into().unwrap())
        };
        assert_eq!(to(Section::Text, 4), 0x9000);
        assert_eq!(to(Section::Text, 5), 0x1_1005);
        assert_eq!(to(Section::Text, 4 + (1 << 32)), 0x1_0001_1004);
        assert_eq!(to(Section::Rodata, 4), 0x2_0004);
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let refused = |relocation| assert_eq!(after(relocation), Err(OutOfRange), "{relocation:?}");
        refused(Relocation { at: 9, ..ANY });
        refused(Relocation { at: 17, ..ANY });
        refused(Relocation {
            at: u32::MAX,
            ..ANY
        });
        refused(Relocation {
            section: Section::Bss,
            ..ANY
        });
        refused(Relocation {
            target: Target::Import(2),
            ..ANY
        });
        refused(Relocation {
            addend: i64::MAX,
            ..ANY
        });
        for addend in [i64::MIN, 1 << 31, -(1 << 32)] {
            refused(Relocation {
                width: Width::Relative32,
                addend,
                ..ANY
            });
        }
    }
}
