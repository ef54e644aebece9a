//! Making a domain: what it is made of is collected, checked against the image, and only then does
//! the domain exist and open.

use super::room::{data_stack, heap_range};
use super::{Domain, DomainInner, Limits, OnFault, Parts, domains, reclaim};
use crate::builtin;
use crate::common::CommonMemory;
use crate::common::memory::{Seat, TurnOf};
use crate::config;
use crate::decision::Decider;
use crate::error::{CommonError, InstantiateError};
use crate::event::state::EventState;
use crate::event::way::Ways;
use crate::fault::Fault;
use crate::image::{Image, ImageInner};
use crate::instance::Instance;
use crate::own_threads::ThreadServices;
use crate::own_threads::state::OwnThreads;
use crate::placement::{self, Placement, PlacementState};
use crate::restart::{Clock, RestartRule, Restarts};
use crate::service::{Service, Services};
use crate::signature;
use crate::symbols;
use crate::system::{System, SystemCalls, SystemPolicy, SystemService};
use postern_gates::block::{Block, Terms};
use postern_gates::callee::Callee;
use postern_gates::gate::FACT_GS;
use postern_gates::lifecycle::Phase;
use postern_image::{ImportOwned, Signature};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Collects what a domain is made of. See [`Domain::builder`].
#[must_use = "nothing happens before build()"]
pub struct DomainBuilder {
    pub(crate) image: Image,
    name: Option<String>,
    limits: Limits,
    placement: Placement,
    pub(crate) services: Services,
    refuse_unused: bool,
    system: Option<Arc<dyn SystemService>>,
    decider: Option<Decider>,
    on_fault: Option<OnFault>,
    restart: Option<Box<dyn RestartRule>>,
    clock: Clock,
    common: Option<CommonMemory>,
    ways: Ways,
}

impl Domain {
    /// Begins a new domain of `image`.
    pub fn builder(image: &Image) -> DomainBuilder {
        DomainBuilder {
            image: image.clone(),
            name: None,
            limits: Limits::default(),
            placement: Placement::default(),
            services: Services::default(),
            refuse_unused: false,
            system: None,
            decider: None,
            on_fault: None,
            restart: None,
            clock: Clock::default(),
            common: None,
            ways: Ways::BEST,
        }
    }
}

impl DomainBuilder {
    /// What faults, logs and tables call the domain. Default: the image's name and a number that no
    /// other domain of the process ever has, as in `filter.px#3`. Names need not differ.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Limits of memory, time and depth.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Longest time of one call; `None` is no limit, and zero is over at once
    /// ([`Limits::deadline`]).
    pub fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.limits.deadline = deadline;
        self
    }

    /// Bytes of heap.
    pub fn heap(mut self, bytes: u64) -> Self {
        self.limits.heap = Some(bytes);
        self
    }

    /// Most bytes of heap that the image gets by its own wish: [`Limits::heap_ceiling`].
    pub fn heap_ceiling(mut self, bytes: u64) -> Self {
        self.limits.heap_ceiling = bytes;
        self
    }

    /// Bytes of each data stack: [`Limits::data_stack`].
    pub fn data_stack(mut self, bytes: u64) -> Self {
        self.limits.data_stack = Some(bytes);
        self
    }

    /// Most threads at once that the extension may start: [`Limits::own_threads`].
    pub fn own_threads(mut self, most: u32) -> Self {
        self.limits.own_threads = most;
        self
    }

    /// Where the window shall lie.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Grants a service: a closure of the form `|caller: &Caller, a: i32, …| -> result`.
    pub fn service<A: 'static, F: Service<A>>(mut self, name: &str, function: F) -> Self {
        self.services.add(name, function);
        self
    }

    /// Grants a service that is a plain C function. `stack` is what it needs, in bytes.
    ///
    /// # Safety
    /// `function` must be a function of the C calling convention with this signature, callable with
    /// any argument values from any thread, that neither unwinds nor longjmps into frames below the
    /// entry gate.
    #[expect(unsafe_code, reason = "the caller's promise")]
    pub unsafe fn service_c(
        mut self,
        name: &str,
        function: *const (),
        signature: Signature,
        stack: usize,
    ) -> Self {
        // SAFETY: the caller's promise.
        let callee = unsafe { Callee::function(function as usize, signature.parameters()) };
        self.services.add_c(name, callee, signature, stack);
        self
    }

    /// The imports that nothing is granted for so far: with them [`Self::build`] would fail.
    pub fn missing(&self) -> Vec<&str> {
        let imports = self.image.0.tables.imports.iter();
        let names = imports.map(|import| &*import.name);
        names
            .filter(|name| *name != "sys" && !name.starts_with("__postern_"))
            .filter(|name| !self.services.offers_name(name))
            .collect()
    }

    /// Services and peers that were granted by name and that the image does not import: misspelt
    /// perhaps, or another image's. [`Self::build`] logs them at level debug, since many hosts
    /// grant all that they have.
    pub fn unused(&self) -> Vec<&str> {
        self.services.unused(&self.image.0.services)
    }

    /// Has [`Self::build`] fail if there are any ([`Self::unused`]). What is of a
    /// [`ServiceSet`](crate::ServiceSet) may be left unused all the same.
    pub fn refuse_unused(mut self) -> Self {
        self.refuse_unused = true;
        self
    }

    /// Lets the domain be made without a service for every import: a call of a missing one ends the
    /// host's call as a fault of kind `Aborted` that names it.
    pub fn stand_in_for_missing(mut self) -> Self {
        for import in &self.image.0.tables.imports {
            let own = &*import.name == "sys" || import.name.starts_with("__postern_");
            if !own {
                self.services.stand_in(import);
            }
        }
        self
    }

    /// What the system calls of the extension may do. Default: nothing, as by `Policy::none`.
    pub fn policy(mut self, policy: impl SystemPolicy) -> Self {
        self.system = Some(policy.service());
        self
    }

    /// Who is asked before each call of a service or of the system is made. What it allows still
    /// needs a service, or a policy that grants the system call. Default: nobody.
    pub fn decider(mut self, decider: Decider) -> Self {
        self.decider = Some(decider);
        self
    }

    /// Called with every fault of the domain, after the extension has been left, on the thread that
    /// made the call.
    pub fn on_fault(mut self, handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        self.on_fault = Some(Box::new(handler));
        self
    }

    /// What happens after a fault. Default: as by `RestartPolicy::Never`.
    pub fn restart(mut self, policy: impl RestartRule) -> Self {
        self.restart = Some(Box::new(policy));
        self
    }

    /// Makes the domain one of those that have this memory, in this process and others: what one
    /// writes to data or heap, all read. Static constructors run once, in the first of them. The
    /// limits of heap and data stacks are the memory's. The window is never the hot one.
    ///
    /// Services, policy and decider are this process's; but all that have the memory can have the
    /// domain's functions use them.
    pub fn common(mut self, memory: &CommonMemory) -> Self {
        self.common = Some(memory.clone());
        self
    }

    /// Which way events are to get to their handlers ([`Domain::on`]). Default: the best that the
    /// kernel allows.
    pub fn ways(mut self, ways: Ways) -> Self {
        self.ways = ways;
        self
    }

    /// The time by which back-off is measured, instead of the system's: for tests. It must not go
    /// backwards.
    pub fn clock(mut self, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Clock::of(now);
        self
    }

    /// Makes the domain.
    ///
    /// # Errors
    /// An import has no service or another type, a service is no import and that was to be refused
    /// ([`Self::refuse_unused`]), limits do not fit the window, no memory, or the
    /// extension's initialisation failed. Each names the image; [`InstantiateError::cause`] is the
    /// error itself.
    pub fn build(self) -> Result<Domain, InstantiateError> {
        let image = self.image.clone();
        self.make().map_err(|source| InstantiateError::Image {
            image: image.name().to_owned(),
            source: Box::new(source),
        })
    }

    fn make(mut self) -> Result<Domain, InstantiateError> {
        let image = self.image.0;
        let name = self.name.unwrap_or_else(|| default_name(&image)).into();
        let span = tracing::info_span!("postern.instantiate", image = %image.name, domain = %name);
        let _entered = span.enter();
        reclaim::sweep();
        let deciding = self.services.deciding().clone();
        let system = Arc::new(System::new(self.system, deciding));
        let imports = &image.tables.imports;
        for name in self.services.unused(&image.services) {
            let unused = not_imported(name, imports);
            if self.refuse_unused {
                return Err(unused);
            }
            tracing::debug!("{unused}");
        }
        let threads = Arc::new(OwnThreads::new(self.limits.own_threads));
        let of_threads = ThreadServices::new(&threads);
        let events = Arc::new(EventState::new(self.ways));
        builtin::offer(&mut self.services, imports, &of_threads, &events);
        let wants_system = imports.iter().any(|import| &*import.name == "sys");
        let calls = wants_system.then(|| SystemCalls::offer(&system, &mut self.services));
        let services = self.services.resolve(imports)?;
        let attached = self.common.map(|memory| attach(&image, &memory));
        let (seat, turn) = attached.transpose()?.unzip();
        let (heap, stack) = match &seat {
            Some(seat) => {
                self.placement = Placement::Cold;
                let layout = seat.memory().layout();
                let heap = (layout.heap_start, layout.heap_end);
                (heap, layout.stack_size)
            }
            None => {
                let stack = data_stack(&image, &self.limits)?;
                let layout = image.tables.layout;
                (heap_range(&image, &layout, &self.limits, stack)?, stack)
            }
        };
        let hot = placement::take(self.placement);
        let instance = Instance::new(&image, heap, stack, hot, seat)?;
        let control = Block::take()?;
        let gs = if config::current().restore_gs {
            FACT_GS
        } else {
            0
        };
        let stays = instance.seat().is_some();
        let seat = instance.seat();
        let inside = seat.and_then(|seat| seat.header().words_inside(seat.number()));
        let terms = Terms {
            facts: image.fact_bits | gs,
            deadline: self.limits.deadline.map_or(0, |d| {
                u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1)
            }),
            call_depth: self.limits.call_depth.map_or(0, |d| u64::from(d).max(1)),
            data_stack: stack,
            inside,
        };
        instance.pin().furnish(&control, services.table(), &terms)?;
        let number = control.number() as usize;
        let inner = Arc::new(DomainInner(Some(Box::new(Parts {
            image,
            name,
            control,
            limits: self.limits,
            instance,
            on_fault: self.on_fault,
            pointed_to: AtomicBool::new(false),
            faults: Default::default(),
            services,
            system,
            threads,
            place: PlacementState::new(self.placement, stays),
            repossessions: Default::default(),
            events,
            restarts: Restarts::new(self.restart, self.clock, number),
            supervisor: OnceLock::new(),
            code: OnceLock::new(),
            watch: OnceLock::new(),
            ending: AtomicBool::new(false),
        }))));
        if let Some(calls) = calls {
            calls.belongs_to(&inner);
        }
        of_threads.belong_to(&inner);
        register(&inner);
        if self.decider.is_some() {
            inner.services.set_decider(&inner, self.decider);
        }
        inner.control.open();
        symbols::show(&inner);
        placement::seated(&inner);
        match turn {
            Some(turn) => inner.begin_in_common(turn),
            None => inner.initialise(Phase::Open),
        }
        .map_err(InstantiateError::Initialisation)?;
        Ok(Domain(inner))
    }
}

/// A seat in the memory, with the turn.
fn attach(image: &ImageInner, memory: &CommonMemory) -> Result<(Seat, TurnOf), CommonError> {
    let memory = &memory.0;
    memory.is_of(image)?;
    memory.turn()?.sit()
}

fn not_imported(name: &str, imports: &[ImportOwned]) -> InstantiateError {
    let names = imports.iter().map(|import| &*import.name);
    InstantiateError::NotImported {
        name: name.to_owned(),
        nearest: signature::nearest(name, names),
    }
}

fn default_name(image: &ImageInner) -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    format!(
        "{}#{}",
        image.name,
        MADE.fetch_add(1, Ordering::Relaxed) + 1
    )
}

/// Makes the domain findable by its control block.
fn register(inner: &Arc<DomainInner>) {
    let number = inner.control.number() as usize;
    let mut domains = domains();
    if domains.len() <= number {
        domains.resize(number + 1, Weak::new());
    }
    domains[number] = Arc::downgrade(inner);
    inner.note();
}
