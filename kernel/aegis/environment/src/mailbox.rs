//! A page that an environment shares with one that it made: what the child is to do, and what it
//! has found. It is the maker's, who names its words.

mod trusted;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis_abi::{Error, Mapping, address::GUARANTEED};

use crate::calls::Target;
use crate::{memory, pages};

/// Where a child has it: in its second segment, behind what is its own.
pub const ADDRESS: u64 = GUARANTEED + 0x10_0000;

/// The maker's end of it.
#[derive(Clone, Copy, Debug)]
pub struct Mailbox {
    /// The page.
    pub page: u32,
    words: &'static [AtomicU64; 512],
}

impl Mailbox {
    /// A page of zeros.
    pub fn new() -> Result<Mailbox, Error> {
        let at = memory::reserve(1);
        let page = memory::map_fresh(at, Mapping::WRITE)?;
        Ok(Mailbox {
            page,
            words: trusted::words(at),
        })
    }

    /// Binds it in a child's space.
    pub fn share(&self, child: u16) -> Result<(), Error> {
        memory::map(
            ADDRESS,
            Mapping::new(self.page, Mapping::WRITE),
            0,
            Target::child(child),
        )
    }

    /// Reads a word.
    pub fn get(&self, index: usize) -> u64 {
        self.words[index].load(Relaxed)
    }

    /// Writes a word.
    pub fn set(&self, index: usize, word: u64) {
        self.words[index].store(word, Relaxed);
    }

    /// Takes the page out of all spaces and gives it back.
    pub fn close(self) -> Result<(), Error> {
        pages::free(self.page)
    }
}

/// A child's end: reads a word.
pub fn get(index: usize) -> u64 {
    trusted::words(ADDRESS)[index].load(Relaxed)
}

/// A child's end: writes a word.
pub fn set(index: usize, word: u64) {
    trusted::words(ADDRESS)[index].store(word, Relaxed);
}

/// A child's end: adds to a word.
pub fn add(index: usize, more: u64) {
    trusted::words(ADDRESS)[index].fetch_add(more, Relaxed);
}
