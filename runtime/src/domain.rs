//! Domains: one instance of an image each, with its window, limits, services and counters.

use crate::call::{CallError, Func, FuncType};
use crate::error::{InstantiateError, SymbolError};
use crate::fault::{Fault, FaultKind};
use crate::image::{Image, ImageInner};
use crate::instance::Instance;
use crate::policy::{Policy, System};
use crate::service::{self, Service, Services};
use crate::trusted::control::{BUSY, Block, CLOSED, Control, Entry, OPEN, POISONED};
use crate::trusted::map::MapError;
use crate::trusted::outcome::{self, Refusal};
use crate::trusted::{gate, machine, shim, signal, slow, stub, thread};
use postern_image::{MemoryLayout, Signature};
use postern_verifier::window::{LIMIT, PAGE};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use thiserror::Error;

/// What a domain may use. All have defaults that suit a request handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of heap; `None` takes the image's wish, or 64 MiB.
    pub heap: Option<u64>,
    /// Longest time of one call; `None` is no limit. Default: 1 s.
    pub deadline: Option<Duration>,
    /// Deepest nesting of calls inside the extension; `None` is as deep as the thread's own stack.
    pub call_depth: Option<u32>,
    /// Threads that may ever be inside. Default: 256.
    pub threads: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            heap: None,
            deadline: Some(Duration::from_secs(1)),
            call_depth: None,
            threads: 256,
        }
    }
}

/// Where a domain's window shall lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// In the hot window if nobody is there, else anywhere.
    #[default]
    Auto,
    /// As `Auto`; says that the domain runs long enough to be worth it.
    Hot,
    /// Never in the hot window.
    Cold,
}

/// Collects what a domain is made of. See [`Domain::builder`].
#[must_use = "nothing happens before build()"]
pub struct DomainBuilder {
    image: Image,
    limits: Limits,
    placement: Placement,
    services: Services,
    policy: Policy,
    on_fault: Option<OnFault>,
}

type OnFault = Box<dyn Fn(&Fault) + Send + Sync>;

/// An instance of an image: a protection domain. Cloning shares it; the window returns to the pool with the last clone.
#[derive(Clone)]
pub struct Domain(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) image: Arc<ImageInner>,
    pub(crate) control: Block,
    pub(crate) limits: Limits,
    pub(crate) instance: Instance,
    on_fault: Option<OnFault>,
    /// Whether C function pointers were made.
    pointed_to: AtomicBool,
    /// Faults by kind, in the order of [`FaultKind::ALL`].
    pub(crate) faults: [AtomicU64; FaultKind::ALL.len()],
    /// Referred to by the control block; dropped after it closes.
    pub(crate) services: Services,
    pub(crate) system: Arc<System>,
}

pub(crate) type Domains = Vec<Weak<Inner>>;
static DOMAINS: Mutex<Domains> = Mutex::new(Vec::new());

/// Live domains by the number of their control block.
pub(crate) fn domains() -> MutexGuard<'static, Domains> {
    DOMAINS.lock().unwrap_or_else(|e| e.into_inner())
}

/// The domain of a control block, if it is still there.
pub(crate) fn of(control: &Control) -> Option<Arc<Inner>> {
    let number = control.number.load(Ordering::Relaxed) as usize;
    domains().get(number)?.upgrade()
}

/// The threads inside were not gone in time, or a call of this very thread is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("threads are inside the domain; interrupt() it, wait, and try again")]
pub struct Busy;

impl DomainBuilder {
    /// Limits of memory, time and depth.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Longest time of one call.
    pub fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.limits.deadline = deadline;
        self
    }

    /// Bytes of heap.
    pub fn heap(mut self, bytes: u64) -> Self {
        self.limits.heap = Some(bytes);
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
    /// `function` must be a function of the C calling convention with this signature, callable with any argument values from any
    /// thread, that neither unwinds nor longjmps into frames below the entry gate.
    pub unsafe fn service_c(
        mut self,
        name: &str,
        function: *const (),
        signature: Signature,
        stack: usize,
    ) -> Self {
        self.services
            .add_c(name, function as usize, signature, stack);
        self
    }

    /// What the system calls of the extension may do. Default: [`Policy::none`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Called with every fault of the domain, after the extension has been left, on the thread that made the call.
    pub fn on_fault(mut self, handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        self.on_fault = Some(Box::new(handler));
        self
    }

    /// Makes the domain.
    ///
    /// # Errors
    /// An import has no service or another type, limits do not fit the window, no memory, or the extension's initialisation failed.
    pub fn build(self) -> Result<Domain, InstantiateError> {
        let image = self.image.0;
        let span = tracing::info_span!("postern.instantiate", image = %image.name);
        let _entered = span.enter();
        let system = Arc::new(System::new(self.policy));
        let services = self.services.resolve(&image.tables.imports, &system)?;
        let layout = image.tables.layout;
        let heap = heap_range(&image, &layout, &self.limits)?;
        let instance = Instance::new(&image, heap, self.placement != Placement::Cold)?;
        let control = Block::take()?;
        control.base.store(instance.base(), Ordering::Relaxed);
        control.facts.store(image.fact_bits, Ordering::Relaxed);
        control.services.store(services.table(), Ordering::Relaxed);
        control
            .stack_log2
            .store(image.tables.header.stack_log2, Ordering::Relaxed);
        let deadline = self.limits.deadline.map_or(0, |d| {
            u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1)
        });
        control.deadline.store(deadline, Ordering::Relaxed);
        control.call_depth.store(
            self.limits.call_depth.map_or(0, |d| u64::from(d).max(1)),
            Ordering::Relaxed,
        );
        let inner = Arc::new(Inner {
            image,
            control,
            limits: self.limits,
            instance,
            on_fault: self.on_fault,
            pointed_to: AtomicBool::new(false),
            faults: Default::default(),
            services,
            system,
        });
        inner.system.belongs_to(&inner);
        register(&inner);
        inner.control.state.store(OPEN, Ordering::SeqCst);
        let domain = Domain(inner);
        domain
            .initialise()
            .map_err(InstantiateError::Initialisation)?;
        Ok(domain)
    }
}

/// Makes the domain findable by its control block.
fn register(inner: &Arc<Inner>) {
    let number = inner.control.number.load(Ordering::Relaxed) as usize;
    let mut domains = domains();
    if domains.len() <= number {
        domains.resize(number + 1, Weak::new());
    }
    domains[number] = Arc::downgrade(inner);
}

/// First and last (exclusive) offset of the heap.
fn heap_range(
    image: &ImageInner,
    layout: &MemoryLayout,
    limits: &Limits,
) -> Result<(u32, u32), InstantiateError> {
    const DEFAULT: u64 = 64 << 20;
    let wish = image.tables.header.heap_wish;
    let bytes = limits
        .heap
        .unwrap_or(if wish == 0 { DEFAULT } else { wish });
    let pages = bytes.div_ceil(u64::from(PAGE));
    let end = u64::from(layout.heap_start).saturating_add(pages.saturating_mul(PAGE.into()));
    let room = u64::from(LIMIT) - u64::from(layout.stack_size);
    if end > room {
        return Err(InstantiateError::Limits(format!(
            "a heap of {bytes} bytes does not fit the window: at most {} are left",
            room.saturating_sub(u64::from(layout.heap_start))
        )));
    }
    Ok((layout.heap_start, end as u32))
}

impl Domain {
    /// Begins a new domain of `image`.
    pub fn builder(image: &Image) -> DomainBuilder {
        DomainBuilder {
            image: image.clone(),
            limits: Limits::default(),
            placement: Placement::default(),
            services: Services::default(),
            policy: Policy::none(),
            on_fault: None,
        }
    }

    /// The image of which this is an instance.
    pub fn image(&self) -> Image {
        Image(self.0.image.clone())
    }

    /// A typed entry: `domain.func::<fn(i32, i32) -> i64>("add")`.
    ///
    /// # Errors
    /// No such export, or the image's signature is another or unknown.
    pub fn func<F: FuncType>(&self, name: &str) -> Result<Func<F>, SymbolError> {
        let export = self.export(name)?;
        let wanted = F::signature();
        match &export.signature {
            Some(found) if service::compatible(found, &wanted) => {}
            Some(found) => {
                return Err(SymbolError::Signature {
                    name: name.to_owned(),
                    found: *found,
                    wanted,
                });
            }
            None => return Err(SymbolError::Untyped(name.to_owned())),
        }
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
        if !self.0.image.is_start(offset.0) {
            return Err(SymbolError::NotAFunction(offset.0));
        }
        Ok(Func::new(self, offset.0, &F::signature()))
    }

    /// A plain C function pointer to an export, with the image's signature or the one given. It may be called for good: once the
    /// domain is closed, calls return 0.
    ///
    /// # Errors
    /// No such export, or its types are unknown.
    pub fn function_pointer(
        &self,
        name: &str,
        signature: Option<&Signature>,
    ) -> Result<*const (), SymbolError> {
        let export = self.export(name)?;
        let signature = match (signature, &export.signature) {
            (Some(wanted), Some(found)) if !service::compatible(found, wanted) => {
                return Err(SymbolError::Signature {
                    name: name.to_owned(),
                    found: *found,
                    wanted: *wanted,
                });
            }
            (Some(signature), _) | (None, Some(signature)) => signature,
            (None, None) => return Err(SymbolError::Untyped(name.to_owned())),
        };
        self.pointer(export.offset, signature)
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
        if !self.0.image.is_start(offset.0) {
            return Err(SymbolError::NotAFunction(offset.0));
        }
        self.pointer(offset.0, signature)
    }

    fn pointer(&self, offset: u32, signature: &Signature) -> Result<*const (), SymbolError> {
        self.0.pointed_to.store(true, Ordering::SeqCst);
        let mut entry = self.entry(offset, signature);
        let class = gate::class(self.0.image.fact_bits, self.0.needs_full(&entry));
        entry.gate = class.masked;
        if let Some(narrow) = gate::narrow(signature.result()) {
            (entry.gate, entry.inner) = (narrow, class.masked);
        }
        let entry: &'static Entry = Box::leak(Box::new(entry));
        Ok(stub::make(entry)? as *const ())
    }

    fn export(&self, name: &str) -> Result<&postern_image::ExportOwned, SymbolError> {
        let tables = &self.0.image.tables;
        tables.export(name).ok_or_else(|| SymbolError::Missing {
            name: name.to_owned(),
            nearest: service::nearest(name, tables.exports.iter().map(|e| &*e.name)),
        })
    }

    pub(crate) fn entry(&self, offset: u32, signature: &Signature) -> Entry {
        service::entry(&self.0.control, offset, signature, |entry| {
            gate::class(self.0.image.fact_bits, self.0.needs_full(entry))
        })
    }

    /// Runs the static constructors, if there are any.
    fn initialise(&self) -> Result<(), CallError> {
        match self.0.image.tables.export("__postern_init") {
            Some(_) => self
                .func_unchecked::<fn()>("__postern_init")
                .map_or(Ok(()), |init| init.call()),
            None => Ok(()),
        }
    }

    /// Back to the image's first state: private pages dropped, fault forgotten, counters kept.
    ///
    /// # Errors
    /// [`Busy`] while threads are inside; the static constructors' own error otherwise is reported as a fault of the next call.
    pub fn reset(&self) -> Result<(), Busy> {
        let span = tracing::debug_span!("postern.reset", image = %self.0.image.name);
        let _entered = span.enter();
        self.0.exclusive(|inner| {
            inner.system.reset();
            inner.instance.discard()
        })?;
        if self.initialise().is_err() {
            let state = &self.0.control.state;
            let _ = state.compare_exchange(OPEN, POISONED, Ordering::SeqCst, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Another policy from now on, for calls that begin after this one. Open files of the extension are closed; a call that is
    /// being done is finished as it began.
    pub fn set_policy(&self, policy: Policy) {
        self.0.system.set_policy(policy);
    }

    /// Ends every call that is inside now. Each returns a fault of kind `Interrupted`; the domain stays usable unless
    /// something else poisoned it.
    pub fn interrupt(&self) {
        self.0.end_all(outcome::INTERRUPT);
    }

    /// Lets nobody in any more, ends the calls inside, and waits until they have left.
    pub fn close(&self) {
        self.0.control.state.store(CLOSED, Ordering::SeqCst);
        self.0.drain();
    }

    /// Whether a fault has closed the domain until it is reset.
    pub fn is_poisoned(&self) -> bool {
        self.0.control.state.load(Ordering::SeqCst) == POISONED
    }

    /// Whether the domain lies in the hot window.
    pub fn is_hot(&self) -> bool {
        self.0.instance.is_hot()
    }

    /// Address of offset 0, for tools that look at the process from outside.
    pub fn base(&self) -> u64 {
        self.0.instance.base()
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("image", &self.0.image.name)
            .field("base", &format_args!("{:#x}", self.base()))
            .finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) fn needs_full(&self, entry: &Entry) -> bool {
        entry.stack_words != 0 || self.limits.call_depth.is_some()
    }

    /// Whether any thread is inside, or waits in a service of a call of this domain.
    fn occupied(&self) -> bool {
        self.occupied_by(|_| true)
    }

    /// Whether one of the threads that `counts` is inside.
    fn occupied_by(&self, counts: impl Fn(&thread::Thread) -> bool) -> bool {
        let here: *const Control = &*self.control;
        thread::registry().iter().any(|(index, t)| {
            if !counts(t) {
                return false;
            }
            // Who is still entering has not looked at the state, and will find it closed.
            let inside = !matches!(
                t.mark.load(Ordering::SeqCst),
                thread::OUTSIDE | thread::ENTERING
            ) && std::ptr::eq(t.control.load(Ordering::SeqCst), here);
            inside || self.control.slot(index).waiting.load(Ordering::SeqCst) != 0
        })
    }

    /// Ends the calls inside a closed domain and waits until they have left. Calls of this very thread are not waited for: they
    /// end when the service that closes their domain returns.
    fn drain(&self) {
        machine::barrier();
        let me = thread::current();
        slow::forget_left(me);
        if me.mark.load(Ordering::Relaxed) == thread::IN_SERVICE
            && me
                .innermost()
                .is_some_and(|c| std::ptr::eq(c, &*self.control))
        {
            // The window may be gone when the service returns, so it must not return into it.
            shim::end_when_back(me, outcome::ANOTHER, 0, None);
        }
        while self.occupied_by(|t| !std::ptr::eq(t, me)) {
            self.end_all(outcome::ANOTHER);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Runs `work` while nobody is inside and nobody can enter; opens the domain afterwards.
    fn exclusive(&self, work: impl FnOnce(&Inner) -> Result<(), MapError>) -> Result<(), Busy> {
        let state = &self.control.state;
        let before = state.load(Ordering::SeqCst);
        if before == BUSY || before == CLOSED {
            return Err(Busy);
        }
        state
            .compare_exchange(before, BUSY, Ordering::SeqCst, Ordering::SeqCst)
            .map_err(|_| Busy)?;
        machine::barrier();
        slow::forget_left(thread::current());
        // Somebody may close the domain meanwhile, and that is for good.
        let put = |to| {
            let _ = state.compare_exchange(BUSY, to, Ordering::SeqCst, Ordering::SeqCst);
        };
        if self.occupied() {
            put(before);
            return Err(Busy);
        }
        let done = work(self);
        put(if done.is_ok() { OPEN } else { POISONED });
        done.map_err(|error| {
            tracing::error!(%error, image = %self.image.name, "the domain stays closed");
            Busy
        })
    }

    /// Asks every thread that is inside to end its call, also those that are just entering.
    fn end_all(&self, kind: u32) {
        machine::barrier();
        self.end_inside(kind);
    }

    /// Asks every thread that is seen inside to end its call.
    fn end_inside(&self, kind: u32) {
        let here: *const Control = &*self.control;
        let registry = thread::registry();
        for (_, t) in registry.iter() {
            let innermost = || {
                if let Some((sequence, control)) = t.innermost_call()
                    && std::ptr::eq(control, here)
                {
                    signal::request_end(t, sequence, kind);
                }
            };
            // Before and after, because a call may begin or cease to wait meanwhile.
            innermost();
            for call in t.waiting() {
                let sequence = call.sequence.load(Ordering::SeqCst);
                if sequence != 0 && std::ptr::eq(call.control.load(Ordering::SeqCst), here) {
                    call.end(sequence, kind);
                }
            }
            innermost();
        }
    }

    /// After a fault: nobody enters any more, and who is inside is thrown out; those that are just entering by the watchdog.
    pub(crate) fn poison(&self) {
        let poisoned =
            self.control
                .state
                .compare_exchange(OPEN, POISONED, Ordering::SeqCst, Ordering::SeqCst);
        if poisoned.is_ok() {
            self.end_inside(outcome::ANOTHER);
        }
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
    let begin = inner.instance.give_data_stack(inner.limits.threads)?;
    control.slot(index).stack.store(begin, Ordering::SeqCst);
    Ok(())
}

/// For a thread of the host that got the index, and so the data stacks, of one that has ended: thread-local variables begin anew.
pub(crate) fn renew_thread(index: usize) {
    if !crate::image::THREAD_LOCALS_EXIST.load(Ordering::SeqCst) {
        return;
    }
    let live: Vec<Arc<Inner>> = domains().iter().filter_map(Weak::upgrade).collect();
    for inner in live {
        let first = inner.control.slot(index).stack.load(Ordering::SeqCst);
        inner.instance.renew_stack_top(first);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.control.state.store(CLOSED, Ordering::SeqCst);
        if *self.pointed_to.get_mut() {
            // C function pointers hold no reference: their calls may be inside.
            self.drain();
        }
        let number = self.control.number.load(Ordering::Relaxed) as usize;
        // A failed build drops a domain that was never registered.
        if let Some(place) = domains().get_mut(number) {
            *place = Weak::new();
        }
    }
}
