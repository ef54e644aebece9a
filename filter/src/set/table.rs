//! The keys of a group with their filters, and what can be said of all of them without a look at
//! each.
//!
//! Ordered, not hashed: whoever chooses the filters cannot make keys meet, and no insertion waits
//! for a table that grows.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Claim;

#[derive(Debug, Default)]
pub(super) struct Table {
    /// Filters ascending, at least one.
    keys: BTreeMap<Box<[u32]>, Vec<u32>>,
    /// Values that all keys have had since there were none.
    common: Vec<Option<u32>>,
    /// How many entries have a priority and an owner.
    claims: BTreeMap<(u32, u32), usize>,
}

impl Table {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn get(&self, key: &[u32]) -> &[u32] {
        self.keys.get(key).map_or(&[], Vec::as_slice)
    }

    pub fn entries(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        self.keys.iter().map(|(key, ids)| (&**key, &ids[..]))
    }

    /// By field, the value that every key has, if that is known.
    pub fn common(&self) -> &[Option<u32>] {
        &self.common
    }

    /// Whether a filter here is another owner's and has a lower priority.
    pub fn loses(&self, to: Claim) -> bool {
        let mut lower = self.claims.range(..(to.priority, 0));
        lower.any(|((_, owner), _)| *owner != to.owner)
    }

    pub fn insert(&mut self, key: &[u32], id: u32, claim: Claim) {
        if self.keys.is_empty() {
            self.common = key.iter().copied().map(Some).collect();
        }
        for (common, value) in self.common.iter_mut().zip(key) {
            *common = common.filter(|common| common == value);
        }
        let ids = self.keys.entry(key.into()).or_default();
        if let Err(index) = ids.binary_search(&id) {
            ids.insert(index, id);
            *self
                .claims
                .entry((claim.priority, claim.owner))
                .or_default() += 1;
        }
    }

    pub fn remove(&mut self, key: &[u32], id: u32, claim: Claim) {
        let Some(ids) = self.keys.get_mut(key) else {
            return;
        };
        let Ok(index) = ids.binary_search(&id) else {
            return;
        };
        ids.remove(index);
        if ids.is_empty() {
            self.keys.remove(key);
        }
        let place = (claim.priority, claim.owner);
        if let Some(count) = self.claims.get_mut(&place) {
            *count -= 1;
            if *count == 0 {
                self.claims.remove(&place);
            }
        }
    }
}
