//! Rings: pages of this environment's in which the kernel tells what came. An environment names
//! places for what comes and makes them ready; the kernel fills them in order
//! ([`postern_aegis_abi::device::Ring`]).
//!
//! A ring lies where [`memory`] reaches it: outside the program's image, word by word.

use core::mem::offset_of;

use postern_aegis_abi::device::{ENTRIES, Entry, Ring as Page};
use postern_aegis_abi::{Error, Mapping};

use crate::{memory, pages};

/// A ring of this environment's.
#[derive(Debug)]
pub struct Ring {
    at: u64,
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

    fn entry(&self, number: u64) -> u64 {
        let index = number % ENTRIES as u64;
        self.at + offset_of!(Page, entries) as u64 + index * size_of::<Entry>() as u64
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
        memory::write(entry + offset_of!(Entry, place) as u64, place);
        memory::write(entry + offset_of!(Entry, capability) as u64, capability);
        self.ready += 1;
        memory::write(self.at + offset_of!(Page, ready) as u64, self.ready);
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
        let filled = memory::read(self.at + offset_of!(Page, filled) as u64);
        // Its own memory, which only the kernel and this program write.
        if filled == self.taken {
            return None;
        }
        let entry = self.entry(self.taken);
        let word = |offset: usize| memory::read(entry + offset as u64);
        self.taken += 1;
        Some(Told {
            place: word(offset_of!(Entry, place)),
            what: word(offset_of!(Entry, what)),
            result: word(offset_of!(Entry, result)),
        })
    }
}
