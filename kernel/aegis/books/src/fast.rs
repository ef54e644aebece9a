//! Map, unmap and protect in line, for what is common: an entry of the table that was used last,
//! memory of the caller's own, bound nowhere else. Nothing here calls a function; whatever is
//! different in any way is left to the same of `map`, which begins anew.
//!
//! Invariant: as in `map` and `binding`, of which these are cases.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use postern_aegis_abi::address::{index, mappable};
use postern_aegis_abi::records::{Kind, NONE, Page, binding};
use postern_aegis_abi::{Error, Mapping};

use crate::binding::{link_only, unlink_only};
use crate::kind::is;
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
        if !mappable(address) {
            return slowly();
        }
        let Some(nearby) = self.nearby(environment, address) else {
            return slowly();
        };
        let at = index(address, 1);
        let links = &self.hardware.words(nearby.record.read.load(Relaxed))[at];
        let binding = binding(nearby.table, at);
        if self.fill(nearby.slot, links, binding, mapping, caller) {
            Ok(())
        } else {
            slowly()
        }
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
        if !self.empty_one(nearby.slot) {
            return slowly();
        }
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
        if !self.change(nearby.slot, caller, flags) {
            return slowly();
        }
        self.hardware.flush(caller, address);
        Ok(())
    }

    /// Fills an entry that is empty, if the page is memory of the caller's that nothing binds.
    #[inline(always)]
    pub(crate) fn fill(
        &self,
        slot: &AtomicU64,
        links: &AtomicU64,
        binding: u32,
        mapping: Mapping,
        caller: u16,
    ) -> bool {
        let Some(page) = mapping.page() else {
            return false;
        };
        let Some(record) = self.pages.get(page as usize) else {
            return false;
        };
        if slot.load(Acquire) != 0 {
            return false;
        }
        let _lock = self.lock_page(page);
        if !is_memory_of(record, caller) || record.first.load(Relaxed) != NONE {
            return false;
        }
        link_only(record, binding, links);
        slot.store(entry::leaf(mapping.0), Release);
        true
    }

    /// Empties an entry, if its page is bound by no other. The caller flushes.
    #[inline(always)]
    pub(crate) fn empty_one(&self, slot: &AtomicU64) -> bool {
        let entry = slot.load(Acquire);
        let page = entry::page(entry);
        let Some(record) = self.pages.get(page as usize) else {
            return false;
        };
        if entry == 0 {
            return false;
        }
        let _lock = self.lock_page(page);
        // It may have been broken before the page was locked.
        if slot.load(Relaxed) == 0 || record.bindings.load(Relaxed) != 1 {
            return false;
        }
        unlink_only(record);
        slot.store(0, Release);
        true
    }

    /// Changes the flags of an entry, if it is there and the caller may. The caller flushes.
    #[inline(always)]
    pub(crate) fn change(&self, slot: &AtomicU64, caller: u16, flags: u64) -> bool {
        let old = slot.load(Acquire);
        let new = entry::with_flags(old, flags);
        if old == 0 {
            return false;
        }
        if entry::adds(old, new) {
            let record = self.pages.get(entry::page(old) as usize);
            if !record.is_some_and(|record| is_memory_of(record, caller)) {
                return false;
            }
        }
        slot.compare_exchange(old, new, Release, Relaxed).is_ok()
    }
}

#[inline(always)]
fn is_memory_of(record: &Page, owner: u16) -> bool {
    record.owner.load(Relaxed) == owner && is(record, Kind::Data)
}
