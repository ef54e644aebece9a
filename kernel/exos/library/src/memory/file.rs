//! Files of the archive that are mapped. Their pages are everybody's to read: one that is all the file's
//! is bound at its first touch, and copied before the first store; the last, which is not, is copied at
//! once. Behind the file nothing comes.

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, pages};
use postern_exos_load::archive;
use postern_exos_pages::entry::{Entry, WRITE};

use crate::memory::regions::{MAPPED, Mapped, Region};
use crate::memory::space::{Space, WINDOW, flags};
use crate::memory::{fault, room, trusted};

impl Space {
    /// Maps pages of a file of the archive, from one of its pages on.
    pub fn map_file(
        &mut self,
        (first, pages): (u64, u64),
        protection: u64,
        (index, shared): (u32, bool),
        from: u64,
    ) -> Result<(), Error> {
        if shared && protection & WRITE != 0 {
            return Err(Error::Denied);
        }
        let file = archive::nth(index as usize).ok_or(Error::Argument)?;
        if !file.offset.is_multiple_of(PAGE as u64) {
            return Err(Error::Argument);
        }
        let in_use = |place: u8| self.regions.all().iter().any(|region| region.file == place);
        let place = (1..=MAPPED as u8).find(|place| !in_use(*place));
        let place = place.ok_or(Error::Exhausted)?;
        self.claim(first, pages, protection, place)?;
        self.files.some = true;
        fault::copies();
        self.files.all[usize::from(place) - 1] = Mapped {
            index,
            shared,
            delta: from.wrapping_sub(first),
        };
        Ok(())
    }

    fn mapped(&self, region: Region) -> Option<&Mapped> {
        self.files.all.get(usize::from(region.file).wrapping_sub(1))
    }

    /// Whether the pages of a region are a file's own.
    pub(super) fn is_files_own(&self, region: Region) -> bool {
        self.mapped(region).is_some_and(|mapped| mapped.shared)
    }

    /// The page of a file comes. [`Error::Unmapped`]: it is behind the file's end.
    pub(super) fn of_file(&mut self, page: u64, entry: Entry, region: Region) -> Result<(), Error> {
        let mapped = *self.mapped(region).ok_or(Error::Unmapped)?;
        let file = archive::nth(mapped.index as usize).ok_or(Error::Unmapped)?;
        let from = page.wrapping_add(mapped.delta).checked_mul(PAGE as u64);
        let from = from.ok_or(Error::Unmapped)?;
        let number = file.page(from).ok_or(Error::Unmapped)?;
        // The entry first: there may be no room for it.
        self.table.insert(page, entry.without(Entry::THERE))?;
        let left = file.length - from;
        if left >= PAGE as u64 {
            let shared = if mapped.shared { Entry::SHARED } else { 0 };
            let entry = entry.with(Entry::COPIED | shared);
            let mapping = Mapping::new(number, flags(entry));
            room::patiently(|| trusted::bind(page << 12, mapping, 0))?;
            return self.table.insert(page, entry);
        }
        let own = room::take()?;
        let second = WINDOW + PAGE as u64;
        let bound = room::patiently(|| {
            trusted::bind(WINDOW, Mapping::new(own, Mapping::WRITE), 0)?;
            trusted::bind(second, Mapping::new(number, 0), 0)
        });
        if bound.is_ok() {
            trusted::copy_bytes(WINDOW, second, left);
        }
        let _ = calls::unmap(WINDOW, Target::SELF);
        let _ = calls::unmap(second, Target::SELF);
        if let Err(error) = bound {
            let _ = pages::free(own);
            return Err(error);
        }
        self.place(page, entry, own, 0)
    }
}
