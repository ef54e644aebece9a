//! Rings: pages of this environment's in which the kernel tells what came. An environment names
//! places for what comes and makes them ready; the kernel fills them in order
//! ([`postern_aegis_abi::device::Ring`]).
//!
//! A ring lies where [`memory`] reaches it: outside the program's image, word by word.

use core::mem::offset_of;

use postern_aegis_abi::device::{ENTRIES, Entry, Ring as Page};
use postern_aegis_abi::{Error, Mapping};

use crate::memory::Outside;
use crate::{memory, pages};

/// A ring of this environment's.
#[derive(Debug)]
pub struct Ring {
    at: u64,
    words: Outside,
    page: u32,
    ready: u64,
    taken: u64,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The place that was named for it, and its capability.
    pub place: u64,
    /// What it is: [`Entry::what`].
    pub what: u64,
    /// When it came, or how it ended: [`Entry::result`].
    pub result: u64,
}

impl Told {
    /// Of a frame: its length, before it was cut.
    pub fn length(&self) -> usize {
        self.what as u32 as usize
    }

    /// Of a frame: the endpoint.
    pub fn endpoint(&self) -> usize {
        (self.what >> 32) as usize
    }
}

impl Ring {
    /// An empty ring in a fresh page.
    pub fn new() -> Result<Ring, Error> {
        let at = memory::reserve(1);
        let page = memory::map_fresh(at, Mapping::WRITE)?;
        Ok(Ring {
            at,
            words: Outside::page(at).ok_or(Error::Argument)?,
            page,
            ready: 0,
            taken: 0,
        })
    }

    /// The page's number.
    pub fn page(&self) -> u32 {
        self.page
    }

    /// Where the page stands in this space.
    pub fn address(&self) -> u64 {
        self.at
    }

    /// The offset of an entry.
    fn entry(&self, number: u64) -> usize {
        let index = number as usize % ENTRIES;
        offset_of!(Page, entries) + index * size_of::<Entry>()
    }

    /// How many entries could be made ready.
    pub fn room(&self) -> usize {
        ENTRIES - (self.ready - self.taken) as usize
    }

    /// Makes an entry ready, with a place for what comes: a page's number in bits 12 to 43, and an
    /// offset below. Whether there was room for it.
    pub fn offer(&mut self, place: u64, capability: u64) -> bool {
        if self.room() == 0 {
            return false;
        }
        let entry = self.entry(self.ready);
        self.words.write(entry + offset_of!(Entry, place), place);
        self.words
            .write(entry + offset_of!(Entry, capability), capability);
        self.ready += 1;
        self.words.write(offset_of!(Page, ready), self.ready);
        true
    }

    /// Gives the page back.
    pub fn free(self) -> Result<(), Error> {
        pages::free(self.page)
    }
}

/// What came, in its order.
impl Iterator for Ring {
    type Item = Told;

    /// The next thing that came. Its entry can be made ready anew.
    fn next(&mut self) -> Option<Told> {
        let filled = self.words.read(offset_of!(Page, filled));
        // Its own memory, which only the kernel and this program write.
        if filled == self.taken {
            return None;
        }
        let entry = self.entry(self.taken);
        let word = |offset: usize| self.words.read(entry + offset);
        self.taken += 1;
        Some(Told {
            place: word(offset_of!(Entry, place)),
            what: word(offset_of!(Entry, what)),
            result: word(offset_of!(Entry, result)),
        })
    }
}
