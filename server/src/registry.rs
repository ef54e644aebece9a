//! The domains of a server, so that its status can show them: what each is for, and how long it has
//! been called.

use postern::Domain;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Domains, as long as they live.
#[derive(Default)]
pub struct Registry(Mutex<Vec<Weak<RegisteredDomain>>>);

/// A domain that is in the registry until this is dropped.
pub struct RegisteredDomain {
    /// The domain.
    pub domain: Domain,
    /// What it is for.
    pub kind: &'static str,
    /// Who brought what runs in it.
    pub owner: String,
    busy_ns: AtomicU64,
    active: AtomicU32,
}

/// A call of a domain, until this is dropped.
pub struct ActiveCall<'a>(&'a RegisteredDomain, Instant);

impl Registry {
    /// Adds a domain. Everybody who sees the status sees `kind` and `owner`.
    pub fn add(&self, domain: &Domain, kind: &'static str, owner: &str) -> Arc<RegisteredDomain> {
        let registered = Arc::new(RegisteredDomain {
            domain: domain.clone(),
            kind,
            owner: owner.to_owned(),
            busy_ns: AtomicU64::new(0),
            active: AtomicU32::new(0),
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&registered));
        registered
    }

    /// Those that are there now, in the order in which they came.
    pub fn domains(&self) -> Vec<Arc<RegisteredDomain>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}

impl RegisteredDomain {
    /// To be held while the domain is called.
    pub fn call(&self) -> ActiveCall<'_> {
        self.active.fetch_add(1, Ordering::Relaxed);
        ActiveCall(self, Instant::now())
    }

    /// What names it in `/status`.
    pub fn id(&self) -> String {
        format!("{:x}", self.domain.id())
    }

    /// Time of all calls that have ended.
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_ns.load(Ordering::Relaxed))
    }

    /// Whether it is being called.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed) > 0
    }
}

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        let time = u64::try_from(self.1.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.busy_ns.fetch_add(time, Ordering::Relaxed);
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}
