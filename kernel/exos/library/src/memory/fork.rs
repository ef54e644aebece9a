//! What a copy of this process has of its memory: pages are the same until one of both stores there,
//! shared memory stays the same. Whoever makes the copy copies what must be there before anything
//! can be copied at a store ([`eager`]), and what the page table does not know.

use core::ops::Range;

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, books, image, memory, pages};
use postern_exos_abi::address::PRIVATE;
use postern_exos_pages::entry::Entry;

use crate::memory::space::{Space, WINDOW, flags, shadow};
use crate::memory::{fault, trusted, walk};

/// Pages that are kept at once.
const BATCH: usize = 64;

/// Pages that the library's own frames may reach below the caller's, at most.
const BELOW: u64 = 2;

/// Gives own pages to somebody who keeps them for several processes: the capabilities to read and
/// to write them.
pub type Keep<'a> = &'a mut dyn FnMut(&[u32], bool) -> Result<[u64; 2], Error>;

/// Addresses of pages of the library's own, which are copied when all else is done: its data, and
/// its page table.
pub fn eager() -> impl Iterator<Item = u64> {
    let layout = trusted::layout();
    let table = trusted::with(|space| space.table.pages());
    let own = (layout.own..layout.data).step_by(PAGE);
    own.chain(table.into_iter().flatten())
}

/// Text, constants, and the library's own data: no affair of the page table.
fn fixed() -> Range<u64> {
    image::first().start..trusted::layout().data
}

/// Addresses of the image's pages that are never stored to.
pub fn constants() -> impl Iterator<Item = u64> {
    (image::first().start..trusted::layout().own).step_by(PAGE)
}

/// Calls for each bound page that the page table does not know, but those of the image and of a
/// range that is somebody else's affair.
pub fn each_unknown(
    but: Range<u64>,
    mut page: impl FnMut(u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut unknown = |at: u64| {
        let known = trusted::with(|space| space.table.find(at >> 12).is_some());
        if known == Some(false) {
            page(at)?;
        }
        Ok(())
    };
    walk::each(memory::FIRST..but.start, &mut unknown)?;
    walk::each(but.end..PRIVATE, &mut unknown)
}

/// Pages below those that are copied at once, to which the library itself has stored since [`share`]:
/// its frames go on there. The table, which is copied later, says that they are this process's own.
pub fn stored_since(hot: &Range<u64>) -> impl Iterator<Item = u64> {
    let below = (1..=BELOW).map(|step| hot.start.wrapping_sub(step * PAGE as u64));
    below.filter(|at| {
        let entry = trusted::with(|space| space.table.find(*at >> 12)).flatten();
        entry.is_some_and(|entry| entry.has(Entry::THERE) && is_own(entry))
    })
}

struct Batch {
    pages: [(u64, Entry); BATCH],
    numbers: [u32; BATCH],
    count: usize,
}

/// Binds what the page table knows in a copy of this process, but for pages of its stack that are
/// copied at once. Called before its other memory is copied, of which the table is a part.
pub fn share(target: Target, hot: Range<u64>, keep: Keep<'_>) -> Result<(), Error> {
    let share = |space: &mut Space| {
        space.notice();
        again(space, target)?;
        for shared in [false, true] {
            while batch(space, target, &hot, shared, keep)? {}
        }
        while aliases(space, target)? {}
        Ok(())
    };
    trusted::with(share).unwrap_or(Err(Error::Busy))
}

/// Pages that are not this process's own already, and those that nobody may use.
fn again(space: &mut Space, target: Target) -> Result<(), Error> {
    let (capabilities, fixed) = (&space.capabilities, fixed());
    let mut all = Ok(());
    space.table.each(0, u64::MAX, &mut |page, entry| {
        let at = page << 12;
        let hidden = entry.has(Entry::HIDDEN);
        let index = usize::from(entry.capability());
        if all.is_err() || !entry.has(Entry::THERE) || fixed.contains(&at) {
            return Some(entry);
        }
        if index != 0 || entry.has(Entry::COPIED) {
            let number = match hidden {
                true => Some(entry.number()),
                false => memory::page_at(at),
            };
            if entry.has(Entry::COPIED) && !hidden && number.is_some_and(owns) {
                // The library has copied it when it had the table.
                return Some(entry.without(Entry::COPIED).with_capability(0));
            }
            if index == 0 && hidden {
                // The archive's.
                return Some(entry);
            }
            let (at, flags) = match hidden {
                true => (shadow(entry.number()), 0),
                false => (at, flags(entry)),
            };
            let capability = capabilities.get(index).copied().unwrap_or(0);
            let bound = number.ok_or(Error::Unmapped).and_then(|number| {
                memory::map(at, Mapping::new(number, flags), capability, target)
            });
            if bound.is_err() && !hidden && memory::page_at(at).is_some_and(owns) {
                // It has been copied since.
                return Some(entry.without(Entry::COPIED).with_capability(0));
            }
            all = bound;
        } else if hidden && !entry.has(Entry::ALIASED) {
            all = copy(at, entry.number(), target);
        }
        Some(entry)
    });
    all
}

/// An own copy for the other process of a page that is bound nowhere.
fn copy(at: u64, number: u32, target: Target) -> Result<(), Error> {
    let own = pages::take()?;
    let second = WINDOW + PAGE as u64;
    let copied = trusted::bind(WINDOW, Mapping::new(own, Mapping::WRITE), 0)
        .and_then(|()| trusted::bind(second, Mapping::new(number, 0), 0));
    if copied.is_ok() {
        trusted::copy_page(WINDOW, second);
    }
    let _ = calls::unmap(WINDOW, Target::SELF);
    let _ = calls::unmap(second, Target::SELF);
    let given = copied.and_then(|()| calls::give(own, target.environment).map(drop));
    if given.is_err() {
        let _ = pages::free(own);
    }
    given.and_then(|()| memory::map(at, Mapping::new(own, 0), 0, target))
}

/// Whether a page is this process's own, as its entry says.
fn is_own(entry: Entry) -> bool {
    entry.is_own() && !entry.has(Entry::COPIED)
}

/// Own pages become kept ones, so many: whether there were any.
fn batch(
    space: &mut Space,
    target: Target,
    hot: &Range<u64>,
    shared: bool,
    keep: Keep<'_>,
) -> Result<bool, Error> {
    let mut batch = Batch {
        pages: [(0, Entry(0)); BATCH],
        numbers: [0; BATCH],
        count: 0,
    };
    let fixed = fixed();
    space.table.each(0, PRIVATE >> 12, &mut |page, entry| {
        let at = page << 12;
        if batch.count < BATCH
            && is_own(entry)
            && !entry.has(Entry::HIDDEN)
            && entry.has(Entry::SHARED) == shared
            && !fixed.contains(&at)
            && !hot.contains(&at)
            && let Some(number) = memory::page_at(at)
            && !(entry.has(Entry::ALIASED) && batch.numbers[..batch.count].contains(&number))
            && (!entry.has(Entry::ALIASED) || owns(number))
        {
            batch.pages[batch.count] = (page, entry);
            batch.numbers[batch.count] = number;
            batch.count += 1;
        }
        Some(entry)
    });
    let count = batch.count;
    if count == 0 {
        return Ok(false);
    }
    let place = space.place_for_capability()?;
    let [read, write] = keep(&batch.numbers[..count], shared)?;
    fault::copies();
    let capability = if shared { write } else { read };
    space.set_capability(place, capability);
    let mut all = Ok(());
    for ((page, entry), number) in batch.pages.iter().zip(batch.numbers).take(count) {
        let entry = kept(*entry, shared).with_capability(place);
        let at = page << 12;
        // The copy has it first: what this process stores to from then on it copies, and a page that
        // nobody binds meanwhile would be free. What is not to be stored to needs nobody's leave.
        let bound = memory::map(at, Mapping::new(number, flags(entry)), capability, target);
        let bound = bound
            .and_then(|()| match shared {
                true => Ok(()),
                false => calls::protect(at, flags(entry)).map(drop),
            })
            .and_then(|()| space.table.insert(*page, entry));
        all = all.and(bound);
    }
    all.map(|()| true)
}

fn kept(entry: Entry, shared: bool) -> Entry {
    entry.with(if shared { 0 } else { Entry::COPIED })
}

fn owns(number: u32) -> bool {
    use core::sync::atomic::Ordering::Relaxed;
    let owner = books::page(number).map(|page| page.owner.load(Relaxed));
    owner == Some(books::own_number())
}

/// Other addresses of pages that were kept by one of them, some: whether there were any.
fn aliases(space: &mut Space, target: Target) -> Result<bool, Error> {
    let mut found = [(0, Entry(0), 0); BATCH];
    let mut count = 0;
    space.table.each(0, PRIVATE >> 12, &mut |page, entry| {
        if count < BATCH && is_own(entry) && entry.has(Entry::ALIASED) {
            let number = match entry.has(Entry::HIDDEN) {
                true => Some(entry.number()),
                false => memory::page_at(page << 12),
            };
            if let Some(number) = number.filter(|number| !owns(*number)) {
                found[count] = (page, entry, number);
                count += 1;
            }
        }
        Some(entry)
    });
    for (page, entry, number) in found.into_iter().take(count) {
        let Some(first) = space.alias_of(number) else {
            continue;
        };
        let entry = kept(entry, !first.has(Entry::COPIED)).with_capability(first.capability());
        let capability = space.capability(entry);
        let (at, flags) = match entry.has(Entry::HIDDEN) {
            true => (shadow(number), 0),
            false => (page << 12, flags(entry)),
        };
        let mapping = Mapping::new(number, flags);
        trusted::bind(at, mapping, capability)?;
        space.table.insert(page, entry)?;
        memory::map(at, mapping, capability, target)?;
    }
    Ok(count == BATCH)
}

/// In the copy: its own pages that are bound nowhere have other numbers.
pub fn in_copy() {
    let _ = trusted::with(|space| {
        space.table.each(0, u64::MAX, &mut |page, entry| {
            let at = page << 12;
            if !entry.has(Entry::HIDDEN) || !is_own(entry) {
                return Some(entry);
            }
            let number = memory::page_at(at).unwrap_or(0);
            let _ = calls::unmap(at, Target::SELF);
            Some(entry.with_number(number))
        });
    });
}
