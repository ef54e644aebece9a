//! Counters of a domain, as a struct; [`metrics`] has those of all domains as text.

pub(crate) mod metrics;
mod pages;

pub use metrics::{By, Metrics, metrics};
pub use pages::Pages;

use crate::domain::DomainInner;
use crate::{Domain, FaultKind};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a domain has done so far. Reset keeps them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Calls that entered.
    pub calls: u64,
    /// Faults by name of kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Times that the restart policy began the domain anew.
    pub restarts: u64,
    /// Time inside, sampled at the watchdog's tick: zero for short calls, right on average.
    pub time_inside: Duration,
    /// How much of it was in the hot window.
    pub time_hot: Duration,
    /// Times the domain was moved, into the hot window or out of it.
    pub moves: u64,
    /// Calls of services, by name.
    pub services: BTreeMap<String, u64>,
    /// Calls of services that were not made, because the decider said so or the service was
    /// revoked, by name.
    pub denied_services: BTreeMap<String, u64>,
    /// Questions that the decider did not answer as it must; each was a denial.
    pub decision_failures: u64,
    /// System calls that the policy granted, also those that failed.
    pub system_calls: u64,
    /// System calls that the policy refused.
    pub refused_system_calls: u64,
    /// Linux's number of the last refused one: what the extension wanted.
    pub last_refused: Option<u64>,
}

impl Domain {
    /// The counters now.
    pub fn counters(&self) -> Counters {
        let inner = &self.0;
        let totals = Totals::of(inner);
        Counters {
            calls: totals.calls,
            faults: FaultKind::ALL
                .iter()
                .zip(totals.faults)
                .map(|(kind, count)| (kind.name(), count))
                .filter(|&(_, count)| count != 0)
                .collect(),
            restarts: totals.restarts,
            time_inside: Duration::from_nanos(totals.time_inside),
            time_hot: Duration::from_nanos(totals.time_hot),
            moves: totals.moves,
            services: inner
                .services
                .calls(&inner.image.tables.imports)
                .map(|(name, calls)| (name.to_owned(), calls))
                .collect(),
            denied_services: inner
                .services
                .denied()
                .filter(|&(_, denied)| denied != 0)
                .map(|(name, denied)| (name.to_owned(), denied))
                .collect(),
            decision_failures: totals.decision_failures,
            system_calls: totals.system_calls,
            refused_system_calls: totals.refused_system_calls,
            last_refused: inner.system.last_refused(),
        }
    }
}

/// What can be added up over domains.
#[derive(Clone, Default)]
pub(crate) struct Totals {
    calls: u64,
    faults: [u64; FaultKind::ALL.len()],
    restarts: u64,
    time_inside: u64,
    time_hot: u64,
    moves: u64,
    services: u64,
    denied_services: u64,
    decision_failures: u64,
    system_calls: u64,
    refused_system_calls: u64,
}

impl Totals {
    fn of(inner: &DomainInner) -> Totals {
        let (system_calls, refused_system_calls) = inner.system.counters();
        let (time_inside, time_hot) = inner.control.times();
        let mut faults = [0; FaultKind::ALL.len()];
        for (place, count) in faults.iter_mut().zip(&inner.faults) {
            *place = count.load(Ordering::Relaxed);
        }
        Totals {
            calls: inner.control.calls(),
            faults,
            restarts: inner.restarts.count(),
            time_inside,
            time_hot,
            moves: inner.place.moves.load(Ordering::Relaxed),
            services: inner
                .services
                .calls(&inner.image.tables.imports)
                .map(|(_, calls)| calls)
                .sum(),
            denied_services: inner.services.denied().map(|(_, denied)| denied).sum(),
            decision_failures: inner.services.deciding().failures(),
            system_calls,
            refused_system_calls,
        }
    }

    fn add(&mut self, other: &Totals) {
        self.calls += other.calls;
        for (sum, count) in self.faults.iter_mut().zip(other.faults) {
            *sum += count;
        }
        self.restarts += other.restarts;
        self.time_inside += other.time_inside;
        self.time_hot += other.time_hot;
        self.moves += other.moves;
        self.services += other.services;
        self.denied_services += other.denied_services;
        self.decision_failures += other.decision_failures;
        self.system_calls += other.system_calls;
        self.refused_system_calls += other.refused_system_calls;
    }
}
