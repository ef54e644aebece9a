//! Pages that devices read or write: each stays where it is until the device is done with it.
//!
//! Invariant: [`Books::lent`] counts the transfers under way of a page, under its lock. A page that
//! is lent is not freed, given to anybody, taken, or made a table: whoever wants that breaks its
//! bindings, which says [`Error::Again`] until the device is done. Whoever dies has its pages freed
//! then.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::Error;
use postern_aegis_abi::records::Kind;

use crate::kind::is;
use crate::{Books, Hardware, entry};

impl<H: Hardware> Books<'_, H> {
    /// Lends a page of memory to a device that reads it, or writes to it, for somebody who
    /// owns it or presents its capability. [`Error::Again`] if too many transfers use it already.
    pub fn lend(&self, caller: u16, page: u32, write: bool, capability: u64) -> Result<(), Error> {
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        let lent = self.lent.get(page as usize).ok_or(Error::Argument)?;
        let _lock = self.lock_page(page);
        if !is(record, Kind::Data) {
            return Err(Error::Kind);
        }
        let flags = if write { entry::WRITE } else { 0 };
        self.may_bind(record, (caller, caller), flags, capability)?;
        let more = lent.load(Relaxed).checked_add(1).ok_or(Error::Again)?;
        lent.store(more, Relaxed);
        Ok(())
    }

    /// A device is done with a page that it was lent.
    pub fn take_back(&self, page: u32) {
        let _lock = self.lock_page(page);
        if let Some(lent) = self.lent.get(page as usize) {
            lent.store(lent.load(Relaxed).saturating_sub(1), Relaxed);
        }
    }
}
