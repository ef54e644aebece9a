//! Parts of devices that somebody owns: the console, the time of day, ranges of blocks, endpoints,
//! handlers.
//!
//! Invariant: under the holdings' lock, a number is free or somebody's who lives or is about to
//! lose it by its death; an owner's count of holdings is how many have its number, and the birth in
//! a holding is its owner's. What a maker gives a child of its quota it takes from its own. A count
//! is above its limit only by what the dead have left, or since the limit was lowered.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::records::{Holding, HoldingKind};
use postern_aegis_abi::{Error, HOLDINGS, ROOT};

use crate::lock::Lock;
use crate::{Books, Hardware};

impl<'a, H: Hardware> Books<'a, H> {
    /// The record of a holding's number, which is below [`HOLDINGS`].
    pub fn holding(&self, number: usize) -> &'a Holding {
        &self.machine.holdings[number % HOLDINGS]
    }

    /// Locks all holdings.
    pub fn lock_holdings(&self) -> Lock<'a> {
        self.lock(&self.machine.holdings_lock)
    }

    /// What a number is of, if it is not free.
    fn kind_of(&self, number: usize) -> Result<HoldingKind, Error> {
        let holding = self.machine.holdings.get(number).ok_or(Error::Argument)?;
        match HoldingKind::of(holding.kind.load(Relaxed)) {
            None | Some(HoldingKind::Free) => Err(Error::Argument),
            Some(kind) => Ok(kind),
        }
    }

    /// The number of a holding of a kind, from an argument.
    pub(crate) fn held(&self, number: u64, kind: HoldingKind) -> Result<usize, Error> {
        let number = usize::try_from(number).map_err(|_| Error::Argument)?;
        match self.kind_of(number)? == kind {
            true => Ok(number),
            false => Err(Error::Kind),
        }
    }

    /// The same of one that somebody owns.
    pub(crate) fn own(&self, caller: u16, number: u64, kind: HoldingKind) -> Result<usize, Error> {
        let number = self.held(number, kind)?;
        self.is_own(caller, number)?;
        Ok(number)
    }

    fn is_own(&self, caller: u16, number: usize) -> Result<(), Error> {
        match self.holding(number).owner.load(Relaxed) == caller {
            true => Ok(()),
            false => Err(Error::Denied),
        }
    }

    /// Checks that somebody may use a holding of a kind, to write or only to read: as its owner or
    /// with its capability. Holdings are locked, or the answer is about a moment ago.
    pub fn may_use(
        &self,
        caller: u16,
        (number, kind): (u64, HoldingKind),
        write: bool,
        capability: u64,
    ) -> Result<usize, Error> {
        let number = self.held(number, kind)?;
        let may = self.is_own(caller, number).is_ok()
            || self.lets_use(self.holding(number), write, capability);
        may.then_some(number).ok_or(Error::Denied)
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

    /// The call: a holding becomes another's, who must have room for it.
    pub fn give_holding(&self, caller: u16, number: usize, to: u16) -> Result<(), Error> {
        let _holdings = self.lock_holdings();
        let kind = self.kind_of(number)?;
        self.is_own(caller, number)?;
        if kind == HoldingKind::Handler {
            return Err(Error::Kind);
        }
        let _locks = self.lock_receiver(caller, to)?;
        let receiver = self.environment(to);
        let full = receiver.holdings.load(Relaxed) >= receiver.holdings_limit.load(Relaxed);
        if to != caller && full {
            return Err(Error::Quota);
        }
        self.move_holding(number, caller, to);
        Ok(())
    }

    /// Makes a holding another's, and nobody's names. Both and the holdings are locked.
    fn move_holding(&self, number: usize, from: u16, to: u16) {
        let (holding, receiver) = (self.holding(number), self.environment(to));
        self.environment(from).holdings.fetch_sub(1, Relaxed);
        receiver.holdings.fetch_add(1, Relaxed);
        holding.owner.store(to, Relaxed);
        holding.birth.store(receiver.birth.load(Relaxed), Relaxed);
        for word in [
            &holding.read,
            &holding.write,
            &holding.ring,
            &holding.handler,
        ] {
            word.store(0, Relaxed);
        }
    }

    /// The call: other names of what capabilities let others use.
    pub fn rename_holding(
        &self,
        caller: u16,
        number: usize,
        read: u32,
        write: u32,
    ) -> Result<(), Error> {
        let _holdings = self.lock_holdings();
        let kind = self.kind_of(number)?;
        self.is_own(caller, number)?;
        if matches!(kind, HoldingKind::Endpoint | HoldingKind::Handler) {
            return Err(Error::Kind);
        }
        let holding = self.holding(number);
        holding.read.store(read, Relaxed);
        holding.write.store(write, Relaxed);
        Ok(())
    }

    /// The call: an endpoint or a handler ends, anything else goes to the owner's maker.
    pub fn drop_holding(&self, caller: u16, number: usize, capability: u64) -> Result<(), Error> {
        let _holdings = self.lock_holdings();
        self.kind_of(number)?;
        let owner = self.holding(number).owner.load(Relaxed);
        {
            let _lock = self.lock_environment(owner);
            // Whoever has a holding has its number still, if only to lose it.
            let denied = |_| Error::Denied;
            self.controls(caller, owner, capability).map_err(denied)?;
        }
        if self.let_go(number, owner) == HoldingKind::Endpoint {
            self.hardware.endpoints_ended();
        }
        Ok(())
    }

    /// A piece of an environment's death: it loses all holdings. Whoever calls this has its claim.
    pub(crate) fn drop_some_holdings(&self, owner: u16) {
        let _holdings = self.lock_holdings();
        let mut endpoints = false;
        for number in 1..HOLDINGS {
            let free = self.kind_of(number).is_err();
            if !free && self.is_own(owner, number).is_ok() {
                endpoints |= self.let_go(number, owner) == HoldingKind::Endpoint;
            }
        }
        if endpoints {
            self.hardware.endpoints_ended();
        }
    }

    /// What becomes of a holding that its owner does not keep. What it was. Holdings are locked.
    fn let_go(&self, number: usize, owner: u16) -> HoldingKind {
        let kind = self.kind_of(number).unwrap_or(HoldingKind::Free);
        match kind {
            HoldingKind::Free => {}
            HoldingKind::Endpoint => self.free_holding(number),
            HoldingKind::Handler => {
                if self.holding(number).table.load(Relaxed) != 0 {
                    self.end_handler(number);
                }
                for endpoint in &self.machine.holdings {
                    let handler = &endpoint.handler;
                    let _ = handler.compare_exchange(number as u32, 0, Relaxed, Relaxed);
                }
                self.free_holding(number);
            }
            HoldingKind::Console | HoldingKind::Clock | HoldingKind::Blocks => {
                if !self.bequeath(number, owner) {
                    self.free_holding(number);
                }
            }
        }
        kind
    }

    /// Makes a holding the maker's of its owner, or its maker's, up to the root, who keeps it if it
    /// was its own. `false` if not even that one lives: then nobody is left.
    fn bequeath(&self, number: usize, owner: u16) -> bool {
        let mut heir = match owner {
            ROOT => ROOT,
            _ => self.environment(owner).parent.load(Relaxed),
        };
        // Makers outlive those whom they have made.
        while heir != 0 {
            if let Ok(_locks) = self.lock_receiver(owner, heir)
                && (heir == ROOT || self.has_room(owner, heir))
            {
                self.move_holding(number, owner, heir);
                return true;
            }
            heir = self.environment(heir).parent.load(Relaxed);
        }
        false
    }

    /// Whether an heir has room for one more: one who is full gets the quota along with it, of an
    /// owner that has ended, and whose quota its makers get back anyway. Both are locked.
    fn has_room(&self, owner: u16, heir: u16) -> bool {
        let (from, to) = (self.environment(owner), self.environment(heir));
        let limit = to.holdings_limit.load(Relaxed);
        if to.holdings.load(Relaxed) < limit {
            return true;
        }
        let left = from.holdings_limit.load(Relaxed);
        if self.lives(owner) || left == 0 {
            return false;
        }
        from.holdings_limit.store(left - 1, Relaxed);
        to.holdings_limit.store(limit + 1, Relaxed);
        true
    }
}

/// A record that is nobody's.
pub(crate) fn blank(holding: &Holding) {
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
