//! What programs ask for by range: the heap, mappings, protection.

use postern_aegis::{Error, Mapping, PAGE, calls, memory};
use postern_exos_abi::address::PRIVATE;
use postern_exos_pages::entry::{Entry, READ, WRITE};

use crate::memory::regions::Region;
use crate::memory::space::{Found, MANY, MAPPINGS_END, MAPPINGS_FIRST, Space, flags, hide};
use crate::memory::{room, trusted};

/// Programs map nothing from here on.
const END: u64 = PRIVATE >> 12;
/// Pages whose protection is changed one by one; more of a region become one of their own.
const ONE_BY_ONE: u64 = 64;

impl Space {
    /// Sees to room for pages that come at their first touch.
    pub(super) fn promise(&mut self, pages: u64) -> Result<(), Error> {
        let all = self.promised.saturating_add(pages);
        room::ahead(all)?;
        self.promised = all;
        Ok(())
    }

    /// Moves the heap's end by so many bytes; where it was.
    pub fn grow_heap(&mut self, more: i64) -> Result<u64, Error> {
        let before = self.heap_end;
        let end = before.checked_add_signed(more).ok_or(Error::Quota)?;
        let heap = trusted::layout().end;
        let first = heap >> 12;
        if end < heap || end.div_ceil(PAGE as u64) > MAPPINGS_FIRST {
            return Err(Error::Quota);
        }
        let page = |address: u64| address.div_ceil(PAGE as u64);
        let (old, new) = (page(before), page(end));
        if new > old {
            if !self.regions.is_free(old, new) {
                return Err(Error::Quota);
            }
            self.promise(new - old)?;
        } else if new < old {
            self.unmap(new, old)?;
        }
        if old > first && new > first {
            self.regions.resize(first, new);
        } else {
            self.heap(first, new)?;
        }
        self.heap_end = end;
        Ok(before)
    }

    fn heap(&mut self, first: u64, end: u64) -> Result<(), Error> {
        if end == first {
            return Ok(());
        }
        let region = Region {
            first,
            end,
            protection: READ | WRITE,
            alone: true,
            file: 0,
        };
        self.regions.add(region).ok_or(Error::Exhausted)
    }

    /// So many free pages, from a wish on if there.
    pub fn choose(&self, wish: u64, pages: u64) -> Result<u64, Error> {
        if wish >= MAPPINGS_FIRST
            && wish.saturating_add(pages) <= MAPPINGS_END
            && self.regions.is_free(wish, wish + pages)
        {
            return Ok(wish);
        }
        let found = self.regions.free(MAPPINGS_FIRST, pages, MAPPINGS_END);
        found.ok_or(Error::Exhausted)
    }

    /// Whether programs may map such pages.
    pub fn may_map(first: u64, pages: u64) -> bool {
        first > 0 && first.checked_add(pages).is_some_and(|end| end <= END)
    }

    /// A range of pages that come at their first touch, of a file or zeros (0); what was there is there
    /// no more.
    pub(super) fn claim(
        &mut self,
        first: u64,
        pages: u64,
        protection: u64,
        file: u8,
    ) -> Result<(), Error> {
        let end = first + pages;
        self.promise(pages)?;
        self.unmap(first, end)?;
        // What was there may have been promised, too.
        let region = Region {
            first,
            end,
            protection,
            alone: false,
            file,
        };
        self.regions.add(region).ok_or(Error::Exhausted)
    }

    /// Maps fresh pages, at their first touch, or now with flags of their entries; what was there
    /// is there no more.
    pub fn map(
        &mut self,
        first: u64,
        pages: u64,
        protection: u64,
        now: Option<u64>,
    ) -> Result<(), Error> {
        let end = first + pages;
        self.claim(first, pages, protection, 0)?;
        if let Some(now) = now {
            for page in first..end {
                let entry = Entry::new(protection, now | Entry::THERE);
                if let Err(error) = self.fresh(page, entry) {
                    self.unmap(first, end)?;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Binds a page that the caller names, at an address in a range that [`Space::map`] has made.
    pub fn put(&mut self, page: u64, entry: Entry, number: u32) -> Result<(), Error> {
        let entry = entry.with(Entry::THERE | Entry::HIDDEN).with_number(number);
        self.table.insert(page, entry)?;
        if entry.protection() != 0 {
            self.show(page, entry)?;
        }
        Ok(())
    }

    /// Changes what may be done to pages, by their addresses.
    pub fn protect_many(&mut self, pages: &[u64], protection: u64) -> Result<(), Error> {
        let mut done = 0;
        while done < pages.len() {
            done += self.protect_plain(&pages[done..], protection)?;
            if let Some(address) = pages.get(done) {
                self.protect(address >> 12, protection)?;
                done += 1;
            }
        }
        Ok(())
    }

    /// Protects pages by one call, up to the first that needs more; how many.
    fn protect_plain(&mut self, pages: &[u64], protection: u64) -> Result<usize, Error> {
        let mut many = Many::new(&mut self.many);
        let special = Entry::HIDDEN | Entry::COPIED;
        let mut done = 0;
        for address in pages {
            let page = address >> 12;
            let Some(place) = self.table.place(page) else {
                break;
            };
            let entry = place.entry();
            if protection == 0 || entry.has(special) || !entry.is_own() {
                break;
            }
            let entry = entry.protected(protection);
            many.add(page << 12, entry)?;
            place.set(entry);
            done += 1;
        }
        many.done()?;
        Ok(done)
    }

    /// Has a page come now, whether there is one to come.
    pub fn wire(&mut self, page: u64) -> Result<bool, Error> {
        let needed = match self.entry(page) {
            Some(entry) if entry.has(Entry::THERE) && !entry.has(Entry::COPIED) => return Ok(true),
            Some(entry) => entry.protection(),
            None => self.regions.at(page).map_or(0, |region| region.protection),
        };
        let needed = if needed & WRITE != 0 { WRITE } else { READ };
        match self.fault(page, needed) {
            Found::Memory(error) => Err(error),
            found => Ok(found == Found::Served),
        }
    }

    /// Changes what may be done in a range.
    pub fn protect_range(&mut self, first: u64, end: u64, protection: u64) -> Result<(), Error> {
        if first < trusted::layout().end >> 12 {
            self.notice();
        }
        let mut page = first;
        while page < end {
            match self.regions.at(page) {
                Some(region) if protection & WRITE != 0 && self.is_files_own(region) => {
                    return Err(Error::Denied);
                }
                Some(region) if region.end.min(end) - page > ONE_BY_ONE => {
                    let last = region.end.min(end);
                    self.protect_region(page, last, region, protection)?;
                    page = last;
                }
                _ => {
                    self.protect(page, protection)?;
                    page += 1;
                }
            }
        }
        Ok(())
    }

    fn protect_region(
        &mut self,
        first: u64,
        end: u64,
        region: Region,
        protection: u64,
    ) -> Result<(), Error> {
        if !region.alone && !self.regions.protect(first, end, protection) {
            self.regions.remove(first, end).ok_or(Error::Exhausted)?;
            let part = Region {
                first,
                end,
                protection,
                ..region
            };
            self.regions.add(part).ok_or(Error::Exhausted)?;
        }
        let mut failed = Ok(());
        let mut many = Many::new(&mut self.many);
        let capabilities = &self.capabilities;
        self.table.each_inline(first, end, |page, entry| {
            let changed = entry.protected(protection);
            if many.is_another(page << 12, changed) {
                return Some(changed);
            }
            if !entry.has(Entry::THERE) || entry.has(Entry::HIDDEN) {
                // It is bound when it is touched.
                return Some(changed);
            }
            if protection == 0 {
                return Some(hide(page, changed, capabilities));
            }
            let at = page << 12;
            match usize::from(changed.capability()) {
                0 if !changed.has(Entry::COPIED) => failed = failed.and(many.add(at, changed)),
                index => {
                    let capability = capabilities.get(index).copied().unwrap_or(0);
                    let number = memory::page_at(at).ok_or(Error::Unmapped);
                    failed = failed.and(number.and_then(|number| {
                        trusted::bind(at, Mapping::new(number, flags(changed)), capability)
                    }));
                }
            }
            Some(changed)
        });
        failed = failed.and(many.done());
        if region.alone {
            // The heap and the stack are one region each: pages that have not come are told apart.
            for page in first..end {
                if self.table.find(page).is_none() {
                    self.table.insert(page, Entry::new(protection, 0))?;
                }
            }
        }
        failed
    }
}

/// Pages that are protected alike, by one call.
struct Many<'a> {
    pages: &'a mut [u64; MANY],
    count: usize,
    flags: u64,
    /// Of the last one, all of the same protection.
    binding: u64,
}

impl Many<'_> {
    fn new(pages: &mut [u64; MANY]) -> Many<'_> {
        Many {
            pages,
            count: 0,
            flags: 0,
            // No entry's.
            binding: u64::MAX,
        }
    }

    /// Whether one more is like the last one, and was added: what most are.
    #[inline]
    fn is_another(&mut self, at: u64, entry: Entry) -> bool {
        match self.pages.get_mut(self.count) {
            Some(place) if entry.binding() == self.binding => {
                *place = at;
                self.count += 1;
                true
            }
            _ => false,
        }
    }

    fn add(&mut self, at: u64, entry: Entry) -> Result<(), Error> {
        let flags = flags(entry);
        let done = match self.count == MANY || flags != self.flags {
            true => self.done(),
            false => Ok(()),
        };
        (self.flags, self.binding) = (flags, entry.binding());
        if let Some(place) = self.pages.get_mut(self.count) {
            *place = at;
            self.count += 1;
        }
        done
    }

    fn done(&mut self) -> Result<(), Error> {
        let pages = self.pages.get(..self.count).unwrap_or_default();
        self.count = 0;
        if pages.is_empty() {
            return Ok(());
        }
        match calls::protect_many(pages, self.flags) {
            Ok(done) if done == pages.len() as u64 => Ok(()),
            Ok(_) => Err(Error::Unmapped),
            Err(error) => Err(error),
        }
    }
}
