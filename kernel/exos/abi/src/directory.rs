//! What the archive has, read by everybody at [`DIRECTORY`](crate::address::DIRECTORY).

/// Bytes of a name at most.
pub const NAME: usize = 48;

/// A file: 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name, ended by a zero if it is shorter than its place.
    pub name: [u8; NAME],
    /// Its length in bytes.
    pub length: u64,
    /// Where it begins, in bytes of the archive, whose pages' numbers stand at
    /// [`NUMBERS`](crate::address::NUMBERS).
    pub offset: u64,
}

/// The first entry says how many there are behind it.
pub const HEAD: &str = ".";

const _: () = assert!(core::mem::size_of::<Entry>() == 64);

impl Entry {
    /// An entry of this name; `None` if the name does not fit.
    pub fn new(name: &str, offset: u64, length: u64) -> Option<Entry> {
        let mut bytes = [0; NAME];
        bytes
            .get_mut(..name.len())?
            .copy_from_slice(name.as_bytes());
        Some(Entry {
            name: bytes,
            length,
            offset,
        })
    }

    /// Whether it is of this name, which has no zero.
    pub fn is(&self, name: &[u8]) -> bool {
        let begins = self.name.first() == name.first();
        begins && self.name() == name
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        let length = self.name.iter().position(|byte| *byte == 0);
        &self.name[..length.unwrap_or(NAME)]
    }
}
