//! Visible revocation (section 3.3) and the abort protocol (3.4).
//!
//! Who is asked for pages or slices reads how many in its context, and until which tick. What is
//! not given back then is taken by force: bindings are broken, contents go to the first place of
//! the context that can have them, and the repossession vector says what is gone.
//!
//! Invariants: nobody is asked for, and nobody loses, what is reserved for it, a page that its
//! context names as guaranteed, a table, or the context itself. Who has nothing else beyond its
//! reservation ends: otherwise what is reserved for others would not be there. A request that is
//! pending gets no later deadline by further ones, so nobody is shielded by them.

use core::mem::offset_of;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use postern_aegis_abi::context::{Context, GUARANTEES, Place, Repossession};
use postern_aegis_abi::records::{claim, end, stopping};
use postern_aegis_abi::{ENVIRONMENTS, Error, SLICES};

use crate::life::meant;
use crate::quota::Resource;
use crate::{Books, Hardware};

/// Slices that pass at least before something is taken by force.
const NOTICE: u64 = 8;

/// Pages and slices that one processor takes at a tick at most.
const PIECE: usize = 16;

/// Slices for which a free page is kept for somebody who found none.
const WAIT: u64 = 4 * SLICES as u64;

impl<H: Hardware> Books<'_, H> {
    /// The call: asks an environment for some of what it has beyond its reservation.
    pub fn revoke(
        &self,
        caller: u16,
        environment: u16,
        resource: Resource,
        count: u32,
        capability: u64,
    ) -> Result<(), Error> {
        let environment = meant(caller, environment);
        let _lock = self.lock_environment(environment);
        self.controls(caller, environment, capability)?;
        if count > self.surplus(environment, resource) {
            return Err(Error::Quota);
        }
        self.ask(environment, resource, count);
        Ok(())
    }

    /// Asks for at least so many. The environment's lock is held, and it lives.
    fn ask(&self, environment: u16, resource: Resource, count: u32) {
        let record = self.environment(environment);
        if !self.is_asked(environment) {
            let clock = self.clock(environment);
            let taken = |slice: &&_| {
                let slice: &postern_aegis_abi::records::Slice = slice;
                slice.owner.load(Relaxed) != 0
            };
            let round = self.machine.slices[clock].iter().filter(taken).count() as u64;
            let now = self.machine.processor[clock].ticks.load(Relaxed);
            record.clock.store(clock as u32, Relaxed);
            record.deadline.store(now + NOTICE.max(2 * round), Relaxed);
        }
        let asked = match resource {
            Resource::Slices => &record.asked_slices,
            _ => &record.asked_pages,
        };
        asked.fetch_max(count, Relaxed);
        self.machine.asked.store(1, Release);
        self.tell_asked(environment);
        self.raise_locked(environment, Context::EVENT_REVOKE);
    }

    /// The processor on which an environment is given time to answer.
    fn clock(&self, environment: u16) -> usize {
        self.slices()
            .find(|(_, _, slice)| slice.runs.load(Relaxed) == environment)
            .map_or(0, |(processor, _, _)| processor)
    }

    fn is_asked(&self, environment: u16) -> bool {
        let record = self.environment(environment);
        record.asked_pages.load(Relaxed) != 0 || record.asked_slices.load(Relaxed) != 0
    }

    /// The call Free.
    pub fn free_page(&self, caller: u16, page: u32) -> Result<(), Error> {
        self.free(caller, page)?;
        let _lock = self.lock_environment(caller);
        self.came_back(caller, Resource::Pages);
        Ok(())
    }

    /// The call Allocate. A page that becomes free is kept for somebody below its reservation who
    /// found none, so that nobody above his own takes it first.
    pub fn allocate_or_ask(
        &self,
        caller: u16,
        page: Option<u32>,
        read: u32,
        write: u32,
    ) -> Result<u32, Error> {
        let record = self.environment(caller);
        let pages = record.pages.load(Relaxed);
        let below = pages < record.pages_reserved.load(Relaxed);
        let free = self.machine.free.load(Relaxed) as usize;
        // More than can be waiting need no count of who waits.
        let scarce = free < ENVIRONMENTS && !below && free <= self.waiting().count();
        if scarce && pages < record.pages_limit.load(Relaxed) {
            return Err(Error::Exhausted);
        }
        match self.allocate(caller, page, read, write) {
            Err(Error::Exhausted) if below => Err(self.wait(caller)),
            done => {
                if done.is_ok() {
                    record.waits.store(0, Relaxed);
                }
                done
            }
        }
    }

    /// Who is below its reservation and found no free page lately.
    fn waiting(&self) -> impl Iterator<Item = u16> {
        let now = self.machine.processor[0].ticks.load(Relaxed);
        self.numbers().filter(move |number| {
            let record = self.environment(*number);
            record.waits.load(Relaxed) > now
                && self.lives(*number)
                && record.pages.load(Relaxed) < record.pages_reserved.load(Relaxed)
        })
    }

    /// Somebody below its reservation waits for a page; others are asked for as many as are
    /// waited for: each time who has the greatest surplus of those who are not asked already.
    fn wait(&self, caller: u16) -> Error {
        let now = self.machine.processor[0].ticks.load(Relaxed);
        self.environment(caller).waits.store(now + WAIT, Relaxed);
        let asked_of = |number: u16| self.environment(number).asked_pages.load(Relaxed) as usize;
        let living = || self.numbers().filter(|number| self.lives(*number));
        let asked: usize = living().map(asked_of).sum();
        if asked >= self.waiting().count() {
            return Error::Again;
        }
        let greatest = living()
            .filter(|number| !self.is_asked(*number))
            .max_by_key(|number| (self.surplus(*number, Resource::Pages), u16::MAX - number))
            .filter(|number| self.surplus(*number, Resource::Pages) != 0);
        let Some(greatest) = greatest else {
            if asked != 0 || self.machine.dying.load(Acquire) != 0 {
                return Error::Again;
            }
            self.environment(caller).waits.store(0, Relaxed);
            return Error::Exhausted;
        };
        let _lock = self.lock_environment(greatest);
        if self.lives(greatest) && self.surplus(greatest, Resource::Pages) != 0 {
            self.ask(greatest, Resource::Pages, 1);
        }
        Error::Again
    }

    /// Takes by force what is due by this processor's ticks, some of it at a time. Called at each.
    pub fn due(&self, processor: usize) {
        // Mostly nobody is asked: one word says so. It is cleared before who is asked is looked
        // for, and set behind what is asked.
        if self.machine.asked.load(Acquire) == 0 {
            return;
        }
        self.machine.asked.swap(0, AcqRel);
        let now = self.machine.processor[processor].ticks.load(Relaxed);
        let mut left = PIECE;
        for number in self.numbers() {
            if self.is_asked(number) {
                self.machine.asked.store(1, Release);
            }
            let record = self.environment(number);
            let due = self.is_asked(number)
                && record.clock.load(Relaxed) == processor as u32
                && record.deadline.load(Relaxed) < now;
            while due && left != 0 && self.lives(number) && self.is_asked(number) {
                left -= 1;
                if self.take_slice_by_force(number).is_err() || self.take_page(number).is_err() {
                    break;
                }
            }
        }
    }

    /// Takes a slice, if slices are asked. The last position goes first.
    fn take_slice_by_force(&self, environment: u16) -> Result<(), Error> {
        let record = self.environment(environment);
        let _lock = self.lock_environment(environment);
        if record.asked_slices.load(Relaxed) == 0 {
            return Ok(());
        }
        let mut owned = self
            .slices()
            .rev()
            .filter(|(_, _, slice)| slice.owner.load(Relaxed) == environment);
        match owned.next() {
            Some((processor, position, _)) if self.surplus(environment, Resource::Slices) != 0 => {
                self.drop_slice(environment, processor, position)?;
                let number = (processor * 256 + position) as u32;
                self.tell_taken(environment, Repossession::SLICE, number, Place::default());
                self.came_back(environment, Resource::Slices);
            }
            _ => record.asked_slices.store(0, Relaxed),
        }
        self.tell_asked(environment);
        Ok(())
    }

    /// Takes a page, if pages are asked. [`Error::Again`]: not all bindings are broken yet.
    fn take_page(&self, environment: u16) -> Result<(), Error> {
        let record = self.environment(environment);
        if record.asked_pages.load(Relaxed) == 0 {
            return Ok(());
        }
        if self.surplus(environment, Resource::Pages) == 0 {
            // It gave pages to others, or more is reserved for it now.
            let _lock = self.lock_environment(environment);
            record.asked_pages.store(0, Relaxed);
            self.tell_asked(environment);
            return Ok(());
        }
        let Some(page) = self.victim(environment) else {
            self.end(environment, end::REFUSED, 0);
            return Err(Error::Denied);
        };
        self.take(environment, page)?;
        let place = self.find_place(environment, page);
        if place.kind != Place::SERVER {
            self.drop_taken(environment, page)?;
        }
        let _lock = self.lock_environment(environment);
        self.tell_taken(environment, Repossession::PAGE, page, place);
        self.came_back(environment, Resource::Pages);
        Ok(())
    }

    /// Saves a taken page's contents where its owner wants to have them: the first of its places
    /// that can have them.
    fn find_place(&self, environment: u16, page: u32) -> Place {
        for index in 0..GUARANTEES {
            let Some(place) = self.named_place(environment, index) else {
                break;
            };
            let saved = match place.kind {
                Place::PAGE => {
                    let saved = self.save(environment, page, place.number, place.capability);
                    if saved.is_ok() {
                        self.use_up(environment, index);
                    }
                    saved.is_ok()
                }
                Place::SERVER => self.serve(environment, page, place.number),
                _ => false,
            };
            if saved {
                return Place {
                    capability: 0,
                    ..place
                };
            }
        }
        Place::default()
    }

    /// A taken page becomes the swap server's, and the server is asked for one in turn.
    fn serve(&self, environment: u16, page: u32, server: u32) -> bool {
        let own = self.environment(environment).server.load(Relaxed);
        if own == 0 || u32::from(own) != server || self.hand_taken(environment, page, own).is_err()
        {
            return false;
        }
        let _lock = self.lock_environment(own);
        self.raise_locked(own, Context::EVENT_SERVER);
        let asked = self.environment(own).asked_pages.load(Relaxed) != 0;
        if self.lives(own) && !asked && self.surplus(own, Resource::Pages) != 0 {
            self.ask(own, Resource::Pages, 1);
        }
        true
    }

    /// A place of an environment's context, if the environment lives.
    fn named_place(&self, environment: u16, index: usize) -> Option<Place> {
        let _lock = self.lock_environment(environment);
        if !self.lives(environment) {
            return None;
        }
        let first = (offset_of!(Context, places) + index * size_of::<Place>()) / 8;
        let context = self.context(environment);
        let word = context[first].load(Relaxed);
        Some(Place {
            kind: word as u32,
            number: (word >> 32) as u32,
            capability: context[first + 1].load(Relaxed),
        })
    }

    fn use_up(&self, environment: u16, index: usize) {
        let _lock = self.lock_environment(environment);
        if self.lives(environment) {
            let first = (offset_of!(Context, places) + index * size_of::<Place>()) / 8;
            let word = &self.context(environment)[first];
            let number = word.load(Relaxed) >> 32 << 32;
            word.store(number | u64::from(Place::USED), Relaxed);
        }
    }

    /// Writes an entry of the repossession vector. The environment's lock is held.
    fn tell_taken(&self, environment: u16, kind: u32, number: u32, place: Place) {
        if !self.lives(environment) {
            return;
        }
        let context = self.context(environment);
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let count = &context[offset_of!(Context, repossessions) / 8];
        let entry = (count.load(Relaxed) % GUARANTEES as u64) as usize;
        let at = offset_of!(Context, repossessed) + entry * size_of::<Repossession>();
        context[at / 8].store(pair(kind, number), Relaxed);
        context[at / 8 + 1].store(pair(place.kind, place.number), Relaxed);
        context[at / 8 + 2].store(place.capability, Relaxed);
        count.fetch_add(1, Relaxed);
        self.raise_locked(environment, Context::EVENT_REPOSSESSED);
    }

    /// The call: an environment stands still, and its memory becomes its swap server's, some at a
    /// time ([`Error::Again`]). Who submits itself stands still at the end of that, others from
    /// its beginning.
    pub fn submit(&self, caller: u16, environment: u16, capability: u64) -> Result<(), Error> {
        let environment = meant(caller, environment);
        let record = self.environment(environment);
        let server = {
            let _lock = self.lock_environment(environment);
            self.controls(caller, environment, capability)?;
            let server = record.server.load(Relaxed);
            if !self.lives(server) {
                return Err(Error::NoEnvironment);
            }
            let receiver = self.environment(server);
            let room = receiver
                .pages_limit
                .load(Relaxed)
                .saturating_sub(receiver.pages.load(Relaxed));
            // Its pages but the context and the first table, at least.
            if record.pages.load(Relaxed).saturating_sub(2) > room {
                return Err(Error::Quota);
            }
            if environment != caller {
                self.stand_still(environment)?;
            }
            server
        };
        self.hand_over(environment, server)?;
        if environment == caller {
            self.submit_running(environment);
        }
        self.raise(server, Context::EVENT_SERVER);
        Ok(())
    }

    /// Takes the claim of an environment that nobody runs, to submit it.
    fn stand_still(&self, environment: u16) -> Result<(), Error> {
        let claim = &self.environment(environment).claim;
        let free = [claim::IDLE, claim::FROZEN, claim::SUBMITTED];
        let take = |from: &u32| {
            claim
                .compare_exchange(*from, claim::SUBMITTED, Acquire, Relaxed)
                .is_ok()
        };
        free.iter().any(take).then_some(()).ok_or(Error::Busy)
    }

    /// The environment that runs here is submitted as soon as the processor leaves it.
    pub(crate) fn submit_running(&self, environment: u16) {
        let mark = &self.environment(environment).stopping;
        for state in [stopping::NOT, stopping::FREEZE] {
            let _ = mark.compare_exchange(state, stopping::SUBMIT, Acquire, Relaxed);
        }
    }
}
