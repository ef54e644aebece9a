//! Page tables, which environments make of their own pages.
//!
//! Invariant: a page that the processor reads as a table, or that has the links of one, is pinned:
//! its owner is the environment in whose tree it stands, at exactly one place; it is not freed,
//! given or taken, and nobody has it mapped to store. So what stands in tables is what the kernel
//! stored there. A last-level table and its page of links name each other ([`Page::read`]), and the
//! table says what it is for ([`Page::write`]).
//!
//! [`Page::read`]: postern_aegis_abi::records::Page::read
//! [`Page::write`]: postern_aegis_abi::records::Page::write

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use postern_aegis_abi::Error;
use postern_aegis_abi::address::{END, TABLES, index};
use postern_aegis_abi::records::{Kind, NONE, Page};

use crate::kind::is;
use crate::lock::PageLock;
use crate::page::room;
use crate::{Books, Hardware, entry};

impl<'a, H: Hardware> Books<'a, H> {
    /// For [`Call::Create`](postern_aegis_abi::Call::Create), and at the start with the root as
    /// caller and environment: two of the caller's pages become the environment's context, with
    /// its contents, and its root table. Sets [`Environment::root_table`] and
    /// [`Environment::context`]; the environment's number must be claimed, its birth set, and its
    /// counts zero. Its limit of pages is not asked.
    ///
    /// [`Environment::root_table`]: postern_aegis_abi::records::Environment::root_table
    /// [`Environment::context`]: postern_aegis_abi::records::Environment::context
    pub fn found(
        &self,
        caller: u16,
        environment: u16,
        context: u32,
        table: u32,
    ) -> Result<(), Error> {
        let _lists = self.lock_both(caller, environment);
        let _locks = self.lock_unbound([caller, caller], context, Some(table))?;
        self.hardware.clear(table);
        let root = self.hardware.words(table);
        let own = entry::table(table) & !entry::WRITE | entry::NO_EXECUTE;
        root[index(TABLES, 4)].store(own, Relaxed);
        self.hardware.kernel_slots(table);
        self.pin(environment, context, Kind::Context);
        self.pin(environment, table, Kind::Table4);
        let record = self.environment(environment);
        record.context.store(u64::from(context) << 12, Relaxed);
        record.root_table.store(u64::from(table) << 12, Release);
        Ok(())
    }

    /// The call, for an environment that the caller is or controls and claims. Pages of the caller
    /// become the environment's. The page of links is for level 1 only.
    pub fn table(
        &self,
        caller: u16,
        environment: u16,
        address: u64,
        level: u32,
        page: u32,
        links: u32,
    ) -> Result<(), Error> {
        let (slot, kind) = self.place(environment, address, level)?;
        if slot.load(Relaxed) != 0 {
            return Err(Error::Mapped);
        }
        let links = (level == 1).then_some(links);
        let _lists = self.lock_both(caller, environment);
        let _locks = self.lock_unbound([caller, environment], page, links)?;
        let foreign = |page: u32| self.record(page).owner.load(Relaxed) != environment;
        let more = u32::from(foreign(page)) + u32::from(links.is_some_and(foreign));
        if !room(self.environment(environment), more) {
            return Err(Error::Quota);
        }
        self.hardware.clear(page);
        self.pin(environment, page, kind);
        if let Some(links) = links {
            self.hardware.clear(links);
            self.pin(environment, links, Kind::Links);
            self.record(links).read.store(page, Relaxed);
            self.record(page).read.store(links, Relaxed);
            self.record(page).write.store(covered(address), Relaxed);
        }
        slot.store(entry::table(page), Release);
        Ok(())
    }

    /// The call, for an environment that runs here or is claimed. Bindings of others to the pages
    /// are broken; a page that has more than 64 of them can only be freed then.
    pub fn untable(&self, environment: u16, address: u64, level: u32) -> Result<(), Error> {
        let (slot, _) = self.place(environment, address, level)?;
        let table = match slot.load(Relaxed) {
            0 => return Err(Error::NoTable),
            entry => entry::page(entry),
        };
        if level == 1 {
            self.empty(table);
        } else if self
            .hardware
            .words(table)
            .iter()
            .any(|word| word.load(Relaxed) != 0)
        {
            return Err(Error::InUse);
        }
        slot.store(0, Release);
        self.hardware.shoot(environment);
        let links = (level == 1).then(|| self.record(table).read.load(Relaxed));
        let _list = self.lock_environment(environment);
        self.unpin(environment, table);
        if let Some(links) = links {
            self.unpin(environment, links);
        }
        Ok(())
    }

    /// Takes all entries out of a last-level table of an environment that is claimed.
    pub(crate) fn empty(&self, table: u32) {
        // Most are empty: those are passed by eight at a time.
        const EIGHT: usize = 8;
        let (groups, _) = self.hardware.words(table).as_chunks::<EIGHT>();
        for (group, words) in groups.iter().enumerate() {
            if words.iter().fold(0, |all, word| all | word.load(Acquire)) != 0 {
                for index in 0..EIGHT {
                    self.unbind(table, group * EIGHT + index);
                }
            }
        }
    }

    /// The entry for an address below [`END`] of an environment that runs here or is claimed, if
    /// it is in the last-level table that was used last. The table's record says so: a page of this
    /// kind stands in its owner's tree, for the addresses that are named.
    #[inline(always)]
    pub(crate) fn nearby(&self, environment: u16, address: u64) -> Option<Nearby<'a>> {
        let table = self.hardware.last_table().load(Relaxed);
        let record = self.pages.get(table as usize)?;
        if !is(record, Kind::Table1)
            || record.owner.load(Relaxed) != environment
            || record.write.load(Relaxed) != covered(address)
        {
            return None;
        }
        let slot = &self.hardware.words(table)[index(address, 1)];
        Some(Nearby {
            table,
            record,
            slot,
        })
    }

    /// The last-level table for an address below [`END`], of an environment that runs here or is
    /// claimed. Its entries are nearby from now on.
    pub(crate) fn last_level(&self, environment: u16, address: u64) -> Option<u32> {
        let table = self.walk(environment, address)?;
        self.hardware.last_table().store(table, Relaxed);
        Some(table)
    }

    pub(crate) fn walk(&self, environment: u16, address: u64) -> Option<u32> {
        let mut table = entry::page(self.environment(environment).root_table.load(Relaxed));
        for level in [4, 3, 2] {
            let entry = self.hardware.words(table)[index(address, level)].load(Relaxed);
            if entry == 0 {
                return None;
            }
            table = entry::page(entry);
        }
        Some(table)
    }

    /// The entry for a table of a level, and the table's kind.
    fn place(
        &self,
        environment: u16,
        address: u64,
        level: u32,
    ) -> Result<(&'a AtomicU64, Kind), Error> {
        let kind = match level {
            1 => Kind::Table1,
            2 => Kind::Table2,
            3 => Kind::Table3,
            _ => return Err(Error::Argument),
        };
        if address >= END || !address.is_multiple_of(postern_aegis_abi::PAGE as u64) {
            return Err(Error::Argument);
        }
        let mut table = entry::page(self.environment(environment).root_table.load(Relaxed));
        for above in (level + 2..=4).rev() {
            match self.hardware.words(table)[index(address, above)].load(Relaxed) {
                0 => return Err(Error::NoTable),
                entry => table = entry::page(entry),
            }
        }
        Ok((&self.hardware.words(table)[index(address, level + 1)], kind))
    }

    /// Locks one page or two, memory of one of the owners, that nothing binds.
    pub(crate) fn lock_unbound(
        &self,
        owners: [u16; 2],
        page: u32,
        second: Option<u32>,
    ) -> Result<(PageLock<'a>, Option<PageLock<'a>>), Error> {
        let other = second.unwrap_or(page);
        let beyond = |page: u32| page as usize >= self.pages.len();
        if beyond(page) || beyond(other) || second == Some(page) {
            return Err(Error::Argument);
        }
        let first = self.lock_page(page.min(other));
        let locks = (first, second.map(|_| self.lock_page(page.max(other))));
        for page in [page, other] {
            let record = self.record(page);
            if !owners.contains(&record.owner.load(Relaxed)) {
                return Err(Error::Denied);
            }
            if !is(record, Kind::Data) {
                return Err(Error::Kind);
            }
            if record.first.load(Acquire) != NONE || self.is_lent(page) {
                return Err(Error::InUse);
            }
        }
        Ok(locks)
    }

    /// Makes a page of memory an environment's of a kind. It, its owner and the environment are
    /// locked.
    pub(crate) fn pin(&self, environment: u16, page: u32, kind: Kind) {
        let record = self.record(page);
        self.leave(record.owner.load(Relaxed), page);
        self.enter(environment, page);
        let list = self.list(environment);
        list.remove(page);
        list.push_back(page);
        self.forget_names(record);
        record.kind.store(kind as u8, Relaxed);
    }

    /// Makes a page that the processor and the kernel do not read any more memory of its owner
    /// again, who is locked.
    pub(crate) fn unpin(&self, environment: u16, page: u32) {
        let record = self.record(page);
        let _lock = self.lock_page(page);
        let list = self.list(environment);
        list.remove(page);
        list.push_front(page);
        self.forget_names(record);
        let alone = self.break_bindings(page, Some(environment));
        let kind = if alone { Kind::Data } else { Kind::Leaving };
        record.kind.store(kind as u8, Relaxed);
    }
}

/// An entry of the last-level table that was used last.
pub(crate) struct Nearby<'a> {
    pub table: u32,
    /// The table's.
    pub record: &'a Page,
    pub slot: &'a AtomicU64,
}

/// Which 2 MiB an address is in.
#[inline]
fn covered(address: u64) -> u32 {
    (address >> 21) as u32
}
