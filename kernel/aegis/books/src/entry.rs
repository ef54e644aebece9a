//! Entries of page tables, as the processor reads them (Intel's manual, volume 3, section 4.5).
//!
//! Invariant: an entry is 0 or present, and nothing but a page's number stands in its bits 12 to
//! 51. The processor itself sets the bits that say that an entry was used.

use postern_aegis_abi::Mapping;

pub(crate) const PRESENT: u64 = 1 << 0;
pub(crate) const WRITE: u64 = 1 << 1;
pub(crate) const USER: u64 = 1 << 2;
pub(crate) const UNCACHED: u64 = 1 << 4;
/// Set by the processor: read and stored to.
pub(crate) const USED: u64 = 1 << 5 | 1 << 6;
pub(crate) const NO_EXECUTE: u64 = 1 << 63;

const _: () = assert!(WRITE == Mapping::WRITE && UNCACHED == Mapping::UNCACHED);

/// The bits of a leaf that a mapping's flags decide.
const FLAGS: u64 = WRITE | UNCACHED | NO_EXECUTE;

/// The bits of a leaf for a mapping's flags, and for all of a mapping whose page is checked.
#[inline]
pub(crate) const fn leaf(mapping: u64) -> u64 {
    let no_execute = (!mapping & Mapping::EXECUTE) << (63 - Mapping::EXECUTE.trailing_zeros());
    mapping & !Mapping::EXECUTE | PRESENT | USER | no_execute
}

/// A leaf with other flags of a mapping.
#[inline]
pub(crate) const fn with_flags(entry: u64, flags: u64) -> u64 {
    entry & !FLAGS | leaf(flags)
}

/// Whether one leaf allows what another one does not.
#[inline]
pub(crate) const fn adds(old: u64, new: u64) -> bool {
    new & !old & WRITE | old & !new & NO_EXECUTE != 0
}

/// An entry for the table of the next level. What it leads to is restricted there.
pub(crate) const fn table(page: u32) -> u64 {
    (page as u64) << 12 | PRESENT | WRITE | USER
}

/// The page that an entry names.
#[inline]
pub(crate) const fn page(entry: u64) -> u32 {
    (entry >> 12) as u32
}
