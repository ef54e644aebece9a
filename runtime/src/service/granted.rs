//! What a living domain may call: who decides about it, and what is taken from it or given again.

use super::Services;
use crate::decision::{Decider, DecisionError, Guard};
use crate::domain::{Domain, DomainInner};
use crate::fork;
use postern_gates::control::ServiceEntry;
use postern_gates::registers::{float_mask, integer_mask};
use postern_image::Type;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Services {
    /// Called with `former` locked, so that no fork comes while they are made: a child would wait
    /// for the thread that does.
    fn guards(&self, inner: &DomainInner) -> &[Arc<Guard>] {
        self.guards.get_or_init(|| {
            let imports = inner.image.tables.imports.iter().enumerate();
            imports
                .map(|(number, import)| Arc::new(self.guard(&inner.name, number, &import.name)))
                .collect()
        })
    }

    fn guard(&self, domain: &str, number: usize, name: &str) -> Guard {
        let masks = |mask: fn(Type) -> u64, floats: bool| {
            let offer = self.offers.get(name);
            let parameters = offer.and_then(|o| o.signature.as_ref());
            let parameters = parameters.map_or(&[][..], |s| s.parameters());
            let wanted = parameters.iter().filter(|t| t.is_float() == floats);
            wanted.map(|&t| mask(t)).collect()
        };
        let system = name == "sys";
        Guard {
            name: name.into(),
            number,
            integers: masks(integer_mask, false),
            floats: masks(float_mask, true),
            texts: [domain.as_bytes(), name.as_bytes()]
                .join(&0)
                .into_iter()
                .chain([0])
                .collect(),
            domain: domain.len(),
            system,
            revoked: false.into(),
            denied: 0.into(),
            refusal: match system {
                true => -i64::from(libc::ECANCELED) as u64,
                false => 0,
            },
            deciding: self.deciding.clone(),
        }
    }

    /// Who decides, for people.
    pub(crate) fn decider_name(&self) -> Option<String> {
        let _former = fork::lock(&self.former);
        self.deciding.name()
    }

    /// Another decider from now on.
    pub(crate) fn set_decider(&self, inner: &DomainInner, decider: Option<Decider>) {
        let on = decider.is_some();
        let mut former = fork::lock(&self.former);
        former.extend(self.deciding.replace(decider));
        for (entry, guard) in self.table.iter().zip(self.guards(inner)) {
            if !guard.is_always_granted() {
                let on = on || guard.revoked.load(Ordering::SeqCst);
                entry.guarded(guard, on);
            }
        }
        let unused = std::mem::take(&mut *former);
        drop(former);
        if inner.nobody_inside() {
            drop(unused);
        } else {
            fork::lock(&self.former).extend(unused);
        }
    }

    /// Makes every later call of a service fail, or not any more: the service's entry, if that is a
    /// change. Calls that the gate has let through before may still begin.
    pub(crate) fn set_revoked(
        &self,
        inner: &DomainInner,
        name: &str,
        revoked: bool,
    ) -> Option<&ServiceEntry> {
        let _former = fork::lock(&self.former);
        let mut pairs = self.table.iter().zip(self.guards(inner));
        let meant = |guard: &Guard| &*guard.name == name && !guard.is_always_granted();
        let (entry, guard) = pairs.find(|(_, guard)| meant(guard))?;
        let was = guard.revoked.swap(revoked, Ordering::SeqCst);
        entry.guarded(guard, revoked || self.deciding.is_set());
        (was != revoked).then_some(entry)
    }

    /// Whether a service is imported, and neither revoked nor one that every domain is granted.
    pub(crate) fn is_granted(&self, inner: &DomainInner, name: &str) -> bool {
        let _former = fork::lock(&self.former);
        let mut guards = self.guards(inner).iter();
        guards.any(|guard| {
            &*guard.name == name
                && !guard.is_always_granted()
                && !guard.revoked.load(Ordering::SeqCst)
        })
    }

    /// The services by name, and whether each is revoked.
    pub(crate) fn granted(&self, inner: &DomainInner) -> Vec<(String, bool)> {
        let _former = fork::lock(&self.former);
        let guards = self.guards(inner).iter();
        let mine = guards.filter(|guard| !guard.is_always_granted());
        mine.map(|guard| (guard.name.to_string(), guard.revoked.load(Ordering::SeqCst)))
            .collect()
    }
}

impl Domain {
    /// Another decider from now on, or none. Calls that are being decided are decided by the former
    /// one.
    pub fn set_decider(&self, decider: Option<Decider>) {
        self.0.services.set_decider(&self.0, decider);
    }

    /// How the last decision failed that did.
    pub fn last_decision_error(&self) -> Option<DecisionError> {
        self.0.services.deciding().last_failure()
    }
}
