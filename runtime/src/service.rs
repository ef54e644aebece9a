//! Services: functions of the host that an extension may call, and the tables that gates read of
//! them.
//!
//! An image's imports are its wish list. Linking is eager: every import finds a service of a
//! compatible type when the domain is made, or the domain is not made.

pub(crate) mod caller;
mod closure;
mod granted;
mod host_state;
mod offer;
mod set;

pub(crate) use caller::kill;
pub use caller::{Caller, DEFAULT_STACK, ending};
pub use closure::Service;
pub use host_state::with_state;
pub use set::ServiceSet;

use crate::decision::{Decider, Deciding, Guard};
use crate::error::InstantiateError;
use crate::signature::{compatible, in_registers};
use offer::Offer;
use postern_gates::callee::{Callee, ServiceTable};
use postern_gates::control::Control;
use postern_gates::shim::Body;
use postern_image::{ImportOwned, Signature};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

/// What stands in for a service that nobody grants.
struct Missing(Box<str>);

impl Body for Missing {
    fn invoke(&self, _: &Control, _: &[u64; 6], _: &[u64; 8]) -> u64 {
        caller::abort(format!("`{}` was called, which nobody provides", self.0));
        0
    }
}

/// What a domain is given, by name.
pub(crate) struct Services {
    offers: HashMap<String, Offer>,
    table: Arc<ServiceTable>,
    deciding: Arc<Deciding>,
    /// One for each entry of the table, once any is needed.
    guards: OnceLock<Box<[Arc<Guard>]>>,
    /// Former deciders that somebody inside may still be asking. Held while guards are put in place
    /// or taken away.
    #[expect(
        clippy::vec_box,
        reason = "somebody inside may refer to what is in the box"
    )]
    former: Mutex<Vec<Box<Decider>>>,
}

impl Default for Services {
    fn default() -> Services {
        Services {
            offers: HashMap::new(),
            table: Arc::new(ServiceTable::new([])),
            deciding: Arc::default(),
            guards: OnceLock::new(),
            former: Mutex::default(),
        }
    }
}

impl Services {
    pub(crate) fn add<A: 'static, F: Service<A>>(&mut self, name: &str, function: F) {
        self.offer(name, Offer::closure(function));
    }

    fn offer(&mut self, name: &str, offer: Offer) {
        self.offers.insert(name.to_owned(), offer);
    }

    /// Has calls of `import` end the host's call, if it is not offered.
    pub(crate) fn stand_in(&mut self, import: &ImportOwned) {
        if self.offers_name(&import.name) {
            return;
        }
        let missing = Missing(import.name.to_string().into());
        let result = import.signature.and_then(|signature| signature.result());
        let callee = Callee::closure(missing, result);
        let offer = Offer {
            stands_in: true,
            ..Offer::new(callee, None, DEFAULT_STACK)
        };
        self.offer(&import.name, offer);
    }

    /// Those of these imports that something of the host's is granted for, in their order.
    pub(crate) fn given(&self, imports: &[ImportOwned]) -> Vec<String> {
        let names = imports.iter().map(|import| &*import.name);
        names
            .filter(|name| self.offers.get(*name).is_some_and(|offer| !offer.stands_in))
            .map(str::to_owned)
            .collect()
    }

    /// Whether there is an offer.
    pub(crate) fn offers_name(&self, name: &str) -> bool {
        self.offers.contains_key(name)
    }

    /// What was given by name, but is none of these imports.
    pub(crate) fn unused(&self, imports: &HashMap<Arc<str>, u32>) -> Vec<&str> {
        let given = self.offers.iter().filter(|(_, offer)| !offer.for_many);
        let names = given.map(|(name, _)| &**name);
        let mut unused: Vec<&str> = names.filter(|name| !imports.contains_key(*name)).collect();
        unused.sort_unstable();
        unused
    }

    /// `callee` is a C function of this type.
    pub(crate) fn add_c(&mut self, name: &str, callee: Callee, signature: Signature, stack: usize) {
        self.offer(name, Offer::function(callee, signature, stack));
    }

    /// `callee` is a peer.
    pub(crate) fn add_peer(&mut self, name: &str, callee: Callee, signature: Option<Signature>) {
        self.offer(name, Offer::new(callee, signature, DEFAULT_STACK));
    }

    /// What is offered, in the order of the names.
    pub(crate) fn offers(&self) -> Vec<(String, Option<Signature>)> {
        let offers = self.offers.iter();
        let mut offers: Vec<_> = offers.map(|(n, o)| (n.clone(), o.signature)).collect();
        offers.sort_by(|a, b| a.0.cmp(&b.0));
        offers
    }

    /// The number of an import that peers serve.
    pub(crate) fn peer(&self, imports: &[ImportOwned], name: &str) -> Option<usize> {
        let number = imports.iter().position(|import| &*import.name == name)?;
        let offer = self.offers.get(name)?;
        offer.callee.is_peer().then_some(number)
    }

    /// What a service needs of stack, if that is not [`DEFAULT_STACK`].
    pub(crate) fn needs_stack(&mut self, name: &str, stack: usize) {
        if let Some(offer) = self.offers.get_mut(name) {
            offer.stack = stack;
        }
    }

    /// Binds the imports, in their order.
    pub(crate) fn resolve(mut self, imports: &[ImportOwned]) -> Result<Services, InstantiateError> {
        let mut table = Vec::with_capacity(imports.len());
        for import in imports {
            let offer = self
                .offers
                .get(&*import.name)
                .ok_or_else(|| InstantiateError::Unresolved(import.name.to_string()))?;
            if offer.callee.is_peer() && offer.signature.is_some() && import.signature.is_none() {
                return Err(InstantiateError::Untyped(import.name.to_string()));
            }
            if let (Some(expected), Some(offered)) = (&import.signature, &offer.signature)
                && !compatible(expected, offered)
            {
                return Err(InstantiateError::Signature {
                    name: import.name.to_string(),
                    expected: *expected,
                    offered: *offered,
                });
            }
            let signature = offer.signature.or(import.signature);
            // What stands in reads no parameter.
            let peer = offer.callee.is_peer();
            let reads = peer || offer.signature.is_some();
            if reads && signature.is_some_and(|s| !in_registers(&s, peer)) {
                return Err(InstantiateError::Limits(format!(
                    "service `{}` has more than six parameters",
                    import.name
                )));
            }
            let result = signature.and_then(|s| s.result());
            table.push((&offer.callee, offer.stack, result));
        }
        self.table = Arc::new(ServiceTable::new(table));
        Ok(self)
    }

    /// The table that the service gate reads.
    pub(crate) fn table(&self) -> Arc<ServiceTable> {
        self.table.clone()
    }

    /// Who decides here.
    pub(crate) fn deciding(&self) -> &Arc<Deciding> {
        &self.deciding
    }

    /// Calls of each service that were not made, by name.
    pub(crate) fn denied(&self) -> impl Iterator<Item = (&str, u64)> {
        let guards = self.guards.get().into_iter().flatten();
        guards.map(|guard| (&*guard.name, guard.denied.load(Ordering::Relaxed)))
    }

    /// Calls of each service so far, by name.
    pub(crate) fn calls<'a>(
        &'a self,
        imports: &'a [ImportOwned],
    ) -> impl Iterator<Item = (&'a str, u64)> {
        imports
            .iter()
            .zip(self.table.iter())
            .map(|(import, entry)| (&*import.name, entry.calls()))
    }
}
