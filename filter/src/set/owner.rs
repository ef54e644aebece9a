//! Who would lose packets to a new filter: Exokernel's check that nobody takes another's (section
//! 3.2).
//!
//! Invariant: a filter is passed over only if no packet takes a path of it and one of the new
//! filter's.

use alloc::vec::Vec;

use super::path::Path;
use super::{Claim, Group, Set};
use crate::expression::Exprs;

impl Set {
    /// A filter of another owner and lower priority that may want a packet of these paths.
    pub(super) fn robbed(&self, paths: Option<&[Path]>, claim: Claim) -> Option<u32> {
        let loses = |id: &u32| {
            let other = self.members.get(id).map(|m| m.claim);
            other.is_some_and(|o| o.owner != claim.owner && o.priority < claim.priority)
        };
        let Some(paths) = paths else {
            // Nothing is known of the filter's packets.
            return self.members.keys().copied().find(|id| loses(id));
        };
        if let (Some(id), false) = (
            self.single.iter().copied().find(|id| loses(id)),
            paths.is_empty(),
        ) {
            return Some(id);
        }
        let groups = || self.groups.iter().filter(|group| group.table.loses(claim));
        paths.iter().find_map(|path| {
            groups().find_map(|group| {
                let keys = CandidateKeys::new(path, group, &self.exprs)?;
                keys.find(|ids| ids.iter().copied().find(loses))
            })
        })
    }
}

/// The keys of a group that a packet of a path may have.
struct CandidateKeys<'a> {
    group: &'a Group,
    exprs: &'a Exprs,
    /// By field of the group, the value that it has for every packet of the path.
    known: Vec<Option<u32>>,
    /// What else is known of the path's packets.
    rest: Path,
}

impl<'a> CandidateKeys<'a> {
    /// Nothing if there is no such packet, whatever its key.
    fn new(path: &Path, group: &'a Group, exprs: &'a Exprs) -> Option<CandidateKeys<'a>> {
        let fields = &group.shape.fields;
        let values = fields.iter().zip(group.table.common());
        let common = values.filter_map(|(id, value)| Some((*id, (*value)?)));
        let common = Path::new(common, &group.shape.tests);
        if path.contradicts(&common, exprs) || common.contradicts(path, exprs) {
            return None;
        }
        let own = path
            .shape
            .fields
            .iter()
            .copied()
            .zip(path.key.iter().copied());
        let rest = own.filter(|(id, _)| fields.binary_search(id).is_err());
        Some(CandidateKeys {
            group,
            exprs,
            known: fields.iter().map(|id| path.value(exprs, *id)).collect(),
            rest: Path::new(rest, &path.shape.tests),
        })
    }

    /// What `wanted` finds first among the filters of a key.
    fn find(&self, mut wanted: impl FnMut(&[u32]) -> Option<u32>) -> Option<u32> {
        let table = &self.group.table;
        let mut other = Path {
            shape: self.group.shape.clone(),
            key: Vec::new(),
        };
        let mut meets = |key: &[u32]| {
            let mut pairs = self.known.iter().zip(key);
            if pairs.any(|(known, value)| known.is_some_and(|known| known != *value)) {
                return false;
            }
            other.key.clear();
            other.key.extend_from_slice(key);
            !other.contradicts(&self.rest, self.exprs)
        };
        // Most new filters are of a known shape, or say more than others: then one look is enough.
        if let Some(key) = self.known.iter().copied().collect::<Option<Vec<u32>>>() {
            return wanted(table.get(&key)).filter(|_| meets(&key));
        }
        let mut keys = table.entries().filter(|(key, _)| meets(key));
        keys.find_map(|(_, ids)| wanted(ids))
    }
}
