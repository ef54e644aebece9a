//! Taking back what a policy grants: directories and open files.
//!
//! Whoever is reading or writing has its own reference and finishes; nothing is closed under the
//! lock.

use crate::descriptors::Open;
use crate::state::System;
use std::sync::Arc;

impl System {
    /// Takes a granted directory away, and closes what is open below it. Calls that are being done
    /// end as they began. `None` if nothing is granted there; whether anything was open.
    pub(crate) fn without_directory(&self, guest: &str) -> Option<bool> {
        let mut state = self.state();
        let (rules, taken) = state.policy.rules.without(guest)?;
        let policy = state.policy.with_rules(rules);
        let before = std::mem::replace(&mut state.policy, Arc::new(policy));
        let below = |open: &Arc<Open>| open.from().is_some_and(|from| Arc::ptr_eq(from, &taken));
        let closed = state.table.sweep(below);
        drop(state);
        drop(before);
        Some(!closed.is_empty())
    }

    /// Whether anything is open below a granted directory. `None` if nothing is granted there.
    pub(crate) fn uses_directory(&self, guest: &str) -> Option<bool> {
        let state = self.state();
        let granted = state.policy.rules.directory_at(guest)?;
        Some(
            state
                .table
                .any(|open| open.from().is_some_and(|from| Arc::ptr_eq(from, granted))),
        )
    }

    /// Closes a descriptor and all that are duplicates of it. False if it is not open.
    pub(crate) fn close_all_of(&self, number: i32) -> bool {
        let mut state = self.state();
        let Ok(open) = state.table.get(number) else {
            return false;
        };
        let closed = state.table.sweep(|other| Arc::ptr_eq(other, &open));
        drop(state);
        drop((closed, open));
        true
    }
}
