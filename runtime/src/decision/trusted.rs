//! Who decides in a domain, for those inside it without a lock, while the host exchanges it.
//!
//! Invariant: a decider that a thread inside the domain has found is dropped only once nobody is
//! inside.

use super::{Decider, DecisionError};
use crate::fork;
use crate::service::Caller;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Who decides in a domain, and how often that failed.
#[derive(Default)]
pub(crate) struct Deciding {
    current: AtomicPtr<Decider>,
    /// Questions that a decider did not answer as it must.
    failures: AtomicU64,
    /// How the last of them failed, unless by a panic.
    last_failure: Mutex<Option<DecisionError>>,
}

impl Deciding {
    /// Who is to be asked. The proof is that of being inside the domain whose this is: a decider
    /// that is found goes no earlier than its caller.
    #[inline]
    pub(crate) fn current<'a>(&'a self, _inside: &'a Caller<'_>) -> Option<&'a Decider> {
        // SAFETY: the pointer is null or from `replace`. Whoever replaces it while the domain is
        // there keeps what it gets back until nobody is inside (`Services::set_decider`); `drop`
        // replaces it with the domain's parts, which go when nobody is inside (`domain::reclaim`),
        // the caller's own thread included. The two callers, `Guard::decide` and
        // `SystemCalls::decide`, are services of that very domain, and what they get is not used
        // after they have returned.
        unsafe { self.current.load(Ordering::SeqCst).as_ref() }
    }

    /// Whether somebody is to be asked.
    pub(crate) fn is_set(&self) -> bool {
        !self.current.load(Ordering::SeqCst).is_null()
    }

    /// Who is to be asked. Whoever calls this keeps others from `replace` meanwhile.
    pub(crate) fn name(&self) -> Option<String> {
        // SAFETY: null or from `replace`, which the caller excludes.
        let decider = unsafe { self.current.load(Ordering::SeqCst).as_ref() };
        decider.map(|decider| format!("{decider:?}"))
    }

    /// Counts a question that was not answered.
    pub(crate) fn failed(&self, error: Option<DecisionError>) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if error.is_some() {
            *fork::lock(&self.last_failure) = error;
        }
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn last_failure(&self) -> Option<DecisionError> {
        fork::lock(&self.last_failure).clone()
    }

    /// Puts another decider in place. The former one may still be in use by whoever is inside the
    /// domain.
    pub(crate) fn replace(&self, decider: Option<Decider>) -> Option<Box<Decider>> {
        let new = decider.map_or(std::ptr::null_mut(), |d| Box::into_raw(Box::new(d)));
        let old = self.current.swap(new, Ordering::SeqCst);
        // SAFETY: every pointer in there came from Box::into_raw, and was just taken out of its
        // only place.
        (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
    }
}

impl Drop for Deciding {
    fn drop(&mut self) {
        drop(self.replace(None));
    }
}
