//! Physical pages: the free list, the owners' lists, and how a page goes from one to another.
//!
//! Invariant: a page is in the free list (kind `Free`), in the list of its owner, or the kernel's
//! and in none. An environment's count of pages is the length of its list, at most its limit
//! except where [`found`](Books::found) says so. A page comes to the free list, or to another
//! owner by force, only when nothing binds it, and is cleared before somebody gets it.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::records::{Environment, Kind, NONE, Page};
use postern_aegis_abi::{ENVIRONMENTS, Error};

use crate::kind::is;
use crate::list::List;
use crate::lock::Lock;
use crate::{Books, Hardware};

/// The number of a binding has 32 bits, 9 of them an index, and must not be NONE.
const PAGES: usize = (1 << 23) - 1;

/// Pages that one call hands over.
const AT_ONCE: usize = 64;

impl<'a, H: Hardware> Books<'a, H> {
    /// Writes all records of pages, at the start: the usable ones are free, the others are the
    /// kernel's. No environment has any then ([`Environment::first`] is set, too).
    pub fn start_pages(&self, usable: impl Fn(u32) -> bool) {
        self.machine.pages.store(self.pages.len() as u32, Relaxed);
        self.machine.first_free.store(NONE, Relaxed);
        self.machine.free.store(0, Relaxed);
        for environment in &self.machine.environments {
            environment.first.store(NONE, Relaxed);
        }
        for (page, record) in self.pages.iter().enumerate().rev() {
            record.kind.store(Kind::Kernel as u8, Relaxed);
            record.owner.store(0, Relaxed);
            record.first.store(NONE, Relaxed);
            record.next.store(NONE, Relaxed);
            record.previous.store(NONE, Relaxed);
            if page < PAGES && usable(page as u32) {
                self.put_free(page as u32);
            }
        }
    }

    /// A page's number, if there is one of this number ([`Error::Argument`]).
    pub fn number(&self, page: u64) -> Result<u32, Error> {
        if page < self.pages.len() as u64 {
            Ok(page as u32)
        } else {
            Err(Error::Argument)
        }
    }

    /// The call. [`Error::Exhausted`] if no page is free: asking others for one is the caller's.
    pub fn allocate(
        &self,
        caller: u16,
        page: Option<u32>,
        read: u32,
        write: u32,
    ) -> Result<u32, Error> {
        if page.is_some_and(|page| page as usize >= self.pages.len()) {
            return Err(Error::Argument);
        }
        let owner = self.environment(caller);
        let _list = self.lock_environment(caller);
        if !room(owner, 1) {
            return Err(Error::Quota);
        }
        let page = self.take_free(page)?;
        self.hardware.clear(page);
        let record = self.record(page);
        let _lock = self.lock_page(page);
        record.read.store(read, Relaxed);
        record.write.store(write, Relaxed);
        record.kind.store(Kind::Data as u8, Relaxed);
        self.enter(caller, page);
        Ok(page)
    }

    /// The call.
    pub fn free(&self, caller: u16, page: u32) -> Result<(), Error> {
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        let _list = self.lock_environment(caller);
        let _lock = self.lock_page(page);
        self.memory_of(caller, record)?;
        if !self.break_all(page) {
            return Err(Error::Again);
        }
        self.retire(caller, page);
        Ok(())
    }

    /// The call.
    pub fn rename(&self, caller: u16, page: u32, read: u32, write: u32) -> Result<(), Error> {
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        let _lock = self.lock_page(page);
        if record.owner.load(Relaxed) != caller {
            return Err(Error::Denied);
        }
        if !is(record, Kind::Data) && !is(record, Kind::Context) {
            return Err(Error::Kind);
        }
        record.read.store(read, Relaxed);
        record.write.store(write, Relaxed);
        Ok(())
    }

    /// The call. Bindings of others but the giver's are broken, 64 at a time ([`Error::Again`]),
    /// and the page's names are nobody's.
    pub fn give(&self, caller: u16, page: u32, to: u16) -> Result<(), Error> {
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        let _lists = self.lock_receiver(caller, to)?;
        let _lock = self.lock_page(page);
        if record.owner.load(Relaxed) != caller {
            return Err(Error::Denied);
        }
        if !is(record, Kind::Data) {
            return Err(Error::Kind);
        }
        self.hand(caller, page, to)
    }

    /// The page that would be taken by force from an environment: memory, not guaranteed; one that
    /// is already on its way before others.
    pub fn victim(&self, environment: u16) -> Option<u32> {
        let _list = self.lock_environment(environment);
        let mut page = self.environment(environment).first.load(Relaxed);
        let mut found = None;
        // More than there can be guaranteed ones.
        for _ in 0..2 * postern_aegis_abi::context::GUARANTEES {
            let record = self.pages.get(page as usize)?;
            if is(record, Kind::Leaving) {
                return Some(page);
            }
            if !is(record, Kind::Data) {
                break;
            }
            if found.is_none() && !self.is_guaranteed(environment, page) {
                found = Some(page);
            }
            page = record.next.load(Relaxed);
            if page == NONE {
                break;
            }
        }
        found
    }

    /// By force, first: nobody binds this page of the environment any more. [`Error::Again`]: some
    /// bindings are left; [`Books::victim`] names it again.
    pub fn take(&self, environment: u16, page: u32) -> Result<(), Error> {
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        let _list = self.lock_environment(environment);
        let _lock = self.lock_page(page);
        self.memory_of(environment, record)?;
        if self.break_all(page) {
            return Ok(());
        }
        let list = self.list(environment);
        list.remove(page);
        list.push_front(page);
        Err(Error::Again)
    }

    /// By force, second: copies a taken page to one that its owner may store to, by ownership or
    /// capability.
    pub fn save(
        &self,
        environment: u16,
        page: u32,
        place: u32,
        capability: u64,
    ) -> Result<(), Error> {
        let to = self.pages.get(place as usize).ok_or(Error::Argument)?;
        let from = self.pages.get(page as usize).ok_or(Error::Argument)?;
        if place == page {
            return Err(Error::Argument);
        }
        let _first = self.lock_page(page.min(place));
        let _second = self.lock_page(page.max(place));
        self.taken_from(environment, from)?;
        if !is(to, Kind::Data) {
            return Err(Error::Kind);
        }
        if to.owner.load(Relaxed) != environment && !self.lets(to, true, capability) {
            return Err(Error::Denied);
        }
        self.hardware.copy(page, place);
        Ok(())
    }

    /// By force, last: a taken page is free.
    pub fn drop_taken(&self, environment: u16, page: u32) -> Result<(), Error> {
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        let _list = self.lock_environment(environment);
        let _lock = self.lock_page(page);
        self.taken_from(environment, record)?;
        self.retire(environment, page);
        Ok(())
    }

    /// By force, last: a taken page is another's, with its contents, if that one lives and has
    /// room for it ([`Error::NoEnvironment`], [`Error::Quota`]).
    pub fn hand_taken(&self, environment: u16, page: u32, to: u16) -> Result<(), Error> {
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        let _lists = self.lock_receiver(environment, to)?;
        let _lock = self.lock_page(page);
        self.taken_from(environment, record)?;
        self.hand(environment, page, to)
    }

    /// For [`Call::Submit`](postern_aegis_abi::Call::Submit): memory of an environment that stands
    /// still becomes another's, and stays bound where it is. Tables, links and the context stay.
    /// In pieces ([`Error::Again`]).
    pub fn hand_over(&self, from: u16, to: u16) -> Result<(), Error> {
        let _lists = self.lock_receiver(from, to)?;
        for _ in 0..AT_ONCE {
            let page = self.environment(from).first.load(Relaxed);
            let Some(record) = self.pages.get(page as usize) else {
                return Ok(());
            };
            let _lock = self.lock_page(page);
            if is(record, Kind::Data) {
                self.hand(from, page, to)?;
            } else if !is(record, Kind::Leaving) {
                return Ok(());
            } else if self.break_all(page) {
                self.retire(from, page);
            }
        }
        Err(Error::Again)
    }

    /// A page whose number is in the books.
    pub(crate) fn record(&self, page: u32) -> &'a Page {
        &self.pages[page as usize]
    }

    /// The list of an environment's pages.
    pub(crate) fn list(&self, environment: u16) -> List<'a> {
        List {
            pages: self.pages,
            first: &self.environment(environment).first,
        }
    }

    /// Locks an environment and another one that lives, and is about to get something from it: who
    /// has ended gets nothing, so its death comes to an end.
    pub(crate) fn lock_receiver(
        &self,
        from: u16,
        to: u16,
    ) -> Result<(Lock<'a>, Option<Lock<'a>>), Error> {
        if to == 0 || usize::from(to) >= ENVIRONMENTS {
            return Err(Error::NoEnvironment);
        }
        let locks = self.lock_both(from, to);
        if self.lives(to) {
            Ok(locks)
        } else {
            Err(Error::NoEnvironment)
        }
    }

    /// Makes a page an environment's and enters it in its list, before others. Both are locked.
    pub(crate) fn enter(&self, environment: u16, page: u32) {
        let owner = self.environment(environment);
        let record = self.record(page);
        record.owner.store(environment, Relaxed);
        record.birth.store(owner.birth.load(Relaxed), Relaxed);
        self.list(environment).push_front(page);
        owner
            .pages
            .store(owner.pages.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Takes a page out of its owner's list. Both are locked.
    pub(crate) fn leave(&self, environment: u16, page: u32) {
        let owner = self.environment(environment);
        self.list(environment).remove(page);
        owner
            .pages
            .store(owner.pages.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// Makes a page that nothing binds free. It and its owner are locked.
    pub(crate) fn retire(&self, environment: u16, page: u32) {
        let record = self.record(page);
        self.leave(environment, page);
        record.owner.store(0, Relaxed);
        record.birth.store(0, Relaxed);
        self.forget_names(record);
        let _free = self.lock_free();
        self.put_free(page);
    }

    /// Makes a page another's who has room for it, and memory. It and both are locked.
    fn hand(&self, from: u16, page: u32, to: u16) -> Result<(), Error> {
        let record = self.record(page);
        if from != to && !room(self.environment(to), 1) {
            return Err(Error::Quota);
        }
        // Without names, nobody but the giver binds it between two pieces. What is left are the
        // giver's, all others' to the receiver: so the list's order holds.
        self.forget_names(record);
        if !self.break_bindings(page, Some(from)) {
            return Err(Error::Again);
        }
        self.leave(from, page);
        record.kind.store(Kind::Data as u8, Relaxed);
        self.enter(to, page);
        Ok(())
    }

    /// Checks that a page is memory of an environment that it may give away.
    fn memory_of(&self, environment: u16, record: &Page) -> Result<(), Error> {
        if record.owner.load(Relaxed) != environment {
            return Err(Error::Denied);
        }
        if !is(record, Kind::Data) && !is(record, Kind::Leaving) {
            return Err(Error::Kind);
        }
        Ok(())
    }

    /// Checks that a page is one that was taken from an environment, which is still so: it may
    /// have freed it itself.
    fn taken_from(&self, environment: u16, record: &Page) -> Result<(), Error> {
        let taken = is(record, Kind::Leaving) && record.first.load(Relaxed) == NONE;
        if record.owner.load(Relaxed) == environment && taken {
            Ok(())
        } else {
            Err(Error::Denied)
        }
    }

    fn free_list(&self) -> List<'a> {
        List {
            pages: self.pages,
            first: &self.machine.first_free,
        }
    }

    /// Takes a page out of the free list; it is the kernel's then.
    fn take_free(&self, page: Option<u32>) -> Result<u32, Error> {
        let _free = self.lock_free();
        let page = match page {
            Some(page) if !is(self.record(page), Kind::Free) => return Err(Error::Taken),
            Some(page) => page,
            None => self.machine.first_free.load(Relaxed),
        };
        let record = self.pages.get(page as usize).ok_or(Error::Exhausted)?;
        self.free_list().remove(page);
        record.kind.store(Kind::Kernel as u8, Relaxed);
        self.machine
            .free
            .store(self.machine.free.load(Relaxed).wrapping_sub(1), Relaxed);
        Ok(page)
    }

    /// Enters a page in the free list, which is locked.
    fn put_free(&self, page: u32) {
        self.record(page).kind.store(Kind::Free as u8, Relaxed);
        self.free_list().push_front(page);
        self.machine
            .free
            .store(self.machine.free.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// Whether an environment may have so many pages more. It is locked.
pub(crate) fn room(environment: &Environment, more: u32) -> bool {
    let limit = environment.pages_limit.load(Relaxed);
    environment
        .pages
        .load(Relaxed)
        .checked_add(more)
        .is_some_and(|pages| pages <= limit)
}
