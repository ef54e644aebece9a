//! Rings: pages of environments' own in which arrivals and completions are told.
//!
//! Invariant: nothing that stands in a ring is believed. The page is its owner's memory whenever it
//! is looked at, and so is the page that an entry names, or its capability is there.

use core::mem::offset_of;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use postern_aegis_abi::device::{ENTRIES, Entry, Ring};
use postern_aegis_abi::records::Kind;
use postern_aegis_abi::{Error, PAGE};

use crate::kind::is;
use crate::{Books, Hardware, entry};

/// Bytes of a word.
const WORD: usize = 8;

impl<H: Hardware> Books<'_, H> {
    /// Fills the next entry of a ring, if `owner` has made one ready: `what` and `result`, and the
    /// bytes go to the place that the entry names, if there are any. The owner is known by its
    /// birth, too: its number may be another's by now. If there are bytes, that is kept from
    /// happening.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if no entry is ready; what else is wrong with ring or place.
    pub fn tell(
        &self,
        (owner, birth): (u16, u32),
        ring: u32,
        (what, result): (u64, u64),
        bytes: Option<&[u8]>,
    ) -> Result<(), Error> {
        let record = self.pages.get(ring as usize).ok_or(Error::Argument)?;
        let own = || {
            let owns = record.owner.load(Relaxed) == owner && record.birth.load(Relaxed) == birth;
            match is(record, Kind::Data) {
                true => owns.then_some(()).ok_or(Error::Denied),
                false => Err(Error::Kind),
            }
        };
        let words = self.hardware.words(ring);
        let (filled, place, capability) = {
            let _lock = self.lock_page(ring);
            own()?;
            let filled = words[offset_of!(Ring, filled) / WORD].load(Relaxed);
            let ready = words[offset_of!(Ring, ready) / WORD].load(Acquire);
            if !(1..=ENTRIES as u64).contains(&ready.wrapping_sub(filled)) {
                return Err(Error::Exhausted);
            }
            if bytes.is_none() {
                fill(words, filled, what, result);
                return Ok(());
            }
            let at = entry_at(filled);
            let place = words[at + offset_of!(Entry, place) / WORD].load(Relaxed);
            let capability = words[at + offset_of!(Entry, capability) / WORD].load(Relaxed);
            (filled, place, capability)
        };
        self.put(owner, place, capability, bytes.unwrap_or_default())?;
        let _lock = self.lock_page(ring);
        own()?;
        fill(words, filled, what, result);
        Ok(())
    }

    /// Copies bytes to a place (a page's number in bits 12 to 43, an offset below, a multiple of
    /// eight) that `owner` may write to. What does not fit in the page is left out.
    pub fn put(&self, owner: u16, place: u64, capability: u64, bytes: &[u8]) -> Result<(), Error> {
        let page = u32::try_from(place >> 12).map_err(|_| Error::Argument)?;
        let offset = place as usize % PAGE;
        if !offset.is_multiple_of(8) {
            return Err(Error::Argument);
        }
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        let _lock = self.lock_page(page);
        if !is(record, Kind::Data) {
            return Err(Error::Kind);
        }
        self.may_bind(record, (owner, owner), entry::WRITE, capability)?;
        self.hardware
            .store(page, offset, &bytes[..bytes.len().min(PAGE - offset)]);
        Ok(())
    }
}

/// Fills the entry of a count, and says so. The ring is locked.
fn fill(words: &[AtomicU64; 512], filled: u64, what: u64, result: u64) {
    let at = entry_at(filled);
    words[at + offset_of!(Entry, what) / WORD].store(what, Relaxed);
    words[at + offset_of!(Entry, result) / WORD].store(result, Relaxed);
    words[offset_of!(Ring, filled) / WORD].store(filled.wrapping_add(1), Release);
}

/// The word of a ring at which the entry of a count begins.
fn entry_at(count: u64) -> usize {
    let index = count as usize % ENTRIES;
    (offset_of!(Ring, entries) + index * size_of::<Entry>()) / WORD
}
