//! The processor's tables of this space, which appear as memory, the upper levels within the lower: the
//! entry of the table that has an address's entry is the entry of that entry's address.

use core::ops::Range;

use postern_aegis::PAGE;
use postern_aegis::address::TABLES;

use crate::memory::trusted;

/// The entry of a level for an address, if those above it are there.
fn word(address: u64, level: u32) -> u64 {
    let slot = |address: u64| TABLES + (address >> 12) * 8;
    trusted::entry((0..level).fold(address, |at, _| slot(at) & !7))
}

/// The highest level that has nothing for an address.
fn empty(address: u64) -> Option<u32> {
    [4, 3, 2]
        .into_iter()
        .find(|level| word(address, *level) & 1 == 0)
}

/// Whether there is a table of the last level for an address, whose entry can be read.
pub fn has_table(address: u64) -> bool {
    empty(address).is_none()
}

/// Calls for each page of a range that is bound.
pub fn each<E>(range: Range<u64>, mut page: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
    let span = |level: u32| 1u64 << (12 + 9 * (level - 1));
    let mut at = range.start;
    while at < range.end {
        if let Some(level) = empty(at) {
            at = (at / span(level) + 1) * span(level);
            continue;
        }
        let end = ((at / span(2) + 1) * span(2)).min(range.end);
        for there in (at..end).step_by(PAGE) {
            if word(there, 1) & 1 != 0 {
                page(there)?;
            }
        }
        at = end;
    }
    Ok(())
}
