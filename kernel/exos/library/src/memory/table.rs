//! The page table: the piece that the program has, in memory that is bound before it is needed.

mod trusted;

use core::ptr::NonNull;

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, memory, pages};
use postern_exos_abi::address::{FIRST_TABLE, PRIVATE};
use postern_exos_pages::entry::Entry;

use crate::memory::room;

/// From one area of larger tables to the next. A table grows by moving from one to the other.
const SPAN: u64 = 1 << 32;
/// Pages of the first table.
const FIRST: u64 = 1;
const WORDS: usize = PAGE / 8;

/// The table.
#[derive(Debug)]
pub struct Table {
    at: u64,
    pages: u64,
}

impl Default for Table {
    fn default() -> Table {
        Table::new()
    }
}

impl Table {
    /// None yet.
    pub const fn new() -> Table {
        Table { at: 0, pages: 0 }
    }

    /// The addresses of its pages.
    pub fn pages(&self) -> impl Iterator<Item = u64> + use<> {
        (self.at..).step_by(PAGE).take(self.pages as usize)
    }

    fn words(&self) -> (u64, usize) {
        (self.at, self.pages as usize * WORDS)
    }

    /// Has a table from now on.
    pub fn begin(&mut self) -> Result<(), Error> {
        if self.at == 0 {
            *self = Table::made(FIRST_TABLE, FIRST)?;
        }
        Ok(())
    }

    fn made(at: u64, pages: u64) -> Result<Table, Error> {
        let table = Table { at, pages };
        for page in 0..pages {
            let to = at + page * PAGE as u64;
            if let Err(error) = room::patiently(|| memory::map_fresh(to, Mapping::WRITE)) {
                Table { at, pages: page }.end();
                return Err(error);
            }
        }
        trusted::clear(table.words());
        Ok(table)
    }

    fn end(&self) {
        for page in 0..self.pages {
            let at = self.at + page * PAGE as u64;
            if let Some(number) = memory::page_at(at) {
                let _ = calls::unmap(at, Target::SELF);
                let _ = pages::free(number);
            }
        }
    }

    /// Moves to a table of twice the size.
    fn grow(&mut self) -> Result<(), Error> {
        let at = if self.at == PRIVATE {
            PRIVATE + SPAN
        } else {
            PRIVATE
        };
        let mut larger = Table::made(at, self.pages * 2)?;
        let mut all = Ok(());
        self.each(0, u64::MAX, &mut |page, entry| {
            all = all.and(trusted::insert(larger.words(), page, entry));
            Some(entry)
        });
        core::mem::swap(self, &mut larger);
        larger.end();
        all.map_err(|_| Error::Exhausted)
    }

    /// The entry of a page.
    #[inline]
    pub fn find(&self, page: u64) -> Option<Entry> {
        let word = trusted::find(self.words(), page)?;
        Some(Entry(trusted::load(word)))
    }

    /// Where the entry of a page stands, until another is made or taken away.
    #[inline]
    pub fn place(&self, page: u64) -> Option<Place> {
        trusted::find(self.words(), page).map(Place)
    }

    /// Makes an entry, or changes it.
    pub fn insert(&mut self, page: u64, entry: Entry) -> Result<(), Error> {
        if self.at == 0 {
            self.begin()?;
        }
        if trusted::insert(self.words(), page, entry).is_ok() {
            return Ok(());
        }
        self.grow()?;
        trusted::insert(self.words(), page, entry).map_err(|_| Error::Exhausted)
    }

    /// Takes an entry away.
    pub fn remove(&mut self, page: u64) -> Option<Entry> {
        trusted::remove(self.words(), page)
    }

    /// Calls for each entry of a range, in any order; it becomes what comes back.
    pub fn each(
        &mut self,
        first: u64,
        end: u64,
        change: &mut dyn FnMut(u64, Entry) -> Option<Entry>,
    ) {
        self.each_inline(first, end, change);
    }

    /// The same, compiled for one caller.
    pub fn each_inline(
        &mut self,
        first: u64,
        end: u64,
        change: impl FnMut(u64, Entry) -> Option<Entry>,
    ) {
        trusted::each(self.words(), first, end, change);
    }
}

/// A place of the table.
#[derive(Clone, Copy, Debug)]
pub struct Place(NonNull<u64>);

impl Place {
    /// The entry.
    #[inline]
    pub fn entry(self) -> Entry {
        Entry(trusted::load(self.0))
    }

    /// Changes it.
    #[inline]
    pub fn set(self, entry: Entry) {
        trusted::store(self.0, entry.0);
    }
}
