//! Map, unmap and protect in line, for what is common: an entry of the table that was used last,
//! memory of the caller's own, bound nowhere else. Nothing here calls a function; whatever is
//! different in any way is left to the same of `map`, which begins anew.
//!
//! Invariant: as in `map` and `binding`, of which these are cases.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use postern_aegis_abi::address::{index, mappable};
use postern_aegis_abi::records::{Kind, NONE, Page, binding};
use postern_aegis_abi::{Error, Mapping};

use crate::binding::{link_only, unlink_only};
use crate::page::is;
use crate::{Books, Hardware, entry};

impl<H: Hardware> Books<'_, H> {
    /// The call, for an environment that the caller is or controls and claims. What the caller or
    /// the environment owns needs no capability.
    #[inline(always)]
    pub fn map_page(
        &self,
        caller: u16,
        environment: u16,
        address: u64,
        mapping: Mapping,
        capability: u64,
    ) -> Result<(), Error> {
        let slowly = || self.map_any((caller, environment), address, mapping, capability);
        let Some(page) = mapping.page() else {
            return slowly();
        };
        let Some(record) = self.pages.get(page as usize) else {
            return slowly();
        };
        if !mappable(address) {
            return slowly();
        }
        let Some(nearby) = self.nearby(environment, address) else {
            return slowly();
        };
        if nearby.slot.load(Acquire) != 0 {
            return slowly();
        }
        let lock = self.lock_page(page);
        if !is_memory_of(record, caller) || record.first.load(Relaxed) != NONE {
            drop(lock);
            return slowly();
        }
        let at = index(address, 1);
        let links = &self.hardware.words(nearby.record.read.load(Relaxed))[at];
        link_only(record, binding(nearby.table, at), links);
        nearby.slot.store(entry::leaf(mapping.0), Release);
        Ok(())
    }

    /// The call, for an environment that runs here or is claimed.
    #[inline(always)]
    pub fn unmap_page(&self, environment: u16, address: u64) -> Result<(), Error> {
        let slowly = || self.unmap_any(environment, address);
        if !mappable(address) {
            return slowly();
        }
        let Some(nearby) = self.nearby(environment, address) else {
            return slowly();
        };
        let entry = nearby.slot.load(Acquire);
        let page = entry::page(entry);
        let Some(record) = self.pages.get(page as usize) else {
            return slowly();
        };
        if entry == 0 {
            return slowly();
        }
        let lock = self.lock_page(page);
        // It may have been broken before the page was locked.
        if nearby.slot.load(Relaxed) == 0 || record.bindings.load(Relaxed) != 1 {
            drop(lock);
            return slowly();
        }
        unlink_only(record);
        nearby.slot.store(0, Release);
        drop(lock);
        self.hardware.flush(environment, address);
        Ok(())
    }

    /// The call.
    #[inline(always)]
    pub fn protect_page(&self, caller: u16, address: u64, flags: u64) -> Result<(), Error> {
        let slowly = || self.protect_any(caller, address, flags);
        if !mappable(address) || flags & !Mapping::FLAGS != 0 {
            return slowly();
        }
        let Some(nearby) = self.nearby(caller, address) else {
            return slowly();
        };
        let old = nearby.slot.load(Acquire);
        let new = entry::with_flags(old, flags);
        if old == 0 {
            return slowly();
        }
        if entry::adds(old, new) {
            let record = self.pages.get(entry::page(old) as usize);
            if !record.is_some_and(|record| is_memory_of(record, caller)) {
                return slowly();
            }
        }
        if nearby
            .slot
            .compare_exchange(old, new, Release, Relaxed)
            .is_err()
        {
            return slowly();
        }
        self.hardware.flush(caller, address);
        Ok(())
    }
}

#[inline(always)]
fn is_memory_of(record: &Page, owner: u16) -> bool {
    record.owner.load(Relaxed) == owner && is(record, Kind::Data)
}
