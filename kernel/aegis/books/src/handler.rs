//! Handlers: accepted code that runs in the kernel when a message arrives, in a window of its own.
//!
//! Invariants: a handler's window has the pages of slots and text that were given for it, which
//! nobody stores to while it lives, and what its owner has bound there, each as a binding like any
//! other. Holdings are locked while its table is filled. An entry that is taken out while the
//! window is open is unknown to every processor before the page's lock is given back. A window
//! closes before its pages are memory again.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use postern_aegis_abi::address::{MESSAGE, index};
use postern_aegis_abi::mapping::Request;
use postern_aegis_abi::records::{Holding, HoldingKind, Kind, binding, run};
use postern_aegis_abi::{Context, Error, Mapping, PAGE};

use crate::kind::is;
use crate::user::bytes;
use crate::{Books, Hardware, entry};

/// Slices that an owner may owe, and its handlers still run.
const DEBTS: u32 = 16;

/// What the judge found out about a handler's code. Offsets are in its window.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// Where slots begin, in front of text: a multiple of a page.
    pub from: u32,
    /// Where text ends: a multiple of a page.
    pub to: u32,
    /// Where it is entered.
    pub entry: u32,
    /// The end of its data stack.
    pub stack: u32,
    /// Instructions on the longest path; 0: there are loops.
    pub path: u32,
}

/// A handler that is about to run for an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Its number.
    pub handler: usize,
    /// Whose it is.
    pub owner: u16,
    /// Its window's table.
    pub table: u32,
    /// Where it is entered.
    pub entry: u32,
    /// The end of its data stack.
    pub stack: u32,
    /// Instructions on the longest path; 0: there are loops.
    pub path: u32,
}

/// How a run ended otherwise than by returning: [`run`], and at which instruction.
pub type Ended = (u32, u64);

impl<'a, H: Hardware> Books<'a, H> {
    /// The call, for code that was accepted: own pages become the window's table, its links, and
    /// slots and text, which `fill` writes (the how many-th of them, and where it goes). The
    /// handler's number.
    pub fn make_handler(
        &self,
        caller: u16,
        pages: &[u32],
        code: &Code,
        mut fill: impl FnMut(usize, u32),
    ) -> Result<usize, Error> {
        let (&[table, links], texts) = pages.split_first_chunk().ok_or(Error::Argument)?;
        let fits = code.from < code.to
            && u64::from(code.to) <= MESSAGE
            && ((code.from | code.to) as usize).is_multiple_of(PAGE)
            && texts.len() == (code.to - code.from) as usize / PAGE;
        if !fits {
            return Err(Error::Argument);
        }
        let _holdings = self.lock_holdings();
        let number = self.take_holding(caller, HoldingKind::Handler)?;
        let made = self.give_pages(caller, table, links, texts);
        if let Err(error) = made {
            self.free_holding(number);
            return Err(error);
        }
        let record = self.record(table);
        record.write.store(number as u32, Relaxed);
        for (at, &page) in texts.iter().enumerate() {
            fill(at, page);
        }
        self.hardware.constant(&mut texts.iter().copied(), true);
        let words = self.hardware.words(table);
        for (word, &page) in words[index(code.from.into(), 1)..].iter().zip(texts) {
            word.store(u64::from(page) << 12 | entry::PRESENT, Relaxed);
        }
        let holding = self.holding(number);
        for (word, value) in [
            (&holding.table, table),
            (&holding.entry, code.entry),
            (&holding.stack, code.stack),
            (&holding.path, code.path),
        ] {
            word.store(value, Relaxed);
        }
        self.hardware.window_opens(number, table);
        Ok(number)
    }

    /// Makes pages of memory a table, its links and texts; all of them or none.
    fn give_pages(&self, caller: u16, table: u32, links: u32, texts: &[u32]) -> Result<(), Error> {
        let _list = self.lock_environment(caller);
        let all = [(table, Kind::Window), (links, Kind::Links)].into_iter();
        let all = || {
            all.clone()
                .chain(texts.iter().map(|&page| (page, Kind::Text)))
        };
        for (count, (page, kind)) in all().enumerate() {
            let given = self.lock_unbound([caller; 2], page, None).map(|_lock| {
                self.hardware.clear(page);
                self.pin(caller, page, kind);
            });
            if let Err(error) = given {
                all()
                    .take(count)
                    .for_each(|(page, _)| self.unpin(caller, page));
                return Err(error);
            }
        }
        self.record(table).read.store(links, Relaxed);
        self.record(links).read.store(table, Relaxed);
        Ok(())
    }

    /// The call: binds a page at an offset of an own handler's window, in the place of what is
    /// there, or only takes that away.
    pub fn window(
        &self,
        caller: u16,
        handler: u64,
        offset: u64,
        mapping: Mapping,
        capability: u64,
    ) -> Result<(), Error> {
        if offset >= MESSAGE || !offset.is_multiple_of(PAGE as u64) {
            return Err(Error::Argument);
        }
        let _holdings = self.lock_holdings();
        let number = self.own(caller, handler, HoldingKind::Handler)?;
        let table = self.holding(number).table.load(Relaxed);
        let at = index(offset, 1);
        let word = &self.hardware.words(table)[at];
        let old = self.pages.get(entry::page(word.load(Acquire)) as usize);
        if word.load(Relaxed) != 0 && old.is_some_and(|old| is(old, Kind::Text)) {
            return Err(Error::Argument);
        }
        if mapping == Request::UNMAP {
            let was = self.unbind_window(table, at);
            return was.then_some(()).ok_or(Error::Unmapped);
        }
        let page = mapping.page().ok_or(Error::Argument)?;
        let record = self.pages.get(page as usize).ok_or(Error::Argument)?;
        if mapping.0 & Mapping::FLAGS & !Mapping::WRITE != 0 {
            return Err(Error::Argument);
        }
        let flags = mapping.0 & Mapping::WRITE;
        let may = || match is(record, Kind::Data) {
            true => self.may_bind(record, (caller, caller), flags, capability),
            false => Err(Error::Kind),
        };
        {
            let _lock = self.lock_page(page);
            may()?;
        }
        self.unbind_window(table, at);
        let _lock = self.lock_page(page);
        // It may be another's by now.
        may()?;
        self.link(record, table, at, caller);
        let bits = entry::PRESENT | entry::NO_EXECUTE | flags;
        word.store(u64::from(page) << 12 | bits, Release);
        Ok(())
    }

    /// Takes an entry out of a window that is open. Whether there was one.
    fn unbind_window(&self, table: u32, index: usize) -> bool {
        let word = &self.hardware.words(table)[index & 511];
        let page = match word.load(Acquire) {
            0 => return false,
            entry => entry::page(entry),
        };
        let _lock = self.lock_page(page);
        // It may have been broken before the page was locked.
        if word.load(Relaxed) == 0 {
            return false;
        }
        self.unlink(self.record(page), binding(table, index));
        word.store(0, Release);
        self.hardware.shoot_windows();
        true
    }

    /// The handler that runs for a message of an endpoint, known by its number and age, if one
    /// does: one whose last run ended well, of an owner that does not owe much. Holdings are
    /// locked.
    pub fn handler_of(&self, (number, age): (usize, u64)) -> Option<Run> {
        let of_kind = |holding: &Holding, kind| holding.kind.load(Relaxed) == kind as u32;
        let endpoint = self.machine.holdings.get(number)?;
        let handler = endpoint.handler.load(Relaxed) as usize;
        let holding = self.machine.holdings.get(handler)?;
        let owner = holding.owner.load(Relaxed);
        let runs = self.is_bound(number, age)
            && of_kind(holding, HoldingKind::Handler)
            && endpoint.owner.load(Relaxed) == owner
            && holding.ended.load(Relaxed) == run::WELL
            && self.environment(owner).forfeits.load(Relaxed) < DEBTS;
        runs.then(|| Run {
            handler,
            owner,
            table: holding.table.load(Relaxed),
            entry: holding.entry.load(Relaxed),
            stack: holding.stack.load(Relaxed),
            path: holding.path.load(Relaxed),
        })
    }

    /// A handler has run, for so much of a slice's clock. The owner forfeits a slice for each
    /// that its handlers' runs took together, and one for a run that ended otherwise than by
    /// returning: such a handler is called no more. It cannot end while this is done.
    pub fn has_run(&self, run: &Run, time: u64, ended: Option<Ended>) {
        let holding = self.holding(run.handler);
        holding.arrived.fetch_add(1, Relaxed);
        holding.spent.fetch_add(time, Relaxed);
        self.charge_runs(run.owner, time, ended.is_some().into());
        if let Some((how, at)) = ended {
            holding.ended_at.store(at, Relaxed);
            holding.ended.store(how, Release);
            self.raise(run.owner, Context::EVENT_HANDLER);
        }
    }

    /// Bytes of a window at an offset, for a handler that runs here. [`Error::Unmapped`] if not all
    /// are there.
    pub fn read_window(&self, table: u32, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        let end = offset.checked_add(to.len() as u64);
        if end.is_none_or(|end| end > MESSAGE + PAGE as u64) {
            return Err(Error::Unmapped);
        }
        let words = self.hardware.words(table);
        let mut at = offset as usize;
        let mut to = to;
        while !to.is_empty() {
            let entry = words[at / PAGE].load(Acquire);
            if entry & entry::PRESENT == 0 {
                return Err(Error::Unmapped);
            }
            let from = self.hardware.words(entry::page(entry));
            let count = (PAGE - at % PAGE).min(to.len());
            let (now, rest) = to.split_at_mut(count);
            bytes(&from[at % PAGE / 8..], at % 8, now);
            to = rest;
            at += count;
        }
        Ok(())
    }
}
