//! What a domain has of system calls: its policy, and what they left open.

use crate::descriptors::DescriptorTable;
use crate::policy::Policy;
use postern_runtime::fork::{self, Held};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What the system calls of one domain leave behind: its policy and its open files.
pub(crate) struct System {
    shard: usize,
    state: Mutex<PolicyState>,
    /// Bytes that were written to files, and 4096 for every name that was made.
    pub(crate) written: AtomicU64,
}

pub(crate) struct PolicyState {
    pub(crate) policy: Arc<Policy>,
    pub(crate) table: DescriptorTable,
}

impl System {
    pub(crate) fn new(policy: Policy) -> System {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        System {
            shard: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(PolicyState {
                table: policy.table(),
                policy: Arc::new(policy),
            }),
            written: AtomicU64::new(0),
        }
    }

    pub(crate) fn state(&self) -> Held<'_, PolicyState> {
        fork::lock_one_of_many(self.shard, &self.state)
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.state().policy.clone()
    }
}
