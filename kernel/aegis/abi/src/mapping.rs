//! A page with what may be done to it, in one word, as calls take it.

/// A page number with rights: the number in bits 12 to 51, flags below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Mapping(pub u64);

impl Mapping {
    /// Stores are allowed. Needs the write capability, if the page is another's.
    pub const WRITE: u64 = 1 << 1;
    /// Instructions are fetched.
    pub const EXECUTE: u64 = 1 << 2;
    /// Not cached.
    pub const UNCACHED: u64 = 1 << 4;
    /// All flags; reading is always allowed.
    pub const FLAGS: u64 = Self::WRITE | Self::EXECUTE | Self::UNCACHED;

    /// A page with flags.
    pub const fn new(page: u32, flags: u64) -> Mapping {
        Mapping((page as u64) << 12 | flags)
    }

    /// The page's number, if the word has no bits beyond a number and flags.
    pub const fn page(self) -> Option<u32> {
        if self.0 & 0xfff & !Self::FLAGS != 0 || self.0 >> 12 > u32::MAX as u64 {
            return None;
        }
        Some((self.0 >> 12) as u32)
    }

    /// Whether all of these flags are set.
    pub const fn has(self, flags: u64) -> bool {
        self.0 & flags == flags
    }
}

/// One of many mappings for [`MapMany`](crate::Call::MapMany), as it stands in the caller's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Where, a multiple of a page.
    pub address: u64,
    /// What, and what may be done to it. [`Request::UNMAP`] takes away what is there.
    pub mapping: Mapping,
    /// For pages of others; 0 for own ones.
    pub capability: u64,
}

impl Request {
    /// No page: what is bound at the address is taken away.
    pub const UNMAP: Mapping = Mapping(u64::MAX);
}
