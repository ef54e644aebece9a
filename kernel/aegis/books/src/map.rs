//! Entries of last-level tables: map, unmap, protect (Table 3).
//!
//! Invariant: an entry is filled under the lock of the page that it names, after the check that
//! the caller may bind that page so, together with its place in the page's list of bindings
//! (`binding`). Rights are added to an entry in the same way, or for a page of the caller's own.
//! An entry is found once: the tables are the environment's, which runs here or is claimed, and
//! others only empty entries.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use postern_aegis_abi::address::{index, mappable};
use postern_aegis_abi::records::binding;
use postern_aegis_abi::{Error, Mapping};

use crate::{Books, Hardware, entry};

impl<H: Hardware> Books<'_, H> {
    /// Any case of [`Books::map_page`].
    #[inline(never)]
    pub(crate) fn map_any(
        &self,
        (caller, environment): (u16, u16),
        address: u64,
        mapping: Mapping,
        capability: u64,
    ) -> Result<(), Error> {
        let page = mapping.page().ok_or(Error::Argument)?;
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        if !mappable(address) {
            return Err(Error::Argument);
        }
        let table = self
            .last_level(environment, address)
            .ok_or(Error::NoTable)?;
        let slot = &self.hardware.words(table)[index(address, 1)];
        if slot.load(Acquire) != 0 {
            return self.rebind((caller, environment), table, address, mapping, capability);
        }
        let _lock = self.lock_page(page);
        self.may_bind(record, (caller, environment), mapping.0, capability)?;
        self.link(record, table, index(address, 1), environment);
        slot.store(entry::leaf(mapping.0), Release);
        Ok(())
    }

    /// Any case of [`Books::unmap_page`].
    #[inline(never)]
    pub(crate) fn unmap_any(&self, environment: u16, address: u64) -> Result<(), Error> {
        if !mappable(address) {
            return Err(Error::Argument);
        }
        let table = self
            .last_level(environment, address)
            .ok_or(Error::Unmapped)?;
        if !self.unbind(table, index(address, 1)) {
            return Err(Error::Unmapped);
        }
        self.hardware.flush(environment, address);
        Ok(())
    }

    /// Any case of [`Books::protect_page`], without a lock: only this processor fills entries of
    /// the caller, so an entry that is still the same when it is replaced was there all the time,
    /// and a page that is bound changes neither to a table nor, but by its owner who is here, to
    /// another owner.
    #[inline(never)]
    pub(crate) fn protect_any(&self, caller: u16, address: u64, flags: u64) -> Result<(), Error> {
        if !mappable(address) || flags & !Mapping::FLAGS != 0 {
            return Err(Error::Argument);
        }
        let table = self.last_level(caller, address).ok_or(Error::Unmapped)?;
        let slot = &self.hardware.words(table)[index(address, 1)];
        let mut old = slot.load(Acquire);
        loop {
            if old == 0 {
                return Err(Error::Unmapped);
            }
            let new = entry::with_flags(old, flags);
            let owns = || self.may_own(self.record(entry::page(old)), (caller, caller));
            if entry::adds(old, new) && !owns() {
                return Err(Error::Denied);
            }
            match slot.compare_exchange(old, new, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => old = now,
            }
        }
        self.hardware.flush(caller, address);
        Ok(())
    }

    /// Fills an entry that names a page. Both pages are locked, so that either all or nothing is
    /// done.
    #[inline(never)]
    fn rebind(
        &self,
        (caller, environment): (u16, u16),
        table: u32,
        address: u64,
        mapping: Mapping,
        capability: u64,
    ) -> Result<(), Error> {
        let index = index(address, 1);
        let slot = &self.hardware.words(table)[index];
        let new = entry::page(mapping.0);
        let old = entry::page(slot.load(Relaxed));
        // It may have been broken just now; then page 0 is locked for nothing.
        let first = self.lock_page(new.min(old));
        let second = (new != old).then(|| self.lock_page(new.max(old)));
        self.may_bind(
            self.record(new),
            (caller, environment),
            mapping.0,
            capability,
        )?;
        let bound = slot.load(Acquire) != 0;
        if bound && new != old {
            self.unlink(self.record(old), binding(table, index));
        }
        if !bound || new != old {
            self.link(self.record(new), table, index, environment);
        }
        slot.store(entry::leaf(mapping.0), Release);
        drop((first, second));
        self.hardware.flush(environment, address);
        Ok(())
    }
}
