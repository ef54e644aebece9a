//! Services that many domains are given alike.
//!
//! A set is put together once; builders take it, and share the closures.

use super::offer::Offer;
use super::{Service, Services};
use crate::domain::DomainBuilder;
use postern_gates::callee::Callee;
use postern_image::Signature;
use std::collections::HashMap;

/// Services by name, for any number of [`DomainBuilder`]s. What an image does not import of it is
/// left out, and nobody is told: a set has what the host offers to all.
///
/// Cloning shares the closures, so state that they own is one for all domains. What belongs to one
/// call is [`Caller::state`](super::Caller::state).
#[derive(Clone, Debug, Default)]
pub struct ServiceSet(HashMap<String, Offer>);

impl ServiceSet {
    /// An empty set.
    pub fn new() -> ServiceSet {
        ServiceSet::default()
    }

    /// Adds a service, as [`DomainBuilder::service`]. Of two of one name the later one is meant.
    #[must_use]
    pub fn service<A: 'static, F: Service<A>>(mut self, name: &str, function: F) -> Self {
        self.add(name, Offer::closure(function));
        self
    }

    /// Adds a plain C function, as [`DomainBuilder::service_c`].
    ///
    /// # Safety
    /// As there.
    #[expect(unsafe_code, reason = "the caller's promise")]
    #[must_use]
    pub unsafe fn service_c(
        mut self,
        name: &str,
        function: *const (),
        signature: Signature,
        stack: usize,
    ) -> Self {
        // SAFETY: the caller's promise.
        let callee = unsafe { Callee::function(function as usize, signature.parameters()) };
        self.add(name, Offer::function(callee, signature, stack));
        self
    }

    /// Adds what another set has.
    #[must_use]
    pub fn and(mut self, other: &ServiceSet) -> Self {
        self.0.extend(other.0.clone());
        self
    }

    /// The names, in their order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.keys().map(|name| &**name).collect();
        names.sort_unstable();
        names
    }

    fn add(&mut self, name: &str, offer: Offer) {
        let offer = Offer {
            for_many: true,
            ..offer
        };
        self.0.insert(name.to_owned(), offer);
    }
}

impl Services {
    fn add_set(&mut self, set: &ServiceSet) {
        let offers = set
            .0
            .iter()
            .map(|(name, offer)| (name.clone(), offer.clone()));
        self.offers.extend(offers);
    }
}

impl DomainBuilder {
    /// Grants all services of a set that the image imports. What is granted by name afterwards
    /// takes the place of the set's.
    pub fn services(mut self, set: &ServiceSet) -> Self {
        self.services.add_set(set);
        self
    }
}
