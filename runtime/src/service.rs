//! Services: functions of the host that an extension may call, and the tables that gates read of
//! them.
//!
//! An image's imports are its wish list. Linking is eager: every import finds a service of a
//! compatible type when the domain is made, or the domain is not made.

mod caller;
mod granted;
mod offer;
mod trusted;

pub(crate) use caller::kill;
pub use caller::{Caller, DEFAULT_STACK, ending};
pub(crate) use trusted::bind;

use crate::decision::{Decider, Deciding, Guard};
use crate::error::InstantiateError;
use crate::signature::{compatible, in_registers};
use crate::value::{Output, Value};
use offer::Offer;
use postern_gates::control::{Control, ServiceEntry};
use postern_gates::peer;
use postern_gates::shim::{self, Body};
use postern_image::{ImportOwned, Signature};
use std::any::Any;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

/// Functions that can be services: closures over [`Caller`] and up to six [`Value`]s that return a
/// value or nothing.
pub trait Service<A>: Send + Sync + 'static {
    /// The C types.
    fn signature() -> Signature;
    /// Calls the closure with what the registers hold.
    fn invoke(&self, caller: &Caller<'_>, integers: &[u64; 6], floats: &[u64; 8]) -> u64;
}

macro_rules! service {
    ($($a:ident),*) => {
        impl<F, R, $($a,)*> Service<fn($($a,)*) -> R> for F
        where
            F: Fn(&Caller<'_> $(, $a)*) -> R + Send + Sync + 'static,
            R: Output,
            $($a: Value,)*
        {
            fn signature() -> Signature {
                Signature::new(R::TYPE, &[$($a::TYPE),*]).expect("at most six parameters")
            }
            #[allow(non_snake_case, unused_mut, unused_variables, unused_assignments)]
            fn invoke(&self, caller: &Caller<'_>, integers: &[u64; 6], floats: &[u64; 8]) -> u64 {
                let (mut i, mut f) = (0, 0);
                $(
                    let $a = if $a::TYPE.is_float() {
                        f += 1;
                        $a::from_bits(floats[f - 1])
                    } else {
                        i += 1;
                        $a::from_bits(integers[i - 1])
                    };
                )*
                self(caller $(, $a)*).to_bits()
            }
        }
    };
}
service!();
service!(A);
service!(A, B);
service!(A, B, C);
service!(A, B, C, D);
service!(A, B, C, D, E);
service!(A, B, C, D, E, G);

/// A closure behind the service gate.
struct Closure<A, F>(F, PhantomData<fn(A)>);

impl<A: 'static, F: Service<A>> Body for Closure<A, F> {
    #[inline(always)]
    fn invoke(&self, control: &Control, integers: &[u64; 6], floats: &[u64; 8]) -> u64 {
        self.0.invoke(&Caller::new(control), integers, floats)
    }
}

/// What stands in for a service that nobody grants.
struct Missing(Box<str>);

impl Body for Missing {
    fn invoke(&self, _: &Control, _: &[u64; 6], _: &[u64; 8]) -> u64 {
        caller::abort(format!("`{}` was called, which nobody provides", self.0));
        0
    }
}

/// What a domain is given, by name.
#[derive(Default)]
pub(crate) struct Services {
    offers: HashMap<String, Offer>,
    table: Arc<[ServiceEntry]>,
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

impl Services {
    pub(crate) fn add<A: 'static, F: Service<A>>(&mut self, name: &str, function: F) {
        let signature = F::signature();
        let context = Box::new(Closure::<A, F>(function, PhantomData));
        let address = &raw const *context as usize;
        let offer = Offer {
            function: shim::address::<Closure<A, F>>(signature.result()),
            context: Some(context),
            address,
            signature: Some(signature),
            stack: DEFAULT_STACK,
            peer: false,
        };
        self.offers.insert(name.to_owned(), offer);
    }

    /// Has calls of `import` end the host's call, if it is not offered.
    pub(crate) fn stand_in(&mut self, import: &ImportOwned) {
        if self.offers_name(&import.name) {
            return;
        }
        let context = Box::new(Missing(import.name.to_string().into()));
        let result = import.signature.and_then(|signature| signature.result());
        let offer = Offer {
            function: shim::address::<Missing>(result),
            address: &raw const *context as usize,
            context: Some(context),
            signature: None,
            stack: DEFAULT_STACK,
            peer: false,
        };
        self.offers.insert(import.name.to_string(), offer);
    }

    /// Whether there is an offer.
    pub(crate) fn offers_name(&self, name: &str) -> bool {
        self.offers.contains_key(name)
    }

    pub(crate) fn add_c(
        &mut self,
        name: &str,
        function: usize,
        signature: Signature,
        stack: usize,
    ) {
        let mut offer = Offer {
            function,
            context: None,
            address: 0,
            signature: Some(signature),
            // So that none is taken for a peer.
            stack: stack.clamp(4096, 1 << 48),
            peer: false,
        };
        if let Some(narrow) = trusted::narrow(function, signature.parameters()) {
            let narrow = Box::new(narrow);
            offer.function = shim::Narrow::shim();
            offer.address = &raw const *narrow as usize;
            offer.context = Some(narrow);
        }
        self.offers.insert(name.to_owned(), offer);
    }

    /// `context` holds what `address` is the address of, and whatever must live as long.
    pub(crate) fn add_peer(
        &mut self,
        name: &str,
        signature: Option<Signature>,
        context: Box<dyn Any + Send + Sync>,
        address: usize,
    ) {
        let offer = Offer {
            function: peer::function(),
            context: Some(context),
            address,
            signature,
            stack: peer::PEER as usize,
            peer: true,
        };
        self.offers.insert(name.to_owned(), offer);
    }

    /// What is offered, in the order of the names.
    pub(crate) fn offers(&self) -> Vec<(String, Option<Signature>)> {
        let offers = self.offers.iter();
        let mut offers: Vec<_> = offers.map(|(n, o)| (n.clone(), o.signature)).collect();
        offers.sort_by(|a, b| a.0.cmp(&b.0));
        offers
    }

    /// The entry of an import that peers serve.
    pub(crate) fn peer(&self, imports: &[ImportOwned], name: &str) -> Option<&ServiceEntry> {
        let number = imports.iter().position(|import| &*import.name == name)?;
        let offer = self.offers.get(name)?;
        self.table.get(number).filter(|_| offer.peer)
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
            if offer.peer && offer.signature.is_some() && import.signature.is_none() {
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
            let reads = offer.peer || offer.signature.is_some();
            if reads && signature.is_some_and(|s| !in_registers(&s, offer.peer)) {
                return Err(InstantiateError::Limits(format!(
                    "service `{}` has more than six parameters",
                    import.name
                )));
            }
            let result = signature.and_then(|s| s.result());
            table.push(trusted::entry(offer, result));
        }
        self.table = table.into();
        Ok(self)
    }

    /// The table that the service gate reads.
    pub(crate) fn table(&self) -> Arc<[ServiceEntry]> {
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
            .zip(&*self.table)
            .map(|(import, entry)| (&*import.name, entry.calls()))
    }
}
