//! Parts of devices that somebody owns: the console, the time of day, ranges of blocks, endpoints, handlers.
//!
//! Invariant: under the holdings' lock, a number is free or somebody's who lives or is about to
//! lose it by its death; an owner's count of holdings is how many have its number, and the birth in a holding is
//! its owner's. What a maker gives a child of its quota it takes from its own.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::records::{Holding, HoldingKind};
use postern_aegis_abi::{Error, HOLDINGS};

use crate::lock::Lock;
use crate::{Books, Hardware};

impl<'a, H: Hardware> Books<'a, H> {
    /// The record of a holding's number, which is below [`HOLDINGS`].
    pub fn holding(&self, number: usize) -> &'a Holding {
        &self.machine.holdings[number % HOLDINGS]
    }

    /// The number of a holding of a kind, from an argument.
    pub(crate) fn held(&self, number: u64, kind: HoldingKind) -> Result<usize, Error> {
        let number = usize::try_from(number).map_err(|_| Error::Argument)?;
        let holding = self.machine.holdings.get(number).ok_or(Error::Argument)?;
        match HoldingKind::of(holding.kind.load(Relaxed)) {
            None | Some(HoldingKind::Free) => Err(Error::Argument),
            Some(found) if found == kind => Ok(number),
            Some(_) => Err(Error::Kind),
        }
    }

    /// The same of one that somebody owns.
    pub(crate) fn own(&self, caller: u16, number: u64, kind: HoldingKind) -> Result<usize, Error> {
        let number = self.held(number, kind)?;
        match self.holding(number).owner.load(Relaxed) == caller {
            true => Ok(number),
            false => Err(Error::Denied),
        }
    }

    /// Takes a free number for an environment that has room for it in its quota. The record is
    /// blank but for kind and owner. Holdings are locked.
    pub(crate) fn take_holding(&self, owner: u16, kind: HoldingKind) -> Result<usize, Error> {
        let _lock = self.lock_environment(owner);
        let record = self.environment(owner);
        let has = record.holdings.load(Relaxed);
        if !self.lives(owner) || has >= record.holdings_limit.load(Relaxed) {
            return Err(Error::Quota);
        }
        let free =
            |number: &usize| self.holding(*number).kind.load(Relaxed) == HoldingKind::Free as u32;
        let number = (1..HOLDINGS).find(free).ok_or(Error::Exhausted)?;
        record.holdings.store(has + 1, Relaxed);
        let holding = self.holding(number);
        blank(holding);
        holding.owner.store(owner, Relaxed);
        holding.birth.store(record.birth.load(Relaxed), Relaxed);
        holding.kind.store(kind as u32, Relaxed);
        Ok(number)
    }

    /// Makes a number free. Holdings are locked.
    pub(crate) fn free_holding(&self, number: usize) {
        let holding = self.holding(number);
        let owner = holding.owner.load(Relaxed);
        let _lock = self.lock_environment(owner);
        let has = &self.environment(owner).holdings;
        has.store(has.load(Relaxed).saturating_sub(1), Relaxed);
        blank(holding);
    }

    /// Locks all holdings.
    pub fn lock_holdings(&self) -> Lock<'a> {
        self.lock(&self.machine.holdings_lock)
    }
}

fn blank(holding: &Holding) {
    for word in [
        &holding.kind,
        &holding.birth,
        &holding.read,
        &holding.write,
        &holding.ring,
        &holding.handler,
        &holding.priority,
        &holding.table,
        &holding.ended,
        &holding.entry,
        &holding.stack,
        &holding.path,
    ] {
        word.store(0, Relaxed);
    }
    for word in [
        &holding.first,
        &holding.count,
        &holding.ended_at,
        &holding.arrived,
        &holding.lost,
        &holding.spent,
    ] {
        word.store(0, Relaxed);
    }
    holding.owner.store(0, Relaxed);
}
