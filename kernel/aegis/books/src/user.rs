//! An environment's memory, reached through its tables and the map of physical memory: never
//! through its own addresses.
//!
//! Invariant: nothing is waited for between finding a page and its last use. The environment runs
//! here, so whoever breaks the binding waits for this processor before the page is used again
//! ([`Hardware::shoot`]).

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use postern_aegis_abi::address::{END, index};
use postern_aegis_abi::{Error, PAGE};

use crate::{Books, Hardware, entry};

impl<'a, H: Hardware> Books<'a, H> {
    /// Words at an address that is a multiple of eight, of the environment that runs here.
    /// [`Error::Unmapped`] if not all can be read; some may have been then.
    pub fn read_words(&self, environment: u16, address: u64, to: &mut [u64]) -> Result<(), Error> {
        let mut address = Some(aligned(address)?);
        let mut to = to;
        while !to.is_empty() {
            let at = address.ok_or(Error::Unmapped)?;
            let words = self.memory(environment, at, entry::PRESENT)?;
            let count = words.len().min(to.len());
            let (now, rest) = core::mem::take(&mut to).split_at_mut(count);
            for (word, from) in now.iter_mut().zip(words) {
                *word = from.load(Relaxed);
            }
            to = rest;
            address = at.checked_add(count as u64 * 8);
        }
        Ok(())
    }

    /// Stores words at an address that is a multiple of eight, of the environment that runs here.
    /// [`Error::Unmapped`] if not all can be written; some may have been then.
    pub fn write_words(&self, environment: u16, address: u64, from: &[u64]) -> Result<(), Error> {
        let mut address = Some(aligned(address)?);
        let mut from = from;
        while !from.is_empty() {
            let at = address.ok_or(Error::Unmapped)?;
            let words = self.memory(environment, at, entry::PRESENT | entry::WRITE)?;
            let (now, rest) = from.split_at(words.len().min(from.len()));
            for (word, to) in now.iter().zip(words) {
                to.store(*word, Relaxed);
            }
            from = rest;
            address = at.checked_add(now.len() as u64 * 8);
        }
        Ok(())
    }

    /// Bytes of the environment that runs here; otherwise as [`Books::read_words`].
    pub fn read_bytes(&self, environment: u16, address: u64, to: &mut [u8]) -> Result<(), Error> {
        let mut to = to;
        let mut at = Some(address);
        while !to.is_empty() {
            let address = at.ok_or(Error::Unmapped)?;
            let words = self.memory(environment, address & !7, entry::PRESENT)?;
            let skip = address as usize & 7;
            let count = (words.len() * 8 - skip).min(to.len());
            let (now, rest) = core::mem::take(&mut to).split_at_mut(count);
            bytes(words, skip, now);
            to = rest;
            at = address.checked_add(count as u64);
        }
        Ok(())
    }

    /// The words from an address to the end of its page, if its entry has all of these bits.
    fn memory(&self, environment: u16, address: u64, bits: u64) -> Result<&'a [AtomicU64], Error> {
        if address >= END {
            return Err(Error::Unmapped);
        }
        let table = self.walk(environment, address).ok_or(Error::Unmapped)?;
        let entry = self.hardware.words(table)[index(address, 1)].load(Acquire);
        if entry & bits != bits {
            return Err(Error::Unmapped);
        }
        Ok(&self.hardware.words(entry::page(entry))[address as usize % PAGE / 8..])
    }
}

/// Bytes of words, from one of the first word on.
pub(crate) fn bytes(words: &[AtomicU64], skip: usize, to: &mut [u8]) {
    let head = (8 - skip).min(to.len());
    let (first, rest) = to.split_at_mut(if skip == 0 { 0 } else { head });
    if let Some(word) = words.first() {
        let word = word.load(Relaxed).to_le_bytes();
        for (byte, from) in first.iter_mut().zip(&word[skip..]) {
            *byte = *from;
        }
    }
    let words = &words[usize::from(skip != 0).min(words.len())..];
    for (piece, word) in rest.chunks_mut(8).zip(words) {
        let word = word.load(Relaxed).to_le_bytes();
        piece.copy_from_slice(&word[..piece.len()]);
    }
}

fn aligned(address: u64) -> Result<u64, Error> {
    if address.is_multiple_of(8) {
        Ok(address)
    } else {
        Err(Error::Argument)
    }
}
