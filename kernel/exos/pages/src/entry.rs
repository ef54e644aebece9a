//! An entry: one word, never zero.
//!
//! The page's number stands in it only while the page is bound nowhere; otherwise the processor's
//! own table, which everybody may read, says it.

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(pub u64);

/// Loads are allowed.
pub const READ: u64 = 1;
/// Stores are allowed.
pub const WRITE: u64 = 2;
/// Instructions are fetched.
pub const EXECUTE: u64 = 4;
/// All that can be allowed, with the numbers that C has.
pub const PROTECTION: u64 = READ | WRITE | EXECUTE;

impl Entry {
    /// It is an entry.
    const IS: u64 = 1 << 3;
    /// There is a page. Otherwise one comes at the first touch.
    pub const THERE: u64 = 1 << 4;
    /// The page is not this process's own, and is copied before it is stored to.
    pub const COPIED: u64 = 1 << 5;
    /// The page is the same in every process that has it.
    pub const SHARED: u64 = 1 << 6;
    /// Not cached.
    pub const UNCACHED: u64 = 1 << 7;
    /// The page is bound nowhere, and the entry has its number.
    pub const HIDDEN: u64 = 1 << 8;
    /// It was stored to, before it was bound the last time.
    pub const DIRTY: u64 = 1 << 9;
    /// It was touched, before it was bound the last time.
    pub const TOUCHED: u64 = 1 << 10;
    /// The page stands in another entry, too, or has.
    pub const ALIASED: u64 = 1 << 11;
    const FLAGS: u64 = Self::THERE
        | Self::COPIED
        | Self::SHARED
        | Self::UNCACHED
        | Self::HIDDEN
        | Self::DIRTY
        | Self::TOUCHED
        | Self::ALIASED;
    const NUMBER: u32 = 32;
    const CAPABILITY: u32 = 16;

    /// An entry with a protection and flags.
    pub const fn new(protection: u64, flags: u64) -> Entry {
        Entry(protection & PROTECTION | flags & Self::FLAGS | Self::IS)
    }

    /// What the program may do, as far as it is asked.
    pub const fn protection(self) -> u64 {
        self.0 & PROTECTION
    }

    /// Its flags.
    pub const fn flags(self) -> u64 {
        self.0 & Self::FLAGS
    }

    /// Whether one of these flags is set.
    pub const fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// What says how the page is bound, beside the protection: the same word, the same binding.
    pub const fn binding(self) -> u64 {
        let flags = Self::THERE | Self::COPIED | Self::UNCACHED | Self::HIDDEN;
        self.0 & (flags | 0xffff << Self::CAPABILITY)
    }

    /// Whether there is a page, and it is the process's own.
    pub const fn is_own(self) -> bool {
        self.has(Self::THERE) && self.capability() == 0
    }

    /// The same with another protection.
    #[must_use]
    pub const fn protected(self, protection: u64) -> Entry {
        Entry(self.0 & !PROTECTION | protection & PROTECTION)
    }

    /// The same with flags.
    #[must_use]
    pub const fn with(self, flags: u64) -> Entry {
        Entry(self.0 | flags & Self::FLAGS)
    }

    /// The same without flags.
    #[must_use]
    pub const fn without(self, flags: u64) -> Entry {
        Entry(self.0 & !(flags & Self::FLAGS))
    }

    /// The page's number, while it is [`Entry::HIDDEN`].
    pub const fn number(self) -> u32 {
        (self.0 >> Self::NUMBER) as u32
    }

    /// The same with a number.
    #[must_use]
    pub const fn with_number(self, number: u32) -> Entry {
        Entry(self.0 & ((1 << Self::NUMBER) - 1) | (number as u64) << Self::NUMBER)
    }

    /// Which of the process's capabilities the page is bound by; 0: none, it is its own.
    pub const fn capability(self) -> u16 {
        (self.0 >> Self::CAPABILITY) as u16
    }

    /// The same with a capability.
    #[must_use]
    pub const fn with_capability(self, index: u16) -> Entry {
        let mask = 0xffff << Self::CAPABILITY;
        Entry(self.0 & !mask | (index as u64) << Self::CAPABILITY)
    }
}
