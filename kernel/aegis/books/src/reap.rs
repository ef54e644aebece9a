//! What is left to do for environments that end, in pieces: a processor does one at every yield
//! and tick, and one after the other while it idles.
//!
//! Invariant: a number is free only when nobody has anything by it: no page, slice or holding is
//! its, no position runs it, nobody's swap server or maker it is, and its quotas are its maker's.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use postern_aegis_abi::records::{Kind, NONE, claim, end, stopping};

use crate::kind::is;
use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// Does a piece of what is left to do for environments that end. Whether more is left.
    pub fn reap(&self) -> bool {
        if self.machine.dying.load(Acquire) == 0 {
            return false;
        }
        for number in self.numbers() {
            let record = self.environment(number);
            if record.stopping.load(Acquire) != stopping::END {
                continue;
            }
            self.halt(number);
            let claim = |from, to| record.claim.compare_exchange(from, to, AcqRel, Relaxed);
            // One processor at a time: for another one that comes late it may be somebody else's
            // number by then.
            if claim(claim::ENDING, claim::CHANGING).is_err() {
                continue;
            }
            let (state, done) = self.dismantle(number);
            record.claim.store(state, Release);
            if done {
                break;
            }
        }
        self.machine.dying.load(Acquire) != 0
    }

    /// A piece of an environment's death: the claim afterwards, and whether there was something to
    /// do. Otherwise it waits for its children.
    fn dismantle(&self, number: u16) -> (u32, bool) {
        let record = self.environment(number);
        let children = self.end_children(number);
        if record.slices.load(Relaxed) != 0 {
            self.drop_slices(number);
        }
        // Before its pages: handlers' windows are in some of them.
        if record.holdings.load(Relaxed) != 0 {
            self.drop_some_holdings(number);
            return (claim::ENDING, true);
        }
        if !self.free_some_pages(number) {
            // Others go on meanwhile: a device may take its time.
            return (claim::ENDING, !self.waits_for_device(number));
        }
        if children || record.children.load(Acquire) != 0 {
            return (claim::ENDING, children);
        }
        (self.bury(number), true)
    }

    /// An environment that has ended makes no more children, so those that it has are all.
    fn end_children(&self, number: u16) -> bool {
        if self.environment(number).children.load(Acquire) == 0 {
            return false;
        }
        let mut some = false;
        for child in self.numbers() {
            let made = self.environment(child).parent.load(Relaxed) == number;
            if made && self.lives(child) {
                self.end(child, end::DESTROYED, 0);
                some = true;
            }
        }
        some
    }

    /// Whether nothing is left to do for the next page of an environment that has ended, but that a
    /// device has it.
    fn waits_for_device(&self, number: u16) -> bool {
        let page = self.environment(number).first.load(Relaxed);
        let record = self.pages.get(page as usize);
        let unbound =
            record.is_some_and(|page| is(page, Kind::Leaving) && page.first.load(Relaxed) == NONE);
        unbound && self.is_lent(page)
    }

    fn drop_slices(&self, number: u16) {
        let _lock = self.lock_environment(number);
        for (processor, position, _) in self.slices() {
            // Denied for those of others.
            let _ = self.drop_slice(number, processor, position);
        }
    }

    /// The last piece: what others have by the number, the quotas, the number. The claim
    /// afterwards.
    fn bury(&self, number: u16) -> u32 {
        let record = self.environment(number);
        // Whoever holds its lock saw it live; whoever takes it from now on does not.
        drop(self.lock_environment(number));
        let has = [&record.slices, &record.holdings];
        if has.iter().any(|count| count.load(Relaxed) != 0) || record.first.load(Relaxed) != NONE {
            return claim::ENDING;
        }
        for (_, _, slice) in self.slices() {
            let owner = slice.owner.load(Acquire);
            let _ = slice.runs.compare_exchange(number, owner, AcqRel, Relaxed);
        }
        for other in self.numbers() {
            let server = &self.environment(other).server;
            let _ = server.compare_exchange(number, 0, AcqRel, Relaxed);
        }
        for processor in &self.machine.processor {
            let told = &processor.told;
            let _ = told.compare_exchange(number.into(), 0, AcqRel, Relaxed);
            let lender = &processor.lender;
            let _ = lender.compare_exchange(number.into(), 0, AcqRel, Relaxed);
        }
        self.inherit(number);
        let _lock = self.lock_environment(number);
        record.root_table.store(0, Relaxed);
        record.context.store(0, Relaxed);
        record.asked_pages.store(0, Relaxed);
        record.asked_slices.store(0, Relaxed);
        record.alarm.store(0, Relaxed);
        self.machine.dying.fetch_sub(1, AcqRel);
        claim::FREE
    }
}
