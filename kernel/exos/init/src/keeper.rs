//! Pages that processes gave to be kept for several of them: shared memory, and what parent and
//! child have alike after a fork. Nobody's death takes them. One that nobody binds any more is free:
//! there is no counting that a crash could get wrong, since the kernel's books say who binds what.
//!
//! Invariant: a page of the root's is its own (program, archive, mailboxes: marked so before anybody
//! could give it), kept, or was given and not kept yet; the last become free when nobody binds them, or after a while.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::call::{NAME_EVERYBODY, NAME_NOBODY, RIGHT_READ, RIGHT_WRITE};
use postern_aegis::records::{Kind, NONE};
use postern_aegis::{Error, ROOT, books, calls, pages, slices};
use postern_exos_abi::errno::{self, Errno};

/// Pages that the machine may have: those beyond are not kept.
const PAGES: usize = 1 << 17;

/// What a page of the root's is.
const UNKNOWN: u8 = 0;
const OWN: u8 = 1;
const SEEN: u8 = 2;
/// From here on: kept, for a tree of this number plus this.
const KEPT: u8 = 64;

/// What the root keeps.
#[derive(Debug)]
pub struct Keeper {
    marks: [u8; PAGES],
    own: u32,
    kept: u32,
    name: u32,
    /// Pages per tree that became free and are not told yet.
    freed: [u32; 128],
    some: bool,
    /// The age of the machine, in [`AGE`], at the last sweep.
    age: u64,
    /// Whether the machine is older by one than at the sweep before.
    later: bool,
    /// So many pages were given and not kept that somebody hoards them.
    crowd: bool,
    /// Something may have become free.
    looks: bool,
}

/// Looks that find a page bound by nobody.
const LOOKS: u32 = 32;

/// Pages that may be given and not be kept yet, of all together.
const CROWD: u32 = 4096;

/// Ticks within which somebody that gives pages asks for them to be kept, on whatever processor.
const AGE: u64 = 512;

impl Keeper {
    /// Nothing.
    pub const fn new() -> Keeper {
        Keeper {
            marks: [UNKNOWN; PAGES],
            own: 0,
            kept: 0,
            name: NAME_EVERYBODY,
            freed: [0; 128],
            some: false,
            age: 0,
            later: false,
            crowd: false,
            looks: false,
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
        self.forget_own(page);
        let _ = pages::free(page);
    }

    /// One is another's from now on.
    pub fn forget_own(&mut self, page: u32) {
        if let Some(mark) = self.marks.get_mut(page as usize)
            && *mark == OWN
        {
            *mark = UNKNOWN;
            self.own -= 1;
        }
    }

    /// Whether a page was given by this environment and may be kept: nobody but the giver can have
    /// bound it since, so it is bound, and by nobody else.
    fn was_given(&self, page: u32, by: u16) -> bool {
        let mark = self.marks.get(page as usize);
        let Some(record) = books::page(page) else {
            return false;
        };
        let table = record.first.load(Relaxed);
        mark.is_some_and(|mark| *mark < KEPT && *mark != OWN)
            && record.owner.load(Relaxed) == ROOT
            && books::kind(record) == Some(Kind::Data)
            && table != NONE
            && books::page(table >> 9).is_some_and(|table| table.owner.load(Relaxed) == by)
    }

    /// Keeps pages that an environment gave, for a tree: the capabilities to read and, if asked, to
    /// write them. Pages that it did not give change nothing.
    pub fn keep(
        &mut self,
        given: impl Iterator<Item = u32> + Clone,
        by: u16,
        tree: u8,
        writes: bool,
    ) -> Result<[u64; 2], Errno> {
        if !given.clone().all(|page| self.was_given(page, by)) {
            return Err(errno::PERM);
        }
        self.name = self.name.checked_add(1).unwrap_or(NAME_EVERYBODY + 1);
        let write = if writes { self.name } else { NAME_NOBODY };
        for page in given {
            // The same twice is one.
            if self.mark(page) >= KEPT {
                continue;
            }
            if calls::rename(page, self.name, write).is_ok() {
                self.marks[page as usize] = KEPT.saturating_add(tree);
                self.kept += 1;
            } else {
                return Err(errno::PERM);
            }
        }
        let capability = |right| calls::capability(self.name, right, 0);
        let read = capability(RIGHT_READ).map_err(|_| errno::PERM)?;
        let write = match writes {
            true => capability(RIGHT_WRITE).map_err(|_| errno::PERM)?,
            false => 0,
        };
        Ok([read, write])
    }

    fn mark(&self, page: u32) -> u8 {
        self.marks.get(page as usize).copied().unwrap_or(UNKNOWN)
    }

    /// Something may have become free.
    pub fn look(&mut self) {
        self.looks = true;
    }

    /// Frees what nobody binds any more, and what was given and is not kept. What was given last stands
    /// first in the root's list, and what is its own behind.
    pub fn sweep(&mut self) {
        let has = books::environment(ROOT).pages.load(Relaxed);
        let others = has.saturating_sub(self.own);
        if !core::mem::take(&mut self.looks) && others == self.kept {
            return;
        }
        let age = slices::ticks(0) / AGE;
        self.later = core::mem::replace(&mut self.age, age) != age;
        self.crowd = others.saturating_sub(self.kept) > CROWD;
        let mut left = others;
        for page in books::pages_of(books::environment(ROOT)) {
            if left == 0 {
                return;
            }
            if self.mark(page) != OWN {
                left -= 1;
                self.sweep_page(page);
            }
        }
    }

    fn sweep_page(&mut self, page: u32) {
        let Some(record) = books::page(page) else {
            return;
        };
        if record.owner.load(Relaxed) != ROOT {
            return;
        }
        if books::kind(record) != Some(Kind::Data) {
            // A table of its own space.
            return self.mark_own(page);
        }
        let mark = self.mark(page);
        // Who binds a page anew, on another processor, has it unbound for a moment.
        let unbound = (0..LOOKS).all(|_| {
            core::hint::spin_loop();
            record.first.load(Relaxed) == NONE
        });
        match mark {
            // The giver has it bound, and is about to ask: ticks say nothing of how long that takes on
            // another processor. Only where many wait so, somebody hoards.
            UNKNOWN if self.later && self.crowd || unbound => {
                self.marks[page as usize % PAGES] = SEEN
            }
            SEEN if self.later && self.crowd || unbound => self.free(page, mark),
            KEPT.. if unbound => self.free(page, mark),
            _ => {}
        }
    }

    fn free(&mut self, page: u32, mark: u8) {
        if calls::free(page).is_err() {
            return;
        }
        self.marks[page as usize] = UNKNOWN;
        if mark >= KEPT {
            self.kept -= 1;
            let freed = self.freed.get_mut(usize::from(mark - KEPT));
            if let Some(freed) = freed {
                *freed += 1;
                self.some = true;
            }
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
