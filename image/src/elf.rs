//! The two ELF structures that an image is made of: file header and program headers.
//!
//! Fields are read one by one at their fixed places (System V ABI, ELF-64 object file format), so
//! there is no cast to reason about, and a read outside the file is a `None`.

use crate::error::{FileLocation, Problem};

/// Size of an ELF-64 file header in bytes.
pub(crate) const HEADER_SIZE: u64 = 64;
/// Size of an ELF-64 program header in bytes.
pub(crate) const PROGRAM_HEADER_SIZE: u64 = 56;
/// `PT_LOAD`: a part of memory.
pub(crate) const PT_LOAD: u32 = 1;
/// `PT_NOTE`: where the notes are.
pub(crate) const PT_NOTE: u32 = 4;
/// `PT_TLS`: initial values of thread-local variables.
pub(crate) const PT_TLS: u32 = 7;
/// `PT_GNU_STACK`: its flags are the protection that the stack asks for.
pub(crate) const PT_GNU_STACK: u32 = 0x6474_e551;
/// `ET_EXEC`, the type of a file that is linked at fixed addresses.
pub(crate) const ET_EXEC: u16 = 2;
/// `EM_X86_64`.
pub(crate) const EM_X86_64: u16 = 62;

/// The `N` bytes at `offset`, if the file has them.
pub(crate) fn array<const N: usize>(bytes: &[u8], offset: u64) -> Option<[u8; N]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(N)?)?.try_into().ok()
}

/// The little-endian 16-bit number at `offset`.
pub(crate) fn u16_at(bytes: &[u8], offset: u64) -> Option<u16> {
    array(bytes, offset).map(u16::from_le_bytes)
}

/// The little-endian 32-bit number at `offset`.
pub(crate) fn u32_at(bytes: &[u8], offset: u64) -> Option<u32> {
    array(bytes, offset).map(u32::from_le_bytes)
}

/// The little-endian 64-bit number at `offset`.
pub(crate) fn u64_at(bytes: &[u8], offset: u64) -> Option<u64> {
    array(bytes, offset).map(u64::from_le_bytes)
}

/// A program header, with its index for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramHeader {
    pub index: u32,
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub file_size: u64,
    pub memory_size: u64,
    pub alignment: u64,
}

impl ProgramHeader {
    fn read(bytes: &[u8], at: u64, index: u32) -> Option<ProgramHeader> {
        Some(ProgramHeader {
            index,
            kind: u32_at(bytes, at)?,
            flags: u32_at(bytes, at.checked_add(4)?)?,
            offset: u64_at(bytes, at.checked_add(8)?)?,
            address: u64_at(bytes, at.checked_add(16)?)?,
            file_size: u64_at(bytes, at.checked_add(32)?)?,
            memory_size: u64_at(bytes, at.checked_add(40)?)?,
            alignment: u64_at(bytes, at.checked_add(48)?)?,
        })
    }

    /// Where it is, for messages.
    pub fn place(&self) -> FileLocation {
        FileLocation::ProgramHeader(self.index)
    }

    /// The bytes of the file that it names.
    pub fn file_bytes<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], Problem> {
        let range = || {
            let start = usize::try_from(self.offset).ok()?;
            bytes.get(start..start.checked_add(usize::try_from(self.file_size).ok()?)?)
        };
        range().ok_or(Problem::OutsideFile {
            what: "segment",
            offset: self.offset,
            size: self.file_size,
            file: bytes.len() as u64,
        })
    }
}

/// Checks the file header and returns the program headers in order.
///
/// Reading is lazy: a file that claims tens of thousands of program headers costs no memory, and
/// the caller stops at the first that an extension cannot have.
pub(crate) fn program_headers(
    bytes: &[u8],
) -> Result<impl Iterator<Item = ProgramHeader> + '_, Problem> {
    match bytes.get(..4) {
        Some(b"\x7fELF") => {}
        _ => return Err(Problem::NotElf),
    }
    let cut = Problem::OutsideFile {
        what: "ELF header",
        offset: 0,
        size: HEADER_SIZE,
        file: bytes.len() as u64,
    };
    let header: [u8; HEADER_SIZE as usize] = array(bytes, 0).ok_or(cut.clone())?;
    let half = |at| u16_at(&header, at).map(u64::from).ok_or(cut.clone());
    let wanted = [
        ("EI_CLASS", u64::from(header[4]), 2),
        ("EI_DATA", u64::from(header[5]), 1),
        ("EI_VERSION", u64::from(header[6]), 1),
        ("e_type", half(16)?, u64::from(ET_EXEC)),
        ("e_machine", half(18)?, u64::from(EM_X86_64)),
        (
            "e_version",
            u64::from(u32_at(&header, 20).ok_or(cut.clone())?),
            1,
        ),
        ("e_entry", u64_at(&header, 24).ok_or(cut.clone())?, 0),
        ("e_ehsize", half(52)?, HEADER_SIZE),
        ("e_phentsize", half(54)?, PROGRAM_HEADER_SIZE),
    ];
    for (field, found, wanted) in wanted {
        if found != wanted {
            return Err(Problem::WrongElf {
                field,
                found,
                wanted,
            });
        }
    }
    let table = u64_at(&header, 32).ok_or(cut.clone())?;
    let count = half(56)?;
    let size = count * PROGRAM_HEADER_SIZE;
    if table
        .checked_add(size)
        .is_none_or(|end| end > bytes.len() as u64)
    {
        let file = bytes.len() as u64;
        return Err(Problem::OutsideFile {
            what: "program headers",
            offset: table,
            size,
            file,
        });
    }
    Ok((0..count).filter_map(move |index| {
        ProgramHeader::read(bytes, table + index * PROGRAM_HEADER_SIZE, index as u32)
    }))
}
