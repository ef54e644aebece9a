//! Pages that processes gave to be kept for several of them: shared memory, and what parent and
//! child have alike after a fork. Nobody's death takes them. One that nobody binds any more is free:
//! there is no counting that a crash could get wrong, since the kernel's books say who binds what.
//!
//! Invariant: a page of the root's is its own (program, archive, mailboxes: marked so before anybody
//! could give it), kept, or was given and not kept yet.
//!
//! Other processors bind and unbind pages while this looks, so each decision holds whatever they do:
//!
//! - A page that was given has no names, and the root binds none, so nobody can bind it but the giver,
//!   who has it bound when it gives: one that is found unbound was left by its giver for good, and one
//!   that is bound is bound by its giver alone.
//! - A kept page that is found unbound loses its names first. Then nobody can bind it any more, and it is
//!   looked at again: it is free if it is unbound still, and gets its names back otherwise. So whoever
//!   could bind it has it for good, and others are refused.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::ENVIRONMENTS;
use postern_aegis::abi::call::{NAME_EVERYBODY, NAME_NOBODY, RIGHT_READ, RIGHT_WRITE};
use postern_aegis::records::{Kind, NONE, Page};
use postern_aegis::{Error, ROOT, books, calls, pages};
use postern_exos_abi::errno::{self, Errno};

use crate::tree::TREES;

/// Pages that the machine may have: those beyond are not kept.
const PAGES: usize = 1 << 17;

/// What a page of the root's is: given and not kept, if it is not one of the others.
const GIVEN: u8 = 0;
const OWN: u8 = 1;
/// From here on: kept, for a tree of this number plus this.
const KEPT: u8 = 64;

const _: () = assert!(TREES + KEPT as usize <= 256);

/// What the root keeps.
#[derive(Debug)]
pub struct Keeper {
    marks: [u8; PAGES],
    own: u32,
    name: u32,
    /// Pages per tree that became free and are not told yet.
    freed: [u32; TREES],
    some: bool,
    /// Pages that were given and are not kept, by giver, as far as they were looked at.
    given: [u32; ENVIRONMENTS],
}

/// Pages that are kept from now on.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// How many.
    pub count: u32,
    /// The capability to read them.
    pub read: u64,
    /// The capability to write them, or 0.
    pub write: u64,
}

impl Keeper {
    /// Nothing.
    pub const fn new() -> Keeper {
        Keeper {
            marks: [GIVEN; PAGES],
            own: 0,
            name: NAME_EVERYBODY,
            freed: [0; TREES],
            some: false,
            given: [0; ENVIRONMENTS],
        }
    }

    /// All that the root has now is its own.
    pub fn open(&mut self) {
        for page in books::pages_of(books::environment(ROOT)) {
            self.mark_own(page);
        }
    }

    fn mark_own(&mut self, page: u32) {
        if let Some(mark) = self.marks.get_mut(page as usize) {
            self.own += u32::from(*mark != OWN);
            *mark = OWN;
        }
    }

    /// Takes a page for the root itself.
    pub fn take_own(&mut self) -> Result<u32, Error> {
        let page = pages::take()?;
        self.mark_own(page);
        Ok(page)
    }

    /// Gives one back.
    pub fn free_own(&mut self, page: u32) {
        // One that is not free yet was given by nobody: a sweep frees it.
        let _ = pages::free(page);
        if let Some(mark) = self.marks.get_mut(page as usize)
            && *mark == OWN
        {
            *mark = GIVEN;
            self.own -= 1;
        }
    }

    fn mark(&self, page: u32) -> u8 {
        self.marks.get(page as usize).copied().unwrap_or(OWN)
    }

    /// Whether all these were given by an environment, and are not kept.
    fn were_given(&self, numbers: &[u32], by: u16) -> bool {
        numbers.iter().all(|page| {
            let given = books::page(*page).is_some_and(|record| {
                record.owner.load(Relaxed) == ROOT
                    && books::kind(record) == Some(Kind::Data)
                    && giver(record) == Some(by)
            });
            given && self.mark(*page) == GIVEN
        })
    }

    /// Keeps pages that an environment gave, for a tree, with a name of their own. Is one among them
    /// that it did not give, nothing changes.
    pub fn keep(
        &mut self,
        numbers: &[u32],
        by: u16,
        tree: u8,
        writes: bool,
    ) -> Result<Kept, Errno> {
        if !self.were_given(numbers, by) {
            return Err(errno::PERM);
        }
        self.name()?;
        let write = if writes { self.name } else { NAME_NOBODY };
        let capability = |right| calls::capability(self.name, right, 0);
        let mut kept = Kept {
            count: 0,
            read: capability(RIGHT_READ).map_err(|_| errno::PERM)?,
            write: match writes {
                true => capability(RIGHT_WRITE).map_err(|_| errno::PERM)?,
                false => 0,
            },
        };
        for page in numbers {
            // The same twice is one.
            if self.mark(*page) == GIVEN && calls::rename(*page, self.name, write).is_ok() {
                self.marks[*page as usize] = KEPT + tree;
                kept.count += 1;
            }
        }
        Ok(kept)
    }

    /// A fresh name. None is used again: who had a capability of it has it still.
    pub fn name(&mut self) -> Result<u32, Errno> {
        self.name = self.name.checked_add(1).ok_or(errno::NFILE)?;
        Ok(self.name)
    }

    /// Frees what nobody binds any more, and of what was given and is not kept what each giver has
    /// beyond what it may have.
    pub fn sweep(&mut self, may_have: impl Fn(u16) -> u32) {
        let has = books::environment(ROOT).pages.load(Relaxed);
        let mut left = has.saturating_sub(self.own);
        self.given = [0; ENVIRONMENTS];
        // What was given last stands first in the root's list, and what is its own behind.
        for page in books::pages_of(books::environment(ROOT)) {
            if left == 0 {
                return;
            }
            if self.mark(page) != OWN {
                left -= 1;
                self.sweep_page(page, &may_have);
            }
        }
    }

    fn sweep_page(&mut self, page: u32, may_have: impl Fn(u16) -> u32) {
        let Some(record) = books::page(page) else {
            return;
        };
        if record.owner.load(Relaxed) != ROOT {
            return;
        }
        match books::kind(record) {
            Some(Kind::Data) => {}
            // A device was not done with it.
            Some(Kind::Leaving) => return self.free(page),
            // A table of the root's own space.
            _ => return self.mark_own(page),
        }
        let mark = self.mark(page);
        if mark >= KEPT {
            if record.first.load(Relaxed) == NONE && is_left(page, record) {
                self.free(page);
            }
            return;
        }
        if record.first.load(Relaxed) == NONE {
            return self.free(page);
        }
        // Its giver is binding it anew: at the next look.
        let Some(giver) = giver(record) else {
            return;
        };
        let given = &mut self.given[usize::from(giver) % ENVIRONMENTS];
        *given += 1;
        if *given > may_have(giver) {
            self.free(page);
        }
    }

    fn free(&mut self, page: u32) {
        if calls::free(page).is_err() {
            return;
        }
        let mark = core::mem::replace(&mut self.marks[page as usize % PAGES], GIVEN);
        let tree = mark.checked_sub(KEPT).map(usize::from);
        if let Some(freed) = tree.and_then(|tree| self.freed.get_mut(tree)) {
            *freed += 1;
            self.some = true;
        }
    }

    /// A tree of which pages became free since this was asked, and how many.
    pub fn freed(&mut self) -> Option<(u8, u32)> {
        if !core::mem::take(&mut self.some) {
            return None;
        }
        let tree = self.freed.iter().position(|count| *count > 0)?;
        self.some = true;
        Some((tree as u8, core::mem::take(&mut self.freed[tree])))
    }
}

/// Who binds a page that was given and is not kept.
fn giver(record: &Page) -> Option<u16> {
    let first = record.first.load(Relaxed);
    if first == NONE {
        return None;
    }
    let table = books::page(first >> 9)?;
    let giver = table.owner.load(Relaxed);
    // Otherwise the table may have been another's already.
    (record.first.load(Relaxed) == first).then_some(giver)
}

/// Whether nobody binds a page, nor can from now on. If somebody did just now, its names stay.
fn is_left(page: u32, record: &Page) -> bool {
    let [read, write] = [&record.read, &record.write].map(|name| name.load(Relaxed));
    if calls::rename(page, NAME_NOBODY, NAME_NOBODY).is_err() {
        return false;
    }
    if record.first.load(Relaxed) == NONE {
        return true;
    }
    let _ = calls::rename(page, read, write);
    false
}
