//! What environments may have, and what they keep in any case.
//!
//! Invariants: the pages reserved for all environments are together all there are but the
//! kernel's, and the same of slices; the environments that may still be made and those there are,
//! without the root, are together all numbers. For what a maker gives a child it takes from itself,
//! and it gets all back when the child's number is free. A limit is not below what is reserved.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::context::Context;
use postern_aegis_abi::{Error, ROOT};

use crate::{Books, Hardware};

/// Pages that stay reserved for an environment in any case: its context and its first table.
pub(crate) const LEAST: u32 = 2;

/// What quotas are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Physical pages.
    Pages,
    /// Slices, of all processors together.
    Slices,
    /// Environments that may be made.
    Environments,
    /// Parts of devices.
    Holdings,
}

impl<H: Hardware> Books<'_, H> {
    /// What an environment has, what is reserved for it, and its limit. Environments are all
    /// reserved.
    pub(crate) fn counts(&self, environment: u16, resource: Resource) -> [&AtomicU32; 3] {
        let record = self.environment(environment);
        match resource {
            Resource::Pages => [&record.pages, &record.pages_reserved, &record.pages_limit],
            Resource::Slices => [
                &record.slices,
                &record.slices_reserved,
                &record.slices_limit,
            ],
            Resource::Environments => [&record.environments_limit; 3],
            Resource::Holdings => [&record.holdings_limit; 3],
        }
    }

    /// What an environment has beyond what is reserved for it.
    pub(crate) fn surplus(&self, environment: u16, resource: Resource) -> u32 {
        let [has, reserved, _] = self.counts(environment, resource);
        has.load(Relaxed).saturating_sub(reserved.load(Relaxed))
    }

    /// The call: a maker says what is reserved for its child and what the child may have at most.
    /// Of environments only the limit counts, and all of it is reserved.
    pub fn quota(
        &self,
        caller: u16,
        environment: u16,
        resource: Resource,
        reserved: u32,
        limit: u32,
    ) -> Result<(), Error> {
        let _locks = self.lock_both(caller, environment);
        if !self.lives(environment) {
            return Err(Error::NoEnvironment);
        }
        if self.environment(environment).parent.load(Relaxed) != caller {
            return Err(Error::Denied);
        }
        let least = if resource == Resource::Pages {
            LEAST
        } else {
            0
        };
        let wanted = match resource {
            Resource::Environments | Resource::Holdings => limit,
            _ => reserved,
        };
        if reserved > limit || wanted < least {
            return Err(Error::Argument);
        }
        let [_, kept, most] = self.counts(caller, resource);
        let all_reserved = matches!(resource, Resource::Environments | Resource::Holdings);
        if !all_reserved && limit > most.load(Relaxed) {
            return Err(Error::Quota);
        }
        let [_, given, highest] = self.counts(environment, resource);
        let all = kept.load(Relaxed) + given.load(Relaxed);
        match all.checked_sub(wanted) {
            Some(rest) if rest >= least => kept.store(rest, Relaxed),
            _ => return Err(Error::Quota),
        }
        given.store(wanted, Relaxed);
        highest.store(limit, Relaxed);
        Ok(())
    }

    /// Takes from a maker what every child costs it.
    pub(crate) fn charge_birth(&self, maker: u16) -> Result<(), Error> {
        let _lock = self.lock_environment(maker);
        let record = self.environment(maker);
        let environments = record.environments_limit.load(Relaxed);
        let pages = record.pages_reserved.load(Relaxed);
        if environments == 0 || pages < 2 * LEAST {
            return Err(Error::Quota);
        }
        record.environments_limit.store(environments - 1, Relaxed);
        record.pages_reserved.store(pages - LEAST, Relaxed);
        Ok(())
    }

    /// Gives a maker back what a child had: pages, slices, environments, holdings.
    pub(crate) fn refund_birth(&self, maker: u16, all: [u32; 4]) {
        let [pages, slices, environments, holdings] = all;
        let _lock = self.lock_environment(maker);
        let record = self.environment(maker);
        // Its own maker may have lowered its limits since it gave all this away.
        let pages = record.pages_reserved.fetch_add(pages, Relaxed) + pages;
        record.pages_limit.fetch_max(pages, Relaxed);
        let slices = record.slices_reserved.fetch_add(slices, Relaxed) + slices;
        record.slices_limit.fetch_max(slices, Relaxed);
        record.environments_limit.fetch_add(environments, Relaxed);
        record.holdings_limit.fetch_add(holdings, Relaxed);
    }

    /// The last piece of an environment's death but its number: its maker gets all quotas back.
    pub(crate) fn inherit(&self, child: u16) {
        let record = self.environment(child);
        let maker = record.parent.load(Relaxed);
        if maker == 0 {
            return;
        }
        let pages = record.pages_reserved.swap(0, Relaxed);
        let slices = record.slices_reserved.swap(0, Relaxed);
        let environments = record.environments_limit.swap(0, Relaxed);
        let holdings = record.holdings_limit.swap(0, Relaxed);
        self.refund_birth(maker, [pages, slices, environments + 1, holdings]);
        let owed = record.forfeits.swap(0, Relaxed);
        let slice = self.machine.slice.load(Relaxed).max(1);
        let rest = record.spent.swap(0, Relaxed) % slice;
        // Whom the root makes is its own affair: it would be stopped by anybody's child.
        if maker != ROOT {
            self.environment(maker).forfeits.fetch_add(owed, Relaxed);
            self.charge_runs(maker, rest, 0);
        }
        self.environment(maker).children.fetch_sub(1, Relaxed);
        self.raise(maker, Context::EVENT_CHILD);
    }
}
