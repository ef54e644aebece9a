//! Domains: one instance of an image each, with its window, limits, services and counters.

pub(crate) mod above;
mod build;
mod caller;
mod end;
mod functions;
mod in_common;
mod life;
mod limits;
mod quiesce;
pub(crate) mod reclaim;
mod room;
mod shared;
mod stacks;

pub use build::DomainBuilder;
pub use limits::Limits;
pub(crate) use room::common_layout;
pub(crate) use stacks::{give_data_stack, renew_thread};

use crate::code::AddedCode;
use crate::common::Poison;
use crate::common::follower::Watch;
use crate::common::header::CommonPhase;
use crate::error::SymbolError;
use crate::event::state::EventState;
use crate::fault::{Fault, FaultKind};
use crate::image::{Image, ImageInner};
use crate::instance::Instance;
use crate::own_threads::state::OwnThreads;
use crate::placement::PlacementState;
use crate::restart::Restarts;
use crate::revoke::Repossessions;
use crate::service::Services;
use crate::signature;
use crate::system::System;
use crate::table;
use postern_gates::above::Held;
use postern_gates::block::Block;
use postern_gates::control::Control;
use postern_gates::entry::Entry;
use postern_gates::entry::Manner;
use postern_gates::lifecycle::Phase;
use postern_image::Signature;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use thiserror::Error;

type OnFault = Box<dyn Fn(&Fault) + Send + Sync>;

/// Who is told of a domain's faults before they close it: the module of which it is a version.
pub trait Supervisor: Send + Sync {
    /// A call of the domain with this number ([`Domain::id`]) ended in a fault, and the domain is
    /// about to be closed.
    fn faulted(&self, domain: u64, fault: &Arc<Fault>);
}

/// An instance of an image: a protection domain. Cloning shares it. With the last clone it closes;
/// its window returns to the pool, and what its services own is dropped, once no call is inside: a
/// service may drop the domain that called it.
#[derive(Clone)]
pub struct Domain(pub(crate) Arc<DomainInner>);

/// What the handles share. Its end is not that of the [`Parts`]: those stay for as long as a call
/// is inside ([`reclaim`]).
pub struct DomainInner(Option<Box<Parts>>);

/// What a domain is made of. Whoever is inside may use all of it, without a reference to show for
/// it.
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
    pub(crate) system: Arc<System>,
    /// Threads that its extension started.
    pub(crate) threads: Arc<OwnThreads>,
    pub(crate) place: PlacementState,
    pub(crate) repossessions: Repossessions,
    /// What its handlers are called for.
    pub(crate) events: Arc<EventState>,
    pub(crate) restarts: Restarts,
    /// Who is told of faults before they close it.
    pub(crate) supervisor: OnceLock<Weak<dyn Supervisor>>,
    /// What makes it a namespace.
    pub(crate) code: OnceLock<Arc<dyn AddedCode>>,
    /// Its thread that looks at what other processes do with it, if they have it, too.
    watch: OnceLock<Watch>,
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

/// Drops a domain that its last user may have dropped meanwhile: on a thread of its own, because
/// closures of the host go with it, and neither the watchdog nor a gate can wait for those or take
/// their panics.
pub(crate) fn let_go(inner: Arc<DomainInner>) {
    if let Some(last) = Arc::into_inner(inner) {
        let thread = std::thread::Builder::new().name("postern-drop".into());
        // If there can be no thread, the closure is dropped here, and the domain with it.
        drop(thread.spawn(move || drop(last)));
    }
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

    /// Whether a fault has closed the domain until it is reset.
    pub fn is_poisoned(&self) -> bool {
        self.0.control.lifecycle().settled() == Phase::Poisoned
    }

    /// Why the domain is poisoned, if it is a common one ([`DomainBuilder::common`]): what closed
    /// it, in whichever process. This process may be about to close its own.
    pub fn poison(&self) -> Option<Poison> {
        let header = self.0.instance.seat()?.header();
        let closed = header.phase() == CommonPhase::Poisoned;
        closed.then(|| Poison::of(header.why(), &self.0.image))
    }

    /// Whether the domain was closed for good.
    pub fn is_closed(&self) -> bool {
        self.0.control.lifecycle().now() == Phase::Closed
    }

    /// Address of offset 0 now, for tools that look at the process from outside. A domain may be
    /// moved between calls, unless its placement is [`Placement::Cold`].
    pub fn base(&self) -> u64 {
        self.0.instance.base()
    }
}

/// A panic of a service ends the call, so what it leaves half done is the extension's memory, which
/// nobody trusts.
impl std::panic::UnwindSafe for Domain {}
impl std::panic::RefUnwindSafe for Domain {}

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
    /// [`Domain::id`].
    pub(crate) fn id(&self) -> u64 {
        let number = u64::from(self.control.number());
        number << 32 | u64::from(self.control.generation())
    }

    /// Of its control block, for its share of the locks: [`crate::fork::lock_one_of_many`].
    pub fn number(&self) -> usize {
        self.control.number() as usize
    }

    /// Notes in the table for other processes that the domain is there, and where it lies now. For
    /// the locks see [`table::note_domain`].
    pub(crate) fn note(&self) {
        let base = self.instance.base();
        table::note_domain(self.control.number(), base, &self.name, &self.image.name);
    }

    /// The offset of an export that can be called with `wanted`, as far as the image says its
    /// types.
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

    /// The same for callers that use C's calling convention and may leave anything in unused
    /// registers.
    pub(crate) fn c_entry(&self, offset: u32, signature: &Signature) -> Entry {
        self.entry(offset, signature).for_c(signature.result())
    }

    /// Whether calls may begin at `offset`.
    pub(crate) fn is_start(&self, offset: u32) -> bool {
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
