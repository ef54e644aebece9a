//! Endpoints: which frames are whose, and where they go.
//!
//! Invariant: an endpoint's text, priority and age do not change while it lives. Only the kernel
//! makes endpoints, one call at a time, and keeps that call's caller from dying meanwhile; whenever
//! one ends, it is told ([`Hardware::endpoints_ended`]).

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::records::{HoldingKind, Kind};
use postern_aegis_abi::{Error, FILTER, HOLDINGS};

use crate::kind::is;
use crate::{Books, Hardware};

/// What an endpoint's filter is known by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// The holding's number.
    pub number: usize,
    /// Whose frames they are.
    pub owner: u16,
    /// The filter's priority.
    pub priority: u32,
    /// How many endpoints were bound before.
    pub age: u64,
    /// Bytes of the text.
    pub length: usize,
}

impl<H: Hardware> Books<'_, H> {
    /// Makes an endpoint with a filter's text, which is [`FILTER`] bytes at most, for a ring in an
    /// own page (0: none). Whether the filter may be bound is the caller's to find out: if not,
    /// [`Books::end_endpoint`] takes it back.
    ///
    /// # Errors
    /// [`Error::Argument`] for a page that there is not, and for a text that is too long; what is
    /// wrong with the ring; [`Error::Quota`], [`Error::Exhausted`].
    pub fn new_endpoint(
        &self,
        caller: u16,
        text: &[u8],
        priority: u32,
        ring: u64,
    ) -> Result<usize, Error> {
        if text.len() > FILTER {
            return Err(Error::Argument);
        }
        let ring = self.own_ring(caller, ring)?;
        let _lock = self.lock_holdings();
        let number = self.take_holding(caller, HoldingKind::Endpoint)?;
        let age = self.machine.binds.fetch_add(1, Relaxed);
        for (index, word) in self.machine.filters[number].iter().enumerate() {
            let mut bytes = [0; 8];
            let rest = text.get(8 * index..).unwrap_or_default();
            let count = rest.len().min(8);
            bytes[..count].copy_from_slice(&rest[..count]);
            word.store(u64::from_le_bytes(bytes), Relaxed);
        }
        let holding = self.holding(number);
        holding.priority.store(priority, Relaxed);
        holding.ring.store(ring, Relaxed);
        holding.first.store(age, Relaxed);
        holding.count.store(text.len() as u64, Relaxed);
        Ok(number)
    }

    /// Ends an endpoint of a number and an age, if it is still there.
    pub fn end_endpoint(&self, number: usize, age: u64) {
        let _lock = self.lock_holdings();
        if self.is_bound(number, age) {
            self.free_holding(number);
        }
    }

    /// Where frames of an endpoint go from now on.
    ///
    /// # Errors
    /// [`Error::Argument`] if there is no such endpoint, handler or page; [`Error::Kind`] and
    /// [`Error::Denied`] if it is none, or not the caller's.
    pub fn direct(&self, caller: u16, holding: u64, ring: u64, handler: u64) -> Result<(), Error> {
        let ring = self.own_ring(caller, ring)?;
        let _lock = self.lock_holdings();
        let number = self.own(caller, holding, HoldingKind::Endpoint)?;
        let handler = match handler {
            0 => 0,
            handler => self.own(caller, handler, HoldingKind::Handler)?,
        };
        let holding = self.holding(number);
        holding.ring.store(ring, Relaxed);
        holding.handler.store(handler as u32, Relaxed);
        Ok(())
    }

    /// All endpoints as they are now, the oldest first, and how many there are.
    pub fn endpoints(&self) -> ([Endpoint; HOLDINGS], usize) {
        let mut list = [Endpoint::default(); HOLDINGS];
        let mut count = 0;
        let _lock = self.lock_holdings();
        for (number, holding) in self.machine.holdings.iter().enumerate() {
            if holding.kind.load(Relaxed) == HoldingKind::Endpoint as u32 {
                list[count] = Endpoint {
                    number,
                    owner: holding.owner.load(Relaxed),
                    priority: holding.priority.load(Relaxed),
                    age: holding.first.load(Relaxed),
                    length: (holding.count.load(Relaxed) as usize).min(FILTER),
                };
                count += 1;
            }
        }
        list[..count].sort_unstable_by_key(|endpoint| endpoint.age);
        (list, count)
    }

    /// The text of an endpoint's filter.
    pub fn filter(&self, endpoint: &Endpoint) -> [u8; FILTER] {
        let mut text = [0; FILTER];
        let words = &self.machine.filters[endpoint.number % HOLDINGS];
        for (bytes, word) in text.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        text
    }

    /// Whether an endpoint is still the one that it was.
    pub fn is_bound(&self, number: usize, age: u64) -> bool {
        let holding = self.holding(number);
        holding.kind.load(Relaxed) == HoldingKind::Endpoint as u32
            && holding.first.load(Relaxed) == age
    }

    /// The page of a ring, from an argument. It is looked at again whenever something comes.
    fn own_ring(&self, caller: u16, ring: u64) -> Result<u32, Error> {
        if ring == 0 {
            return Ok(0);
        }
        let page = self.number(ring)?;
        let _lock = self.lock_page(page);
        let record = &self.pages[page as usize];
        match is(record, Kind::Data) {
            false => Err(Error::Kind),
            true if record.owner.load(Relaxed) != caller => Err(Error::Denied),
            true => Ok(page),
        }
    }
}
