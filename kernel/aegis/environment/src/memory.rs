//! Memory that a program maps for itself, outside its image: addresses, tables, words.
//!
//! Addresses are taken from [`FIRST`] on and never used twice, so nobody needs to know who used one
//! before. Words there are read and written one by one and whole; the Rust of the program has no
//! references into them, so that the program may map, unmap and protect as it likes.

pub mod demand;
mod trusted;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis_abi::{Error, Mapping, PAGE, address};

use crate::calls::{self, Target};
use crate::{image, pages};

/// The first address that [`reserve`] gives.
pub const FIRST: u64 = 0x1000_0000_0000;

/// Bytes that a table of the last level spans.
pub const TABLE_SPAN: u64 = 512 * PAGE as u64;

static NEXT: AtomicU64 = AtomicU64::new(FIRST);

/// Addresses for so many pages that nobody else has.
pub fn reserve(pages: u64) -> u64 {
    NEXT.fetch_add(pages * PAGE as u64, Relaxed)
}

/// Addresses for so many pages, from a multiple of [`TABLE_SPAN`] on.
pub fn reserve_tables(tables: u64) -> u64 {
    let start = NEXT.load(Relaxed).next_multiple_of(TABLE_SPAN);
    NEXT.store(start + tables * TABLE_SPAN, Relaxed);
    start
}

/// Pages that became tables of the own space so far, with their links.
pub fn tables() -> u64 {
    TABLES.load(Relaxed)
}

static TABLES: AtomicU64 = AtomicU64::new(0);

/// Binds a page to an address of a space, with the tables that it needs, of own pages.
pub fn map(to: u64, mapping: Mapping, capability: u64, of: Target) -> Result<(), Error> {
    match calls::map(to, mapping, capability, of) {
        Err(Error::NoTable) => {
            give_table(to, 1, of)?;
            calls::map(to, mapping, capability, of).map(drop)
        }
        result => result.map(drop),
    }
}

/// Takes a fresh page and binds it to an address of the own space; its number.
pub fn map_fresh(to: u64, flags: u64) -> Result<u32, Error> {
    let page = pages::take()?;
    match map(to, Mapping::new(page, flags), 0, Target::SELF) {
        Ok(()) => Ok(page),
        Err(error) => {
            let _ = pages::free(page);
            Err(error)
        }
    }
}

/// Gives a space a table of a level for an address, and those above that it needs.
pub fn give_table(to: u64, level: u32, of: Target) -> Result<(), Error> {
    let to = to & !(PAGE as u64 - 1);
    let page = pages::take()?;
    let links = match level {
        1 => pages::take().inspect_err(|_| _ = pages::free(page))?,
        _ => 0,
    };
    let mut result = calls::table(to, level, page, links, of);
    if result == Err(Error::NoTable) && level < 3 {
        result = give_table(to, level + 1, of)
            .and_then(|()| calls::table(to, level, page, links, of).map(drop))
            .map(|()| 0);
    }
    if result.is_err() {
        let _ = pages::free(page);
        if level == 1 {
            let _ = pages::free(links);
        }
    } else if of == Target::SELF {
        TABLES.fetch_add(if level == 1 { 2 } else { 1 }, Relaxed);
    }
    // Somebody else's, or an earlier one: it serves as well.
    if result == Err(Error::Mapped) {
        Ok(())
    } else {
        result.map(drop)
    }
}

/// The last-level entry of an address of the own space, as the processor has it; 0: none.
///
/// Where there is no table at all, the reading itself faults: the address must have one.
pub fn table_entry(of: u64) -> u64 {
    read(address::TABLES + (of >> 12) * 8)
}

/// The number of the page that is bound to an address which has a table.
pub fn page_at(of: u64) -> Option<u32> {
    let entry = table_entry(of);
    (entry & 1 != 0).then_some((entry >> 12 & 0xff_ffff_ffff) as u32)
}

/// What may be done at an address that is bound.
pub fn flags_at(of: u64) -> u64 {
    let entry = table_entry(of);
    let flag = |is: bool, flag: u64| if is { flag } else { 0 };
    flag(entry & 1 << 1 != 0, Mapping::WRITE)
        | flag(entry & 1 << 63 == 0, Mapping::EXECUTE)
        | flag(entry & 1 << 4 != 0, Mapping::UNCACHED)
}

/// Reads a word. What is not mapped faults, as every instruction does. Words of the program's own
/// image read as 0: they are Rust's.
pub fn read(from: u64) -> u64 {
    if image::own(from) || image::own(from.wrapping_add(7)) {
        0
    } else {
        trusted::read(from)
    }
}

/// Writes a word, but for words of the program's own image.
pub fn write(to: u64, word: u64) {
    if !image::own(to) && !image::own(to.wrapping_add(7)) {
        trusted::write(to, word);
    }
}

/// A page outside of the program's own image, whose words are read and written without a further
/// look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside(u64);

impl Outside {
    /// The page that begins at an address; `None` if the image is there.
    pub fn page(at: u64) -> Option<Outside> {
        let last = PAGE as u64 - 1;
        let inside = image::own(at) || image::own(at.checked_add(last)?);
        (at & last == 0 && !inside).then_some(Outside(at))
    }

    /// Reads the word at an offset, which is taken within the page.
    pub fn read(self, offset: usize) -> u64 {
        trusted::read(self.at(offset))
    }

    /// Writes it.
    pub fn write(self, offset: usize, word: u64) {
        trusted::write(self.at(offset), word);
    }

    fn at(self, offset: usize) -> u64 {
        self.0 | offset as u64 & (PAGE as u64 - 8)
    }
}

/// Writes bytes from a multiple of eight on; what is left of the last word becomes 0.
pub fn write_bytes(to: u64, bytes: &[u8]) {
    for (index, chunk) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        write(to + 8 * index as u64, u64::from_le_bytes(word));
    }
}
