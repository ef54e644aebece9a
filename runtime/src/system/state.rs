//! What a domain has of the system: who grants its calls, and how many were.

use super::policy::{SystemPolicy, SystemService};
use crate::decision::Deciding;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The system calls of one domain: who grants them, and how many were.
pub(crate) struct System {
    /// Who is asked before the policy is.
    pub(super) deciding: Arc<Deciding>,
    /// What the domain's policy made. Without one nothing is granted.
    service: OnceLock<Arc<dyn SystemService>>,
    pub(super) allowed: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Number of the last refused call, plus one.
    pub(super) last_refused: AtomicU64,
}

impl System {
    pub(crate) fn new(service: Option<Arc<dyn SystemService>>, deciding: Arc<Deciding>) -> System {
        System {
            deciding,
            service: service.map_or_else(OnceLock::new, OnceLock::from),
            allowed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last_refused: AtomicU64::new(0),
        }
    }

    /// Who grants the calls, if anybody does.
    pub(crate) fn service(&self) -> Option<&dyn SystemService> {
        self.service.get().map(|service| &**service)
    }

    /// Another policy from now on. Calls that are being done end as they began; open files are
    /// closed.
    pub(super) fn set_policy(&self, policy: impl SystemPolicy) {
        let known = self.service.get();
        if known.is_none() && self.service.set(policy.service()).is_ok() {
            return;
        }
        if let Some(service) = self.service() {
            service.set_policy(Box::new(policy));
        }
    }

    /// Closes all files; the policy stays.
    pub(crate) fn reset(&self) {
        if let Some(service) = self.service() {
            service.reset();
        }
    }

    /// Calls that were allowed, and that were refused.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (
            self.allowed.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
        )
    }

    /// The number of the last call that was refused.
    pub(crate) fn last_refused(&self) -> Option<u64> {
        self.last_refused.load(Ordering::Relaxed).checked_sub(1)
    }
}
