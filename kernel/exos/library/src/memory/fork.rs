//! What a copy of this process has of its memory: heap and mappings are the same pages until one of
//! both stores there, shared memory stays the same. Whoever makes the copy copies the rest, as the
//! processor's tables say ([`is_copied`]).

use core::ops::Range;

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, memory, pages};
use postern_exos_abi::address::HEAP;
use postern_exos_pages::entry::Entry;

use crate::memory::space::{SHADOW, Space, WINDOW, flags, shadow};
use crate::memory::{fault, trusted};

/// What is the same in both: the heap and mappings.
const SAME: Range<u64> = HEAP..memory::FIRST;
/// Pages that are kept at once.
const BATCH: usize = 64;

/// Whether whoever makes the copy copies the page of an address.
pub fn is_copied(at: u64) -> bool {
    !SAME.contains(&at) && !(SHADOW..SHADOW << 1).contains(&at)
}

/// Gives own pages to somebody who keeps them for several processes: the capabilities to read and
/// to write them.
pub type Keep<'a> = &'a mut dyn FnMut(&[u32], bool) -> Result<[u64; 2], Error>;

struct Batch {
    pages: [(u64, Entry); BATCH],
    numbers: [u32; BATCH],
    count: usize,
    /// Where its capability is to stand.
    place: u16,
}

/// Binds heap and mappings in a copy of this process. Called before its other memory is copied, of
/// which what is known of pages is a part.
pub fn share(target: Target, keep: Keep<'_>) -> Result<(), Error> {
    let share = |space: &mut Space| {
        again(space, target)?;
        for shared in [false, true] {
            while batch(space, target, shared, keep)? {}
        }
        Ok(())
    };
    trusted::with(share).unwrap_or(Err(Error::Busy))
}

/// Pages that are not this process's own already, and those that nobody may use.
fn again(space: &mut Space, target: Target) -> Result<(), Error> {
    let capabilities = &space.capabilities;
    let mut all = Ok(());
    space.table.each(0, u64::MAX, &mut |page, entry| {
        let at = page << 12;
        let hidden = entry.has(Entry::HIDDEN);
        let index = usize::from(entry.capability());
        if all.is_err() || !entry.has(Entry::THERE) {
            return Some(entry);
        }
        if index != 0 {
            let number = if hidden {
                Some(entry.number())
            } else {
                memory::page_at(at)
            };
            let (at, flags) = match hidden {
                true => (shadow(entry.number()), 0),
                false => (at, flags(entry)),
            };
            let capability = capabilities.get(index).copied().unwrap_or(0);
            all = number.ok_or(Error::Unmapped).and_then(|number| {
                memory::map(at, Mapping::new(number, flags), capability, target)
            });
        } else if hidden {
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

/// Own pages become kept ones, so many: whether there were any.
fn batch(space: &mut Space, target: Target, shared: bool, keep: Keep<'_>) -> Result<bool, Error> {
    let mut batch = Batch {
        pages: [(0, Entry(0)); BATCH],
        numbers: [0; BATCH],
        count: 0,
        place: space.place_for_capability()?,
    };
    space
        .table
        .each(SAME.start >> 12, SAME.end >> 12, &mut |page, entry| {
            let own = entry.has(Entry::THERE)
                && !entry.has(Entry::HIDDEN | Entry::COPIED)
                && entry.capability() == 0;
            if batch.count < BATCH
                && own
                && entry.has(Entry::SHARED) == shared
                && let Some(number) = memory::page_at(page << 12)
            {
                batch.pages[batch.count] = (page, entry);
                batch.numbers[batch.count] = number;
                batch.count += 1;
            }
            Some(entry)
        });
    let Batch { count, place, .. } = batch;
    if count == 0 {
        return Ok(false);
    }
    let [read, write] = keep(&batch.numbers[..count], shared)?;
    let capability = if shared { write } else { read };
    fault::copies();
    space.set_capability(place, capability);
    let flag = if shared { 0 } else { Entry::COPIED };
    let mut all = Ok(());
    for ((page, entry), number) in batch.pages.iter().zip(batch.numbers).take(count) {
        let entry = entry.with(flag).with_capability(place);
        let mapping = Mapping::new(number, flags(entry));
        let at = page << 12;
        let bound = trusted::bind(at, mapping, capability)
            .and_then(|()| space.table.insert(*page, entry))
            .and_then(|()| memory::map(at, mapping, capability, target));
        all = all.and(bound);
    }
    all.map(|()| true)
}

/// In the copy: its own pages that are bound nowhere have other numbers.
pub fn in_copy() {
    let _ = trusted::with(|space| {
        space.table.each(0, u64::MAX, &mut |page, entry| {
            let at = page << 12;
            if !entry.has(Entry::HIDDEN) || entry.capability() != 0 {
                return Some(entry);
            }
            let number = memory::page_at(at).unwrap_or(0);
            let _ = calls::unmap(at, Target::SELF);
            Some(entry.with_number(number))
        });
    });
}
