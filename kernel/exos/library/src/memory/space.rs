//! The space of this process: what is at each page, and what is to come there.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, books, image, memory, pages};
use postern_exos_abi::address::{MAPPINGS, OWN_WINDOWS, PRIVATE, STACK, STACK_LIMIT};
use postern_exos_pages::entry::{EXECUTE, Entry, READ, WRITE};

use crate::memory::regions::{Files, Region, Regions};
use crate::memory::table::Table;
use crate::memory::{room, trusted, walk};

/// Where a page is bound for a moment while it is filled.
pub const WINDOW: u64 = OWN_WINDOWS;

/// Where pages of others are bound that nobody may use now.
pub(super) const SHADOW: u64 = PRIVATE + (8 << 32);
const SHADOW_SPAN: u64 = 1 << 36;

pub(super) const MAPPINGS_FIRST: u64 = MAPPINGS >> 12;
const STACK_END: u64 = STACK >> 12;
/// Mappings end where the environment's own windows begin.
pub(super) const MAPPINGS_END: u64 = memory::FIRST >> 12;

/// Pages of one call.
pub(super) const MANY: usize = 128;
/// Capabilities at most.
pub(super) const CAPABILITIES: usize = 512;

/// What is known.
#[derive(Debug)]
pub struct Space {
    pub(super) table: Table,
    pub(super) regions: Regions,
    /// Where the heap ends, in bytes.
    pub(super) heap_end: u64,
    /// Pages that were promised and have not come yet.
    pub(super) promised: u64,
    /// Capabilities for pages that are not this process's own; none at 0.
    pub(super) capabilities: [u64; CAPABILITIES],
    /// Addresses for one call.
    pub(super) many: [u64; MANY],
    /// Files of the archive that are mapped.
    pub(super) files: Files,
}

/// What a fault comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The instruction can be done again.
    Served,
    /// The page is the program's, and not to be used so.
    Protected,
    /// Nothing is there.
    Nothing,
    /// There is no memory for it.
    Memory(Error),
    /// Its page was taken by force.
    Lost,
}

/// The flags of a binding.
pub fn flags(entry: Entry) -> u64 {
    let flag = |is: bool, flag: u64| if is { flag } else { 0 };
    flag(
        entry.protection() & WRITE != 0 && !entry.has(Entry::COPIED),
        Mapping::WRITE,
    ) | flag(entry.protection() & EXECUTE != 0, Mapping::EXECUTE)
        | flag(entry.has(Entry::UNCACHED), Mapping::UNCACHED)
}

/// What flags of a binding allow.
pub fn protection(flags: u64) -> u64 {
    let flag = |is: bool, flag: u64| if is { flag } else { 0 };
    READ | flag(flags & Mapping::WRITE != 0, WRITE) | flag(flags & Mapping::EXECUTE != 0, EXECUTE)
}

impl Default for Space {
    fn default() -> Space {
        Space::new()
    }
}

impl Space {
    /// Nothing.
    pub const fn new() -> Space {
        Space {
            table: Table::new(),
            regions: Regions::new(),
            heap_end: 0,
            promised: 0,
            capabilities: [0; CAPABILITIES],
            many: [0; MANY],
            files: Files::new(),
        }
    }

    /// Has a table, the stack, and the image's zeros.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.table.begin()?;
        let image = trusted::layout();
        self.heap_end = image.end;
        let zeros = Region {
            first: image.data >> 12,
            end: image.end >> 12,
            protection: READ | WRITE,
            alone: true,
            file: 0,
        };
        if zeros.first < zeros.end {
            self.regions.add(zeros).ok_or(Error::Exhausted)?;
        }
        let stack = Region {
            first: STACK_END - STACK_LIMIT / PAGE as u64,
            end: STACK_END,
            protection: READ | WRITE,
            alone: true,
            file: 0,
        };
        self.regions.add(stack).ok_or(Error::Exhausted)
    }

    /// The entry of a page that is there, also of the image, whose pages are noticed when they are
    /// asked for.
    pub fn entry(&mut self, page: u64) -> Option<Entry> {
        if let Some(entry) = self.table.find(page) {
            return Some(entry);
        }
        let at = page << 12;
        if !image::first().contains(&at) || !walk::has_table(at) {
            return None;
        }
        memory::page_at(at)?;
        let protection = protection(memory::flags_at(at));
        let entry = match at >= trusted::layout().data && protection & WRITE == 0 {
            // It is the file's.
            true => Entry::new(READ | WRITE, Entry::THERE | Entry::COPIED),
            false => Entry::new(protection, Entry::THERE),
        };
        self.table.insert(page, entry).ok()?;
        Some(entry)
    }

    /// Makes entries of the image's pages that are there, and can be copied or given back.
    pub(super) fn notice(&mut self) {
        let layout = trusted::layout();
        let _ = walk::each(layout.data..layout.end, |at| {
            self.entry(at >> 12).map(drop).ok_or(())
        });
    }

    /// An entry of an aliased page that is not this process's own.
    pub(super) fn alias_of(&mut self, number: u32) -> Option<Entry> {
        let mut found = None;
        self.table.each(0, u64::MAX, &mut |page, entry| {
            if entry.capability() != 0 && number_of(page, entry) == Some(number) {
                found = Some(entry);
            }
            Some(entry)
        });
        found
    }

    /// Makes an access possible that failed.
    pub fn fault(&mut self, page: u64, needed: u64) -> Found {
        let Some(entry) = self.entry(page) else {
            let Some(region) = self.regions.at(page) else {
                return Found::Nothing;
            };
            if !allows(region.protection, needed) {
                return Found::Protected;
            }
            return served(self.fresh(page, Entry::new(region.protection, Entry::THERE)));
        };
        if !allows(entry.protection(), needed) {
            return Found::Protected;
        }
        let at = page << 12;
        if !entry.has(Entry::THERE) {
            return served(self.fresh(page, entry.with(Entry::THERE)));
        }
        if entry.has(Entry::COPIED) && needed == WRITE {
            if entry.has(Entry::SHARED) {
                return Found::Protected;
            }
            return served(self.copy(page, entry));
        }
        if entry.has(Entry::HIDDEN) {
            return served(self.show(page, entry));
        }
        match memory::page_at(at) {
            None => Found::Lost,
            Some(_) => served(self.rebind(page, entry)),
        }
    }

    /// A page of zeros, or of the file that is mapped there.
    pub fn fresh(&mut self, page: u64, entry: Entry) -> Result<(), Error> {
        if self.files.some
            && let Some(region) = self.regions.at(page)
            && region.file != 0
        {
            return self.of_file(page, entry, region);
        }
        // The entry first: there may be no room for it.
        self.table.insert(page, entry.without(Entry::THERE))?;
        let number = room::take()?;
        self.place(page, entry, number, 0)?;
        if (trusted::layout().end >> 12..MAPPINGS_END).contains(&page) {
            self.promised = self.promised.saturating_sub(1);
        }
        Ok(())
    }

    /// Binds an own page that was just taken, or gives it back.
    pub(super) fn place(
        &mut self,
        page: u64,
        entry: Entry,
        number: u32,
        capability: u64,
    ) -> Result<(), Error> {
        let mapping = Mapping::new(number, flags(entry));
        let bound = room::patiently(|| trusted::bind(page << 12, mapping, capability));
        if let Err(error) = bound {
            let _ = pages::free(number);
            return Err(error);
        }
        self.table.insert(page, entry)
    }

    /// An own copy of a page in its place.
    pub(super) fn copy(&mut self, page: u64, entry: Entry) -> Result<(), Error> {
        let at = page << 12;
        let entry = match entry.has(Entry::HIDDEN) {
            true => {
                self.show(page, entry)?;
                entry.without(Entry::HIDDEN)
            }
            false => entry,
        };
        let number = room::take()?;
        let mapping = Mapping::new(number, Mapping::WRITE);
        if let Err(error) = room::patiently(|| trusted::bind(WINDOW, mapping, 0)) {
            let _ = pages::free(number);
            return Err(error);
        }
        trusted::copy_page(WINDOW, at);
        let _ = calls::unmap(WINDOW, Target::SELF);
        let own = entry.without(Entry::COPIED).with_capability(0);
        if entry.has(Entry::ALIASED)
            && let Some(former) = memory::page_at(at)
        {
            self.copy_aliases(page, former, number);
        }
        self.place(page, own, number, 0)
    }

    /// Other addresses of a page have its copy, too.
    fn copy_aliases(&mut self, but: u64, former: u32, number: u32) {
        self.table.each(0, u64::MAX, &mut |page, entry| {
            let alias = entry.has(Entry::ALIASED) && entry.has(Entry::COPIED);
            if page == but || !alias || number_of(page, entry) != Some(former) {
                return Some(entry);
            }
            let own = entry.without(Entry::COPIED).with_capability(0);
            if entry.has(Entry::HIDDEN) {
                let _ = calls::unmap(shadow(former), Target::SELF);
                return Some(own.with_number(number));
            }
            let mapping = Mapping::new(number, flags(own));
            match trusted::bind(page << 12, mapping, 0) {
                Ok(()) => Some(own),
                Err(_) => Some(entry),
            }
        });
    }

    /// Binds a page that is bound nowhere.
    pub(super) fn show(&mut self, page: u64, entry: Entry) -> Result<(), Error> {
        let mapping = Mapping::new(entry.number(), flags(entry));
        let capability = self.capability(entry);
        room::patiently(|| trusted::bind(page << 12, mapping, capability))?;
        if entry.capability() != 0 {
            let _ = calls::unmap(shadow(entry.number()), Target::SELF);
        }
        self.table
            .insert(page, entry.without(Entry::HIDDEN).with_number(0))
    }

    /// Has a binding allow what its entry says.
    pub(super) fn rebind(&self, page: u64, entry: Entry) -> Result<(), Error> {
        let at = page << 12;
        // What is the archive's needs no capability, and is not this process's own.
        if entry.capability() == 0 && !entry.has(Entry::COPIED) {
            return calls::protect(at, flags(entry)).map(drop);
        }
        let number = memory::page_at(at).ok_or(Error::Unmapped)?;
        trusted::bind(
            at,
            Mapping::new(number, flags(entry)),
            self.capability(entry),
        )
    }

    /// What the page of an entry is bound by.
    pub(super) fn capability(&self, entry: Entry) -> u64 {
        match usize::from(entry.capability()) {
            0 => 0,
            index => self.capabilities.get(index).copied().unwrap_or(0),
        }
    }

    /// A place for a capability, which is not in use.
    pub(super) fn place_for_capability(&mut self) -> Result<u16, Error> {
        let free = |all: &[u64]| (1..all.len()).find(|index| all[*index] == 0);
        let found = free(&self.capabilities).or_else(|| {
            // Those that no page is bound by any more.
            let mut used = [false; CAPABILITIES];
            self.table.each(0, u64::MAX, &mut |_, entry| {
                used[usize::from(entry.capability()) % CAPABILITIES] = true;
                Some(entry)
            });
            for (capability, used) in self.capabilities.iter_mut().zip(used) {
                *capability = if used { *capability } else { 0 };
            }
            free(&self.capabilities)
        });
        found.map(|index| index as u16).ok_or(Error::Exhausted)
    }

    /// Keeps a capability at its place.
    pub(super) fn set_capability(&mut self, index: u16, capability: u64) {
        if let Some(place) = self.capabilities.get_mut(usize::from(index)) {
            *place = capability;
        }
    }

    /// Changes what may be done to a page.
    pub fn protect(&mut self, page: u64, protection: u64) -> Result<(), Error> {
        let Some(place) = self.table.place(page) else {
            return self.protect_unknown(page, protection);
        };
        let entry = place.entry().protected(protection);
        if !entry.has(Entry::THERE) {
            place.set(entry);
        } else if protection == 0 {
            if !entry.has(Entry::HIDDEN) {
                place.set(hide(page, entry, &self.capabilities));
            } else {
                place.set(entry);
            }
        } else if entry.has(Entry::HIDDEN) {
            return self.show(page, entry);
        } else {
            self.rebind(page, entry)?;
            place.set(entry);
        }
        Ok(())
    }

    /// The same for a page that has no entry yet.
    #[cold]
    fn protect_unknown(&mut self, page: u64, protection: u64) -> Result<(), Error> {
        if self.entry(page).is_some() {
            return self.protect(page, protection);
        }
        let region = self.regions.at(page).ok_or(Error::Unmapped)?;
        if region.protection == protection {
            return Ok(());
        }
        self.table.insert(page, Entry::new(protection, 0))
    }

    /// Takes everything away in a range.
    pub fn unmap(&mut self, first: u64, end: u64) -> Result<(), Error> {
        if first < trusted::layout().end >> 12 {
            self.notice();
        }
        let untouched = self.untouched(first, end);
        self.regions.remove(first, end).ok_or(Error::Exhausted)?;
        self.promised = self.promised.saturating_sub(untouched);
        // Entries with aliases wait for one another round by round.
        loop {
            let (mut numbers, mut count, mut again) = ([None; 16], 0, false);
            self.table.each(first, end, &mut |page, entry| {
                if count == numbers.len() && entry.has(Entry::ALIASED) {
                    again = true;
                    return Some(entry);
                }
                if let Some(number) = leave(page, entry) {
                    numbers[count] = Some(number);
                    count += 1;
                }
                None
            });
            for number in numbers.into_iter().flatten() {
                self.free_unless_hidden(number);
            }
            if !again {
                return Ok(());
            }
        }
    }

    /// Pages of regions in a range that have not come.
    fn untouched(&mut self, first: u64, end: u64) -> u64 {
        let inside = |region: &Region| region.end.min(end).saturating_sub(region.first.max(first));
        let mut pages: u64 = self.regions.all().iter().map(inside).sum();
        self.table.each(first, end, &mut |_, entry| {
            pages = pages.saturating_sub(u64::from(entry.has(Entry::THERE)));
            Some(entry)
        });
        pages
    }
}

/// Where a page of others is bound while its entry is hidden: it would be free if nobody bound it.
pub(super) fn shadow(number: u32) -> u64 {
    SHADOW + (u64::from(number) << 12) % SHADOW_SPAN
}

/// Takes a page's binding away, and keeps its number.
pub(super) fn hide(page: u64, entry: Entry, capabilities: &[u64; CAPABILITIES]) -> Entry {
    let at = page << 12;
    let Some(number) = memory::page_at(at) else {
        return entry;
    };
    let index = usize::from(entry.capability());
    if index != 0 {
        let capability = capabilities.get(index).copied().unwrap_or(0);
        let mapping = Mapping::new(number, 0);
        if room::patiently(|| trusted::bind(shadow(number), mapping, capability)).is_err() {
            return entry;
        }
    }
    let entry = entry.with(used(at)).with(Entry::HIDDEN).with_number(number);
    let _ = calls::unmap(at, Target::SELF);
    entry
}

/// The number of the page of an entry.
fn number_of(page: u64, entry: Entry) -> Option<u32> {
    match (entry.has(Entry::THERE), entry.has(Entry::HIDDEN)) {
        (false, _) => None,
        (true, true) => Some(entry.number()),
        (true, false) => memory::page_at(page << 12),
    }
}

fn allows(protection: u64, needed: u64) -> bool {
    match needed {
        READ => protection != 0,
        _ => protection & needed != 0,
    }
}

fn served(result: Result<(), Error>) -> Found {
    match result {
        Ok(()) => Found::Served,
        // Behind the end of a file.
        Err(Error::Unmapped) => Found::Nothing,
        Err(error) => Found::Memory(error),
    }
}

/// What the processor has noted of a page that is bound, as flags of an entry.
pub fn used(at: u64) -> u64 {
    let entry = memory::table_entry(at);
    let flag = |bit: u32, flag: u64| if entry >> bit & 1 != 0 { flag } else { 0 };
    flag(6, Entry::DIRTY) | flag(5, Entry::TOUCHED)
}

/// A page leaves a space: it is free if it was an own one and nothing else binds it. Of one that
/// may stand in another entry the number comes back, if that is to be seen first.
pub(super) fn leave(page: u64, entry: Entry) -> Option<u32> {
    if !entry.has(Entry::THERE) {
        return None;
    }
    let at = page << 12;
    let number = if entry.has(Entry::HIDDEN) {
        if entry.capability() != 0 {
            let _ = calls::unmap(shadow(entry.number()), Target::SELF);
        }
        entry.number()
    } else {
        let number = memory::page_at(at)?;
        let _ = calls::unmap(at, Target::SELF);
        number
    };
    let record = books::page(number)?;
    let own = record.owner.load(Relaxed) == books::own_number();
    let unused = own && record.bindings.load(Relaxed) == 0;
    if unused && !entry.has(Entry::ALIASED) {
        let _ = pages::free(number);
    }
    (unused && entry.has(Entry::ALIASED)).then_some(number)
}
