//! Domains: one instance of an image each, with its window, limits, services and counters.

mod above;
mod build;
mod quiesce;
pub(crate) mod reclaim;

pub use above::{Supervisor, inner};
pub use build::{DomainBuilder, Limits, Placement};

use crate::call::{self, CallError, Func, FuncType};
use crate::code::AddedCode;
use crate::counters::metrics;
use crate::error::SymbolError;
use crate::fault::{Fault, FaultKind};
use crate::image::{Image, ImageInner};
use crate::instance::Instance;
use crate::peer::Bound;
use crate::placement::{self, PlacementState};
use crate::restart::Restarts;
use crate::revoke::Repossessions;
use crate::service::Services;
use crate::signature;
use crate::system::System;
use postern_gates::above::Held;
use postern_gates::block::Block;
use postern_gates::control::Control;
use postern_gates::entry::Entry;
use postern_gates::entry::Manner;
use postern_gates::lifecycle::Phase;
use postern_gates::outcome::{self, Refusal};
use postern_image::Signature;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use thiserror::Error;

type OnFault = Box<dyn Fn(&Fault) + Send + Sync>;

/// An instance of an image: a protection domain. Cloning shares it. With the last clone it closes; its window returns to the pool,
/// and what its services own is dropped, once no call is inside: a service may drop the domain that called it.
#[derive(Clone)]
pub struct Domain(pub(crate) Arc<DomainInner>);

/// What the handles share. Its end is not that of the [`Parts`]: those stay for as long as a call is inside ([`reclaim`]).
pub struct DomainInner(Option<Box<Parts>>);

/// What a domain is made of. Whoever is inside may use all of it, without a reference to show for it.
pub struct Parts {
    pub(crate) image: Arc<ImageInner>,
    pub(crate) name: Arc<str>,
    pub(crate) control: Block,
    pub(crate) limits: Limits,
    pub(crate) instance: Instance,
    on_fault: Option<OnFault>,
    /// Whether C function pointers were made, or exports to peers.
    pub(crate) pointed_to: AtomicBool,
    /// Faults by kind, in the order of [`FaultKind::ALL`].
    pub(crate) faults: [AtomicU64; FaultKind::ALL.len()],
    /// Referred to by the control block; dropped after it closes.
    pub(crate) services: Services,
    /// What was bound to imports that were left open.
    pub(crate) peers: Bound,
    pub(crate) system: Arc<System>,
    pub(crate) place: PlacementState,
    pub(crate) repossessions: Repossessions,
    pub(crate) restarts: Restarts,
    /// Who is told of faults before they close it.
    pub(crate) supervisor: OnceLock<Weak<dyn Supervisor>>,
    /// What makes it a namespace.
    pub(crate) code: OnceLock<Arc<dyn AddedCode>>,
    /// The last handle is gone, and the calls of other threads were asked to end.
    ending: AtomicBool,
}

impl Deref for DomainInner {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        self.0.as_deref().expect("taken only by drop")
    }
}

pub(crate) type Domains = Vec<Weak<DomainInner>>;
static DOMAINS: Mutex<Domains> = Mutex::new(Vec::new());

/// Live domains by the number of their control block.
pub(crate) fn domains() -> MutexGuard<'static, Domains> {
    DOMAINS.lock().unwrap_or_else(|e| e.into_inner())
}

/// The domain of a control block, if it is still there.
pub(crate) fn of(control: &Control) -> Option<Arc<DomainInner>> {
    let number = control.number() as usize;
    domains().get(number)?.upgrade()
}

/// For the gates: the domain of a call that is being ended.
pub(crate) fn hold(control: &Control) -> Option<Held> {
    let domain = of(control)?;
    let life = domain.restarts.life();
    Some(Held { domain, life })
}

/// The threads inside were not gone in time, or a call of this very thread is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("threads are inside the domain; interrupt() it, wait, and try again")]
pub struct Busy;

impl Domain {
    /// What faults, logs and tables call it: [`DomainBuilder::name`].
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The image of which this is an instance.
    pub fn image(&self) -> Image {
        Image(self.0.image.clone())
    }

    /// A number that no other domain of the process has or had.
    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// A typed entry: `domain.func::<fn(i32, i32) -> i64>("add")`.
    ///
    /// # Errors
    /// No such export, or the image's signature is another or unknown.
    pub fn func<F: FuncType>(&self, name: &str) -> Result<Func<F>, SymbolError> {
        let export = self.export(name)?;
        let wanted = F::signature();
        signature::alleged(name, export.signature)?;
        signature::agrees(name, export.signature, &wanted)?;
        Ok(Func::new(self, export.offset, &wanted))
    }

    /// As [`Domain::func`] for functions whose types the image does not say. A wrong type makes the call meaningless, never
    /// unsafe.
    ///
    /// # Errors
    /// No such export.
    pub fn func_unchecked<F: FuncType>(&self, name: &str) -> Result<Func<F>, SymbolError> {
        let export = self.export(name)?;
        Ok(Func::new(self, export.offset, &F::signature()))
    }

    /// A typed entry for a function pointer that came from the extension.
    ///
    /// # Errors
    /// The offset is not a verified instruction start.
    pub fn func_at<F: FuncType>(&self, offset: crate::Offset) -> Result<Func<F>, SymbolError> {
        if !self.0.is_start(offset.0) {
            return Err(SymbolError::NotAFunction(offset.0));
        }
        Ok(Func::new(self, offset.0, &F::signature()))
    }

    /// A plain C function pointer to an export. `signature` must be the type by which the host calls it: registers and words of the
    /// caller's stack are copied by it. What the image says is only compared. The same function has the same pointer. It ends
    /// with the domain: calls return 0 from then on. Only once a thousand more pointers of the same C type have ended can its place
    /// be another domain's function, of that type.
    ///
    /// # Errors
    /// No such export, or the image says that its types are others.
    pub fn function_pointer(
        &self,
        name: &str,
        signature: &Signature,
    ) -> Result<*const (), SymbolError> {
        let offset = self.typed_export(name, signature)?;
        self.pointer(offset, signature)
    }

    /// What the image says of an export's types. It is an allegation of the file: for people, and for hosts that choose their own types
    /// after looking at it, argument by argument; never to be handed to [`Domain::function_pointer`] unseen.
    ///
    /// # Errors
    /// No such export, or the image does not say.
    pub fn signature(&self, name: &str) -> Result<Signature, SymbolError> {
        signature::alleged(name, self.export(name)?.signature)
    }

    /// As [`Domain::function_pointer`] for a function pointer that came from the extension.
    ///
    /// # Errors
    /// The offset is not a verified instruction start.
    pub fn function_pointer_at(
        &self,
        offset: crate::Offset,
        signature: &Signature,
    ) -> Result<*const (), SymbolError> {
        if !self.0.is_start(offset.0) {
            return Err(SymbolError::NotAFunction(offset.0));
        }
        self.pointer(offset.0, signature)
    }

    fn pointer(&self, offset: u32, signature: &Signature) -> Result<*const (), SymbolError> {
        self.0.pointer_to(self.entry(offset, signature), signature)
    }

    pub(crate) fn typed_export(&self, name: &str, wanted: &Signature) -> Result<u32, SymbolError> {
        self.0.typed_export(name, wanted)
    }

    pub(crate) fn export(&self, name: &str) -> Result<&postern_image::ExportOwned, SymbolError> {
        self.0.export(name)
    }

    /// An entry whose calls bring payload: its first parameter is the offset of that.
    pub(crate) fn freight_entry(&self, name: &str, signature: &str) -> Result<Entry, SymbolError> {
        let wanted: Signature = signature
            .parse()
            .map_err(|_| SymbolError::Untyped(name.to_owned()))?;
        let offset = self.typed_export(name, &wanted)?;
        let manner = Manner {
            payload: true,
            ..Manner::default()
        };
        Ok(self.0.control.entry(offset, &wanted, manner))
    }

    pub(crate) fn entry(&self, offset: u32, signature: &Signature) -> Entry {
        self.0.entry(offset, signature)
    }

    /// Back to the image's first state: private pages dropped, fault forgotten, counters kept.
    ///
    /// # Errors
    /// [`Busy`] while threads are inside; the static constructors' own error otherwise is reported as a fault of the next call.
    pub fn reset(&self) -> Result<(), Busy> {
        let span = tracing::debug_span!("postern.reset", domain = %self.0.name, image = %self.0.image.name);
        let _entered = span.enter();
        self.0.start_again(None)?;
        self.0.restarts.forget();
        Ok(())
    }

    /// Ends every call that is inside now. Each returns a fault of kind `Interrupted`; the domain stays usable unless
    /// something else poisoned it.
    pub fn interrupt(&self) {
        self.0.end_all(outcome::INTERRUPT);
    }

    /// Lets nobody in any more, ends the calls inside, and waits until they have left: all but those of this very thread, which end
    /// when the service that closes their domain returns, and those of threads that wait for this one, since one of two services that
    /// close each other's domains must be the first to go on. These, too, end as soon as their services return.
    pub fn close(&self) {
        self.0.control.lifecycle().close();
        self.0.drain();
    }

    /// Whether a fault has closed the domain until it is reset.
    pub fn is_poisoned(&self) -> bool {
        self.0.control.lifecycle().settled() == Phase::Poisoned
    }

    /// Whether the domain was closed for good.
    pub fn is_closed(&self) -> bool {
        self.0.control.lifecycle().now() == Phase::Closed
    }

    /// Address of offset 0 now, for tools that look at the process from outside. A domain may be moved between calls, unless its
    /// placement is [`Placement::Cold`].
    pub fn base(&self) -> u64 {
        self.0.instance.base()
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("name", &self.0.name)
            .field("image", &self.0.image.name)
            .field("base", &format_args!("{:#x}", self.base()))
            .finish_non_exhaustive()
    }
}

impl DomainInner {
    /// The offset of an export that can be called with `wanted`, as far as the image says its types.
    pub(crate) fn typed_export(&self, name: &str, wanted: &Signature) -> Result<u32, SymbolError> {
        let export = self.export(name)?;
        signature::agrees(name, export.signature, wanted)?;
        Ok(export.offset)
    }

    pub(crate) fn export(&self, name: &str) -> Result<&postern_image::ExportOwned, SymbolError> {
        let tables = &self.image.tables;
        tables.export(name).ok_or_else(|| SymbolError::Missing {
            name: name.to_owned(),
            nearest: signature::nearest(name, tables.exports.iter().map(|e| &*e.name)),
        })
    }

    pub(crate) fn entry(&self, offset: u32, signature: &Signature) -> Entry {
        self.control.entry(offset, signature, Manner::default())
    }

    /// A plain C function pointer to an entry of this domain's.
    ///
    /// # Errors
    /// The kernel's, if no stub can be made.
    pub fn pointer_to(
        &self,
        entry: Entry,
        signature: &Signature,
    ) -> Result<*const (), SymbolError> {
        self.pointed_to.store(true, Ordering::SeqCst);
        let entry = entry.for_c(signature.result());
        Ok(self.control.pointer(entry)? as *const ())
    }

    /// As `entry`, with a limit of time in nanoseconds and a recovery of its own.
    pub fn own_entry(
        &self,
        offset: u32,
        signature: &Signature,
        limit: u64,
        recovery: u32,
    ) -> Entry {
        let manner = Manner {
            limit,
            recovery,
            ..Manner::default()
        };
        self.control.entry(offset, signature, manner)
    }

    /// The same for callers that use C's calling convention and may leave anything in unused registers.
    pub(crate) fn c_entry(&self, offset: u32, signature: &Signature) -> Entry {
        self.entry(offset, signature).for_c(signature.result())
    }

    /// Runs the static constructors, if there are any. The domain is in `phase`, and they are let in.
    fn initialise(&self, phase: Phase) -> Result<(), CallError> {
        let Some(export) = self.image.tables.export("__postern_init") else {
            return Ok(());
        };
        let nothing = <fn() as FuncType>::signature();
        let entry = self.entry(export.offset, &nothing);
        call::run(&match phase {
            Phase::Exclusive => entry.in_exclusive(),
            _ => entry,
        })
    }

    /// Back to the image's first state, from phase `from` or from any in which somebody may. If the static constructors fail, the
    /// domain is poisoned.
    pub(crate) fn start_again(&self, from: Option<Phase>) -> Result<(), Busy> {
        self.exclusive_from(from, |inner, _| {
            inner.restarts.begin();
            inner.system.reset();
            inner.repossessions.clear();
            inner.instance.refresh()?;
            if let Some(code) = inner.code.get() {
                code.first_values(&inner.instance.pin());
            }
            let begun = inner.initialise(Phase::Exclusive);
            if begun.is_err() {
                inner.restarts.failed();
            }
            Ok(match begun {
                Ok(()) => Phase::Open,
                Err(_) => Phase::Poisoned,
            })
        })
    }

    /// Whether calls may begin at `offset`.
    fn is_start(&self, offset: u32) -> bool {
        let code = || self.code.get().is_some_and(|code| code.is_entry(offset));
        self.image.text.is_start(offset) || code()
    }

    pub(crate) fn note_fault(&self, fault: &Fault) {
        self.faults[fault.kind as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(handler) = &self.on_fault {
            handler(fault);
        }
    }
}

/// For the gate's slow path: the first entry of a thread into a domain.
pub(crate) fn give_data_stack(control: &Control, index: usize) -> Result<(), Refusal> {
    let inner = of(control).ok_or(Refusal::Closed)?;
    let given = inner.instance.give_data_stack(inner.limits.threads);
    if given.is_err() {
        inner.ends_if_torn();
    }
    // A gate cannot be unwound.
    placement::let_go(inner);
    control.give_data_stack(index, given?);
    Ok(())
}

/// For a thread of the host that got the index, and so the data stacks, of one that has ended: thread-local variables begin anew.
pub(crate) fn renew_thread(index: usize) {
    if !crate::image::THREAD_LOCALS_EXIST.load(Ordering::SeqCst) {
        return;
    }
    let live: Vec<Arc<DomainInner>> = domains().iter().filter_map(Weak::upgrade).collect();
    for inner in live {
        let first = inner.control.data_stack(index);
        inner.instance.renew_stack_top(first);
        placement::let_go(inner);
    }
}

impl Drop for DomainInner {
    fn drop(&mut self) {
        if self.0.is_none() {
            return;
        }
        if !self.ending.swap(true, Ordering::SeqCst) {
            self.control.lifecycle().close();
            if self.pointed_to.load(Ordering::SeqCst) {
                // C function pointers and peers hold no reference: their calls may be inside.
                self.drain();
            }
        }
        if self.occupied() && reclaim::keep(self) {
            return;
        }
        placement::leaves(self);
        metrics::keep(self);
        crate::symbols::hide(self);
        let number = self.control.number() as usize;
        // A failed build drops a domain that was never registered.
        if let Some(place) = domains().get_mut(number) {
            *place = Weak::new();
            crate::table::forget_domain(number);
        }
    }
}
