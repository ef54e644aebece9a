//! Services: functions of the host that an extension may call, and the tables that gates read of them.
//!
//! An image's imports are its wish list. Linking is eager: every import finds a service of a compatible type when the domain is
//! made, or the domain is not made.

mod trusted;

pub(crate) use trusted::bind;

use crate::Domain;
use crate::call;
use crate::decision::{Decider, Deciding, Guard};
use crate::domain;
use crate::domain::DomainInner;
use crate::error::InstantiateError;
use crate::fork;
use crate::signature::{compatible, in_registers};
use crate::value::{Output, Value};
use postern_gates::control::{Control, ServiceEntry};
use postern_gates::registers::{float_mask, integer_mask};
use postern_gates::shim::{self, Body};
use postern_gates::{peer, stale};
use postern_image::{ImportOwned, Signature, Type};
use std::any::Any;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

/// Stack that a service gets when it declares nothing.
pub const DEFAULT_STACK: usize = shim::DEFAULT_STACK;

/// Who calls a service: a handle that costs nothing until it is used.
pub struct Caller<'a> {
    pub(crate) control: &'a Control,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(control: &'a Control) -> Caller<'a> {
        Caller { control }
    }

    /// Shows `look` the caller of the service in which this thread is, for services that get no [`Caller`]: C functions. `None`
    /// outside services, and when the calling domain was closed meanwhile.
    pub fn with_current<R>(look: impl FnOnce(&Caller<'_>) -> R) -> Option<R> {
        let control = stale::serving()?;
        let _alive = domain::of(control)?;
        Some(look(&Caller::new(control)))
    }

    /// The calling domain, to reach its memory. If another thread is dropping the domain just now, the service ends here, and with it
    /// the call.
    pub fn domain(&self) -> Domain {
        // Whoever made the call holds the domain, unless it was made through a C function pointer or by a peer. Then dropping it
        // waits for this very service, which must not go on.
        let domain = domain::of(self.control);
        Domain(domain.unwrap_or_else(|| std::panic::resume_unwind(Box::new(shim::Gone))))
    }

    /// Ends the call when the service returns: the host's call becomes a fault of kind `Aborted` with this message.
    pub fn abort(&self, message: impl Into<String>) {
        call::abort(message.into());
    }

    /// Ends the call when the service returns: the host's call becomes [`crate::CallError::Exited`].
    pub fn exit(&self, status: i32) {
        call::exit(status);
    }
}

/// Functions that can be services: closures over [`Caller`] and up to six [`Value`]s that return a value or nothing.
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
        call::abort(format!("`{}` was called, which nobody provides", self.0));
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
    /// Former deciders that somebody inside may still be asking. Held while guards are put in place or taken away.
    #[expect(
        clippy::vec_box,
        reason = "somebody inside may refer to what is in the box"
    )]
    former: Mutex<Vec<Box<Decider>>>,
}

struct Offer {
    function: usize,
    /// The closure, if it is one; the peer, if it is one.
    context: Option<Box<dyn Any + Send + Sync>>,
    address: usize,
    /// `None`: whatever the import says. (A peer that is left open.)
    signature: Option<Signature>,
    stack: usize,
    /// A peer masks its results itself.
    peer: bool,
    /// It only ends the call, whatever the arguments.
    stand_in: bool,
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
            stand_in: false,
        };
        self.offers.insert(name.to_owned(), offer);
    }

    /// Has calls of `import` end the host's call, if it is not offered.
    pub(crate) fn stand_in(&mut self, import: &ImportOwned) {
        let context = Box::new(Missing(import.name.to_string().into()));
        let result = import.signature.and_then(|signature| signature.result());
        self.offers.entry(import.name.to_string()).or_insert(Offer {
            function: shim::address::<Missing>(result),
            address: &raw const *context as usize,
            context: Some(context),
            signature: None,
            stack: DEFAULT_STACK,
            peer: false,
            stand_in: true,
        });
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
            stand_in: false,
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
            stand_in: false,
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
            if !offer.stand_in && signature.is_some_and(|s| !in_registers(&s, offer.peer)) {
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

    /// Makes every later call of a service fail, or not any more: the service's entry, if that is a change. Calls that the gate has
    /// let through before may still begin.
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
        let mut guards = self.guards(inner).iter();
        guards.any(|guard| {
            &*guard.name == name
                && !guard.is_always_granted()
                && !guard.revoked.load(Ordering::SeqCst)
        })
    }

    /// The services by name, and whether each is revoked.
    pub(crate) fn granted(&self, inner: &DomainInner) -> Vec<(String, bool)> {
        let guards = self.guards(inner).iter();
        let mine = guards.filter(|guard| !guard.is_always_granted());
        mine.map(|guard| (guard.name.to_string(), guard.revoked.load(Ordering::SeqCst)))
            .collect()
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

impl std::fmt::Debug for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offer")
            .field("signature", &self.signature)
            .field("closure", &self.context.is_some())
            .finish_non_exhaustive()
    }
}
