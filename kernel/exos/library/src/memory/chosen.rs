//! Pages that do not come by themselves: the same page at two addresses, somebody else's, not
//! cached, of a colour.

use postern_aegis::{Error, Mapping, memory, pages};
use postern_exos_pages::entry::{Entry, READ, WRITE};

use crate::memory::regions::Region;
use crate::memory::space::{Space, flags, leave};
use crate::memory::{room, trusted};

impl Space {
    /// The number of the page at an address, if it has come.
    pub fn number(&mut self, page: u64) -> Option<u32> {
        let entry = self.entry(page)?;
        match (entry.has(Entry::THERE), entry.has(Entry::HIDDEN)) {
            (false, _) => None,
            (true, true) => Some(entry.number()),
            (true, false) => memory::page_at(page << 12),
        }
    }

    /// The entry of a page that is the program's own and has come: made so, if it is neither.
    fn made(&mut self, page: u64) -> Result<Entry, Error> {
        let entry = match self.entry(page) {
            Some(entry) => entry,
            None => Entry::new(self.regions.at(page).ok_or(Error::Unmapped)?.protection, 0),
        };
        if !entry.has(Entry::THERE) {
            self.fresh(page, entry.with(Entry::THERE))?;
            if entry.protection() == 0 {
                self.protect(page, 0)?;
            }
        } else if entry.has(Entry::COPIED) {
            self.copy(page, entry)?;
        }
        self.table.find(page).ok_or(Error::Unmapped)
    }

    /// Binds the page of one address at another, too, where the program has something.
    pub fn alias(&mut self, to: u64, from: u64, protection: u64) -> Result<(), Error> {
        if to == from {
            return self.protect(to, protection);
        }
        if self.entry(to).is_none() && self.regions.at(to).is_none() {
            return Err(Error::Unmapped);
        }
        let entry = self.made(from)?;
        let number = self.number(from).ok_or(Error::Unmapped)?;
        self.table.insert(from, entry.with(Entry::ALIASED))?;
        if self.number(to) == Some(number) {
            return self.protect(to, protection);
        }
        self.discard(to);
        let kept = Entry::ALIASED | entry.flags() & Entry::UNCACHED;
        let alias = Entry::new(protection, Entry::THERE | kept);
        self.put(to, alias.with_capability(entry.capability()), number)
    }

    /// Takes away what is at a page.
    fn discard(&mut self, page: u64) {
        if let Some(entry) = self.table.remove(page)
            && let Some(number) = leave(page, entry)
        {
            self.free_unless_hidden(number);
        }
    }

    /// Frees a page that nothing binds, if no entry has its number either.
    pub(super) fn free_unless_hidden(&mut self, number: u32) {
        let mut is_hidden = false;
        self.table.each(0, u64::MAX, &mut |_, entry| {
            is_hidden |= entry.has(Entry::HIDDEN) && entry.number() == number;
            Some(entry)
        });
        if !is_hidden {
            let _ = pages::free(number);
        }
    }

    /// Forgets that a page was touched and stored to.
    pub fn clean(&mut self, page: u64) -> Result<(), Error> {
        let Some(entry) = self.entry(page) else {
            return self.regions.at(page).map(drop).ok_or(Error::Unmapped);
        };
        let cleaned = entry.without(Entry::TOUCHED | Entry::DIRTY);
        if entry.has(Entry::THERE) && !entry.has(Entry::HIDDEN) {
            let number = memory::page_at(page << 12).ok_or(Error::Unmapped)?;
            // A binding that is made again has been used for nothing yet.
            let mapping = Mapping::new(number, flags(entry));
            trusted::bind(page << 12, mapping, self.capability(entry))?;
        }
        self.table.insert(page, cleaned)
    }

    /// So many pages of the same as from a page on, at new addresses.
    pub fn alias_many(&mut self, from: u64, count: u64, protection: u64) -> Result<u64, Error> {
        self.filled(count, protection, |space, to, index| {
            space.alias(to, from + index, protection)
        })
    }

    /// A page by its number at a new address: an own one, or one of somebody else's by a
    /// capability.
    pub fn map_page(&mut self, page: u32, capability: u64, protection: u64) -> Result<u64, Error> {
        let index = match capability {
            0 => 0,
            _ => self.place_for_capability()?,
        };
        self.set_capability(index, capability);
        self.filled(1, protection, |space, to, _| {
            let entry = Entry::new(protection, Entry::THERE | Entry::SHARED | Entry::ALIASED);
            space.put(to, entry.with_capability(index), page)
        })
    }

    /// Fresh pages that are not cached.
    pub fn uncached(&mut self, count: u64) -> Result<u64, Error> {
        self.promise(count)?;
        self.filled(count, READ | WRITE, |space, to, _| {
            space.fresh(to, Entry::new(READ | WRITE, Entry::THERE | Entry::UNCACHED))
        })
    }

    /// Fresh pages, the n-th with a number that is `first + n * step` by so many colours.
    pub fn coloured(
        &mut self,
        count: u64,
        colours: u32,
        first: u32,
        step: u32,
    ) -> Result<u64, Error> {
        if colours == 0 {
            return Err(Error::Argument);
        }
        room::ahead(count)?;
        self.filled(count, READ | WRITE, |space, to, index| {
            let colour = u64::from(first) + index * u64::from(step);
            let colour = (colour % u64::from(colours)) as u32;
            let number = pages::take_where(|number| number % colours == colour)?;
            let entry = Entry::new(READ | WRITE, Entry::THERE);
            space
                .put(to, entry, number)
                .inspect_err(|_| _ = pages::free(number))
        })
    }

    /// A new range, filled page by page; nothing is left of it if one fails.
    fn filled(
        &mut self,
        count: u64,
        protection: u64,
        mut fill: impl FnMut(&mut Space, u64, u64) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let first = self.choose(0, count)?;
        let region = Region {
            first,
            end: first + count,
            protection,
            alone: false,
            file: 0,
        };
        self.regions.add(region).ok_or(Error::Exhausted)?;
        for index in 0..count {
            if let Err(error) = fill(self, first + index, index) {
                let _ = self.unmap(first, first + count);
                return Err(error);
            }
        }
        Ok(first)
    }
}
