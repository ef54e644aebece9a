//! What a copy of this process does to its memory. Whoever makes one copies or shares what the
//! processor's tables say; here is what they do not say: pages that are there and bound nowhere.

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, memory};
use postern_exos_pages::entry::Entry;

use crate::memory::space::Space;
use crate::memory::{fault, trusted};

/// All pages of a process.
const ALL: u64 = u64::MAX;

/// Before the tables are read: pages that nobody may use are bound, to be read.
pub fn before_fork() -> Result<(), Error> {
    hidden(&mut |page, entry| {
        let mapping = Mapping::new(entry.number(), 0);
        trusted::bind(page << 12, mapping, 0).map(|()| entry)
    })
}

/// Afterwards: they are not bound any more.
pub fn after_fork() {
    let _ = hidden(&mut |page, entry| {
        let _ = calls::unmap(page << 12, Target::SELF);
        Ok(entry)
    });
}

/// In the copy, which has pages of its own at the same addresses.
pub fn in_copy() {
    fault::install();
    let _ = hidden(&mut |page, entry| {
        let at = page << 12;
        let number = memory::page_at(at).unwrap_or(0);
        let _ = calls::unmap(at, Target::SELF);
        Ok(entry.with_number(number))
    });
}

/// Calls for each page that is bound nowhere.
fn hidden(change: &mut dyn FnMut(u64, Entry) -> Result<Entry, Error>) -> Result<(), Error> {
    let each = |space: &mut Space| {
        let mut all = Ok(());
        space.table.each(0, ALL, &mut |page, entry| {
            if !entry.has(Entry::HIDDEN) {
                return Some(entry);
            }
            match change(page, entry) {
                Ok(entry) => Some(entry),
                Err(error) => {
                    all = Err(error);
                    Some(entry)
                }
            }
        });
        all
    };
    trusted::with(each).unwrap_or(Err(Error::Busy))
}
