//! Bindings: which entries of page tables name a page, as a list through the pages of links.
//!
//! Invariant: under a page's lock, its list has exactly the present entries of last-level tables
//! that name it, first those in tables of others and then those in tables of its owner. Whoever
//! runs or claims an environment is the only one to fill entries of its tables; others only empty
//! them, as here. An entry is emptied after it left the list, so who finds it empty knows that
//! nobody looks at its word of links any more. When a page is unlocked, no processor knows the
//! translations of entries that were taken out here; one that its own environment's call took out
//! is forgotten before that call returns.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use postern_aegis_abi::Error;
use postern_aegis_abi::call::{NAME_EVERYBODY, NAME_NOBODY};
use postern_aegis_abi::records::{Kind, NONE, Page, binding};

use crate::kind::is;
use crate::{Books, Hardware, entry};

/// Bindings that one call breaks.
const AT_ONCE: usize = 64;

const fn links(previous: u32, next: u32) -> u64 {
    (previous as u64) << 32 | next as u64
}

const fn previous(links: u64) -> u32 {
    (links >> 32) as u32
}

const fn next(links: u64) -> u32 {
    links as u32
}

impl<'a, H: Hardware> Books<'a, H> {
    /// The call Break: the bindings of others to an own page, 64 at a time ([`Error::Again`]).
    pub fn break_others(&self, caller: u16, page: u32) -> Result<(), Error> {
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        let _lock = self.lock_page(page);
        if record.owner.load(Relaxed) != caller {
            return Err(Error::Denied);
        }
        if self.break_bindings(page, Some(caller)) {
            Ok(())
        } else {
            Err(Error::Again)
        }
    }

    /// Breaks bindings to a page that is locked, but those in tables of one environment, which
    /// must be its owner. Whether no other is left, and no device uses the page.
    pub(crate) fn break_bindings(&self, page: u32, keep: Option<u16>) -> bool {
        let record = self.record(page);
        let mut windows = false;
        let mut holders = [0u64; 4];
        let done = (0..=AT_ONCE).find_map(|count| {
            let first = record.first.load(Relaxed);
            if first == NONE {
                return Some(true);
            }
            let holder = self.holder(first);
            if keep == Some(holder) {
                return Some(true);
            }
            if count == AT_ONCE {
                return Some(false);
            }
            windows |= is(self.record(first >> 9), Kind::Window);
            self.unlink(record, first);
            self.slot(first).store(0, Release);
            holders[usize::from(holder >> 6) & 3] |= 1 << (holder & 63);
            None
        });
        for (index, mut word) in holders.into_iter().enumerate() {
            while word != 0 {
                self.hardware
                    .shoot(index as u16 * 64 + word.trailing_zeros() as u16);
                word &= word - 1;
            }
        }
        if windows {
            self.hardware.shoot_windows();
        }
        done == Some(true) && !self.is_lent(page)
    }

    /// Makes a page of memory one that leaves its owner, and breaks bindings to it. Whether none
    /// is left. It is locked.
    pub(crate) fn break_all(&self, page: u32) -> bool {
        let kind = &self.record(page).kind;
        kind.store(Kind::Leaving as u8, Relaxed);
        self.break_bindings(page, None)
    }

    /// Takes an entry out of a table of an environment that is claimed. Whether there was one.
    pub(crate) fn unbind(&self, table: u32, index: usize) -> bool {
        let slot = &self.hardware.words(table)[index & 511];
        let page = match slot.load(Acquire) {
            0 => return false,
            entry => entry::page(entry),
        };
        let _lock = self.lock_page(page);
        // It may have been broken before the page was locked.
        if slot.load(Relaxed) == 0 {
            return false;
        }
        self.unlink(&self.pages[page as usize], binding(table, index));
        slot.store(0, Release);
        true
    }

    /// Whether a page is memory of one of two. It is locked, or bound by who asks.
    pub(crate) fn may_own(&self, record: &Page, (one, other): (u16, u16)) -> bool {
        let owner = record.owner.load(Relaxed);
        let kind = record.kind.load(Relaxed);
        let memory = kind == Kind::Data as u8 || kind == Kind::Context as u8;
        (owner == one || owner == other) && memory
    }

    /// Whether somebody may bind a page, by a mapping's flags. It is locked.
    pub(crate) fn may_bind(
        &self,
        record: &Page,
        (caller, environment): (u16, u16),
        flags: u64,
        capability: u64,
    ) -> Result<(), Error> {
        let kind = record.kind.load(Relaxed);
        if kind != Kind::Data as u8 && kind != Kind::Context as u8 {
            return self.may_look(kind, flags);
        }
        let write = flags & entry::WRITE != 0;
        if self.may_own(record, (caller, environment)) || self.lets(record, write, capability) {
            Ok(())
        } else {
            Err(Error::Denied)
        }
    }

    /// What the processor or the kernel reads as table or links, everybody may read, and nothing
    /// else.
    #[cold]
    fn may_look(&self, kind: u8, flags: u64) -> Result<(), Error> {
        const READ: core::ops::RangeInclusive<u8> = Kind::Links as u8..=Kind::Table4 as u8;
        let more = postern_aegis_abi::Mapping::WRITE | postern_aegis_abi::Mapping::EXECUTE;
        if READ.contains(&kind) && flags & more == 0 {
            Ok(())
        } else {
            Err(Error::Kind)
        }
    }

    /// Who has the table of a binding. It stays the same while the page that is bound is locked.
    fn holder(&self, binding: u32) -> u16 {
        self.pages[binding as usize >> 9].owner.load(Relaxed)
    }

    fn slot(&self, binding: u32) -> &'a AtomicU64 {
        &self.hardware.words(binding >> 9)[binding as usize & 511]
    }

    /// The word of links of a binding.
    fn links(&self, binding: u32) -> &'a AtomicU64 {
        let page = self.pages[binding as usize >> 9].read.load(Relaxed);
        &self.hardware.words(page)[binding as usize & 511]
    }

    /// Enters a binding in the list of a page that is locked. Those of its owner go behind others.
    pub(crate) fn link(&self, record: &Page, table: u32, index: usize, environment: u16) {
        let new = binding(table, index);
        let first = record.first.load(Relaxed);
        if first == NONE {
            link_only(record, new, self.links(new));
            return;
        }
        let count = record.bindings.load(Relaxed);
        record.bindings.store(count.wrapping_add(1), Relaxed);
        let word = self.links(first).load(Relaxed);
        let last = previous(word);
        self.links(first).store(links(new, next(word)), Relaxed);
        if record.owner.load(Relaxed) != environment {
            self.links(new).store(links(last, first), Relaxed);
            record.first.store(new, Relaxed);
            return;
        }
        let word = self.links(last).load(Relaxed);
        self.links(last).store(links(previous(word), new), Relaxed);
        self.links(new).store(links(last, NONE), Relaxed);
    }

    /// Takes a binding out of the list of a page that is locked.
    pub(crate) fn unlink(&self, record: &Page, old: u32) {
        let word = self.links(old).load(Relaxed);
        let first = record.first.load(Relaxed);
        let count = record.bindings.load(Relaxed);
        record.bindings.store(count.wrapping_sub(1), Relaxed);
        if first == old {
            record.first.store(next(word), Relaxed);
            if next(word) == NONE {
                return;
            }
        } else {
            let before = self.links(previous(word));
            before.store(
                links(self::previous(before.load(Relaxed)), next(word)),
                Relaxed,
            );
        }
        let behind = self.links(if next(word) != NONE {
            next(word)
        } else {
            first
        });
        behind.store(
            links(previous(word), self::next(behind.load(Relaxed))),
            Relaxed,
        );
    }

    /// Forgets the names of a page that is locked: only its owner binds it from now on.
    pub(crate) fn forget_names(&self, record: &Page) {
        const { assert!(NAME_NOBODY == 0 && NAME_EVERYBODY != 0) };
        record.read.store(NAME_NOBODY, Relaxed);
        record.write.store(NAME_NOBODY, Relaxed);
    }
}

/// Makes a binding, with its word of links, the only one of a page that is locked.
#[inline(always)]
pub(crate) fn link_only(record: &Page, new: u32, word: &AtomicU64) {
    record.bindings.store(1, Relaxed);
    record.first.store(new, Relaxed);
    word.store(links(new, NONE), Relaxed);
}

/// Takes the only binding of a page that is locked away.
#[inline(always)]
pub(crate) fn unlink_only(record: &Page) {
    record.bindings.store(0, Relaxed);
    record.first.store(NONE, Relaxed);
}
