//! Namespaces: domains to which functions are added, one by one, while others run in them.
//!
//! A namespace is a domain with a code area above its heap. What is created there (E-code source,
//! objects of `postern cc -c`) is judged by the verifier, and then a name leads to it. All calls
//! between functions go through the names' slots, so replacing or deleting a function is one store,
//! whoever calls it meanwhile. `docs/src/internals/namespaces.md` has the argument.
//!
//! The line to the runtime: that a domain may have code which came later is known there
//! ([`AddedCode`](postern_runtime::code::AddedCode)), because faults, entries, resets and forks
//! meet it; what the code is, who may call whom by which name, and when it is freed is known here.
//! The bytes themselves are judged and written by the gates' code area.

#![forbid(unsafe_code)]

mod call;
mod elf;
mod error;
mod free;
mod id;
mod recovery;
mod settings;
mod slot_names;
#[cfg(feature = "ecode")]
mod source;
mod state;
mod turns;
mod variables;

pub use call::IdCallError;
pub use error::CreateError;
pub use id::FunctionId;
pub use postern_runtime::code::Recovery;
#[cfg(feature = "ecode")]
pub use source::compile_image;
pub use state::{Created, NamespaceCounters};

use postern_gates::code::{CodeArena, Plan};
use postern_gates::gate::{FACT_FLOAT, FACT_X87, FACT_XMM, FACT_YMM};
use postern_gates::machine;
use postern_image::{ImageBuilder, ImportOwned, Signature};

use postern_runtime::{
    Busy, Domain, DomainBuilder, Fault, Func, FuncType, Image, InstantiateError, LoadError,
    Placement, Service, ServiceSet, SymbolError, SystemPolicy, code, inner, signature,
};
use postern_supervision::{BackOff, RestartPolicy};
use postern_verifier::window::PAGE;
use state::{Code, Name};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// A domain to which functions are added while it runs. Cloning shares it.
///
/// ```
/// use postern::Namespace;
///
/// let plugins = Namespace::builder().build()?;
/// plugins.create("math.ec", "int square(int x) { return x * x; }")?;
/// plugins.create(
///     "sum.ec",
///     "int square(int x); int sum(int a, int b) { return square(a) + square(b); }",
/// )?;
/// let sum = plugins.func::<fn(i32, i32) -> i32>("sum")?;
/// assert_eq!(sum.call(3, 4)?, 25);
///
/// // Whoever calls `square` from now on calls the new one.
/// plugins.create("math.ec", "int square(int x) { return x * x + 1; }")?;
/// assert_eq!(sum.call(3, 4)?, 27);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Namespace {
    domain: Domain,
    code: Arc<Code>,
}

/// Registers, besides the general ones, that functions of a namespace may use. The gates keep them
/// clear of the host's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RegisterUse {
    /// None: the cheapest calls. E-code without floating point needs no more.
    General,
    /// Vectors of 128 bits, and with them all floating point of E-code.
    #[default]
    Vectors,
    /// Vectors of 256 bits.
    WideVectors,
    /// All of them and x87.
    All,
}

impl RegisterUse {
    fn fact_bits(self) -> u32 {
        // What comes later may compute with them.
        const VECTORS: u32 = FACT_XMM | FACT_FLOAT;
        match self {
            RegisterUse::General => 0,
            RegisterUse::Vectors => VECTORS,
            RegisterUse::WideVectors => VECTORS | FACT_YMM,
            RegisterUse::All => VECTORS | FACT_YMM | FACT_X87,
        }
    }
}

/// Bytes and numbers that a namespace has for its functions, besides what a domain has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capacity {
    /// Functions that can have a name at once, those of the image that are asked for among them.
    /// Default: 4096, at most 65536.
    pub functions: u32,
    /// Bytes of machine code. Default: 16 MiB.
    pub code: u64,
    /// Bytes of constants. Default: 16 MiB.
    pub constants: u64,
    /// Bytes of variables. Default: 64 MiB.
    pub variables: u64,
}

impl Default for Capacity {
    fn default() -> Capacity {
        Capacity {
            functions: 4096,
            code: 16 << 20,
            constants: 16 << 20,
            variables: 64 << 20,
        }
    }
}

/// A namespace was not made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The image cannot have more gate slots than fit before its text.
    #[error(
        "the image leaves room for fewer services than the namespace has ({0}); grant fewer, or link the image with more imports"
    )]
    Services(usize),
    /// The sizes do not fit the window.
    #[error(
        "the namespace does not fit the window: heap and code must end below 2 GiB; ask for less"
    )]
    Room,
    /// The image cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The domain was not made.
    #[error(transparent)]
    Instantiate(#[from] InstantiateError),
}

/// Collects what a namespace is made of. See [`Namespace::builder`].
#[must_use = "nothing happens before build()"]
pub struct NamespaceBuilder {
    image: Option<Image>,
    configure: Vec<Configure>,
    registers: RegisterUse,
    room: Capacity,
    recovery: Recovery,
    back_off: Option<BackOff>,
}

type Configure = Box<dyn FnOnce(DomainBuilder) -> DomainBuilder>;

impl Namespace {
    /// Begins an empty namespace.
    pub fn builder() -> NamespaceBuilder {
        NamespaceBuilder {
            image: None,
            configure: Vec::new(),
            registers: RegisterUse::default(),
            room: Capacity::default(),
            recovery: Recovery::default(),
            back_off: None,
        }
    }

    /// Begins a namespace that has the exports of a precompiled image: functions that are added
    /// call them, and replace them for each other and for the host. (The image's own calls of them
    /// stay as they were linked.)
    pub fn over(image: &Image) -> NamespaceBuilder {
        NamespaceBuilder {
            image: Some(image.clone()),
            ..Namespace::builder()
        }
    }

    fn code(&self) -> &Code {
        &self.code
    }

    /// The domain that it is: limits, memory, counters and faults are the domain's.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.domain.name()
    }

    /// What the name leads to now, to call it by. It leads to whatever takes the function's place,
    /// and to an error once that is deleted.
    pub fn lookup(&self, name: &str) -> Option<FunctionId> {
        self.find(name)
            .map(|(slot, generation)| FunctionId { slot, generation })
    }

    fn find(&self, name: &str) -> Option<(u32, u32)> {
        let mut state = self.code().lock();
        match state.find(&self.domain, name)? {
            Name::Function(slot) => Some((slot, state.slots[slot as usize].generation)),
            Name::Variable(..) => None,
        }
    }

    /// A typed entry: `namespace.func::<fn(i32, i32) -> i64>("add")`. It follows when the function
    /// is replaced; while no function has the name, calls of it end in a fault of kind
    /// [`Deleted`](postern_runtime::FaultKind::Deleted), which closes nothing.
    ///
    /// # Errors
    /// No such function, or its types are others or unknown.
    pub fn func<F: FuncType>(&self, name: &str) -> Result<Func<F>, SymbolError> {
        let wanted = F::signature();
        let (slot, _) = self.find(name).ok_or_else(|| self.missing(name))?;
        let state = self.code().lock();
        let entry = &state.slots[slot as usize];
        signature::alleged(name, entry.signature)?;
        signature::agrees(name, entry.signature, &wanted)?;
        let held = entry.held.clone();
        let entry = state.entry(&self.domain, slot, &wanted);
        drop(state);
        Ok(Func::held(&self.domain, entry, held))
    }

    /// A plain C function pointer to a function. `signature` must be the type by which the host
    /// calls it, as for [`Domain::function_pointer`]. It may be called for good, and follows when
    /// the function is replaced; where there is no result, the call returns 0, and
    /// [`last_error`](postern_runtime::last_error) says why.
    ///
    /// # Errors
    /// No such function, or its types are others.
    pub fn function_pointer(
        &self,
        name: &str,
        signature: &Signature,
    ) -> Result<*const (), SymbolError> {
        let (slot, _) = self.find(name).ok_or_else(|| self.missing(name))?;
        let mut state = self.code().lock();
        let entry = &mut state.slots[slot as usize];
        signature::agrees(name, entry.signature, signature)?;
        // C may call it for good.
        std::mem::forget(entry.held.clone());
        let entry = state.entry(&self.domain, slot, signature);
        drop(state);
        inner(&self.domain).pointer_to(entry, signature)
    }

    /// What the source or the file says of a function's types: an allegation, as of
    /// [`Domain::signature`].
    ///
    /// # Errors
    /// No such function, or nothing says them.
    pub fn signature(&self, name: &str) -> Result<Signature, SymbolError> {
        let (slot, _) = self.find(name).ok_or_else(|| self.missing(name))?;
        let state = self.code().lock();
        signature::alleged(name, state.slots[slot as usize].signature)
    }

    fn missing(&self, name: &str) -> SymbolError {
        let state = self.code().lock();
        SymbolError::Missing {
            name: name.to_owned(),
            nearest: signature::nearest(name, state.names.keys().map(|n| &**n)),
        }
    }

    /// Where a variable is that is not static, for [`Domain::read`] and [`Domain::write`].
    pub fn variable(&self, name: &str) -> Option<postern_runtime::Offset> {
        match self.code().lock().names.get(name)? {
            Name::Variable(_, offset) => Some(postern_runtime::Offset(*offset)),
            Name::Function(_) => None,
        }
    }

    /// Leads `name` to the function that `other` leads to now: another name for it, or another
    /// function for the name. One store, whoever calls it meanwhile; what `other` leads to later
    /// does not matter.
    ///
    /// # Errors
    /// No function is called `other`, or `name` is something else already.
    pub fn link(&self, name: &str, other: &str) -> Result<FunctionId, CreateError> {
        self.code().give_way();
        let mut state = self.code().lock();
        let slot = state.link(&self.domain, name, other)?;
        let generation = state.slots[slot as usize].generation;
        Ok(FunctionId { slot, generation })
    }

    /// Deletes a function or variable. Calls that are inside go on; who calls the function
    /// afterwards, from wherever, gets a fault of kind
    /// [`Deleted`](postern_runtime::FaultKind::Deleted). False if there is none of this name.
    pub fn delete(&self, name: &str) -> bool {
        self.code().give_way();
        // An export of the image that was never asked for has a slot to be deleted from, too.
        let mut state = self.code().lock();
        let _ = state.find(&self.domain, name);
        state.delete(name)
    }

    /// Frees what was deleted and replaced before, if nobody is inside the namespace at this
    /// moment. Creations try that on the way. Whether nothing is left to be freed.
    pub fn collect(&self) -> bool {
        self.code().collect(&self.domain)
    }

    /// Names and types of all functions that were created, and of those of the image that were
    /// asked for.
    pub fn functions(&self) -> Vec<(Arc<str>, Option<Signature>)> {
        let state = self.code().lock();
        let mut functions: Vec<_> = state
            .names
            .iter()
            .filter_map(|(name, what)| match what {
                Name::Function(slot) => Some((name.clone(), state.slots[*slot as usize].signature)),
                Name::Variable(..) => None,
            })
            .collect();
        functions.sort_by(|a, b| a.0.cmp(&b.0));
        functions
    }

    /// The counters now.
    pub fn counters(&self) -> NamespaceCounters {
        let state = self.code().lock();
        NamespaceCounters {
            names: state.names.len(),
            units: state.units(),
            code_left: state.text_left(),
            ..state.counters
        }
    }

    /// All variables back to their first values, stacks and heap dropped, faults forgotten.
    /// Functions stay.
    ///
    /// # Errors
    /// [`Busy`] while threads are inside.
    pub fn reset(&self) -> Result<(), Busy> {
        self.domain.reset()
    }
}

impl std::fmt::Debug for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counters = self.counters();
        f.debug_struct("Namespace")
            .field("domain", &self.domain)
            .field("names", &counters.names)
            .finish_non_exhaustive()
    }
}

impl NamespaceBuilder {
    fn with(mut self, configure: impl FnOnce(DomainBuilder) -> DomainBuilder + 'static) -> Self {
        self.configure.push(Box::new(configure));
        self
    }

    /// What faults and tables call it.
    pub fn name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.with(|builder| builder.name(name))
    }

    /// Grants a service, which functions call by its name: as [`DomainBuilder::service`].
    pub fn service<A: 'static, F: Service<A>>(self, name: &str, function: F) -> Self {
        let name = name.to_owned();
        self.with(move |builder| builder.service(&name, function))
    }

    /// Grants all services of a set: as [`DomainBuilder::services`]. Functions may import any of
    /// them, so each takes a gate slot.
    pub fn services(self, set: &ServiceSet) -> Self {
        let set = set.clone();
        self.with(move |builder| builder.services(&set))
    }

    /// Longest time of one call, its quantum. Default: 1 s.
    pub fn quantum(self, quantum: Option<Duration>) -> Self {
        self.with(move |builder| builder.deadline(quantum))
    }

    /// What the system calls of its functions may do. Default: nothing, as by `Policy::none`.
    pub fn policy(self, policy: impl SystemPolicy) -> Self {
        self.with(|builder| builder.policy(policy))
    }

    /// Called with every fault, after the extension has been left, on the thread that made the
    /// call.
    pub fn on_fault(self, handler: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        self.with(|builder| builder.on_fault(handler))
    }

    /// All else of the domain: limits, C services, peers, who decides. Image and placement stay as
    /// they are.
    pub fn domain(self, configure: impl FnOnce(DomainBuilder) -> DomainBuilder + 'static) -> Self {
        self.with(configure)
    }

    /// What becomes of the namespace after a fault. Default: [`Recovery::Terminate`]. Functions may
    /// have their own: [`Namespace::set_recovery`].
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// How long it rests before each [`Recovery::Restart`]. Default: not at all.
    pub fn back_off(mut self, back_off: BackOff) -> Self {
        self.back_off = Some(back_off);
        self
    }

    /// Registers that functions may use; those of the image are added. Default:
    /// [`RegisterUse::Vectors`].
    pub fn registers(mut self, registers: RegisterUse) -> Self {
        self.registers = registers;
        self
    }

    /// How much there is for functions.
    pub fn room(mut self, room: Capacity) -> Self {
        self.room = room;
        self
    }

    /// Makes the namespace.
    ///
    /// # Errors
    /// Services do not fit, sizes do not fit the window, no memory, or the image's initialisation
    /// failed.
    pub fn build(self) -> Result<Namespace, NamespaceError> {
        if self.registers >= RegisterUse::WideVectors && !machine::has_avx2() {
            return Err(LoadError::Machine("AVX2".into()).into());
        }
        let plan = plan(&self.room).ok_or(NamespaceError::Room)?;
        let (bytes, data) = (
            plan.bytes(),
            self.room.variables.next_multiple_of(PAGE.into()),
        );
        let data = u32::try_from(data).map_err(|_| NamespaceError::Room)?;
        let empty;
        let base = match &self.image {
            Some(image) => image,
            None => {
                empty = nothing()?;
                &empty
            }
        };
        let configure = self.configure;
        let mut builder = Domain::builder(base);
        for step in configure {
            builder = step(builder);
        }
        let fact_bits = self.registers.fact_bits();
        let imports = more_imports(&builder, base);
        let count = imports.len();
        let builder = code::widen(builder, imports, fact_bits)?;
        let builder = builder.ok_or(NamespaceError::Services(count))?;
        let restart = self.back_off.map(RestartPolicy::BackOff);
        let builder = builder.restart(restart.unwrap_or(RestartPolicy::Immediate));
        let domain = builder.placement(Placement::Cold).build()?;
        let made = code::give_room(&domain, (bytes, data), |start, window| {
            CodeArena::new(Plan { start, ..plan }, window, inner(&domain).control())
        });
        let made = made.map_err(InstantiateError::Map)?;
        let (start, area) = made.ok_or(NamespaceError::Room)?;
        let variables = start + bytes..start + bytes + data;
        let number = inner(&domain).number();
        let code = Arc::new(Code::new(number, area, variables, self.recovery));
        inner(&domain).attach(code.clone());
        Ok(Namespace { domain, code })
    }
}

/// Services that are granted and that the image does not import, and what every domain is granted.
fn more_imports(builder: &DomainBuilder, image: &Image) -> Vec<ImportOwned> {
    let own = |name: &str| image.tables().imports.iter().any(|i| *i.name == *name);
    let mut imports = code::offers(builder);
    let always = [
        ("__postern_exit", "v(i)"),
        ("__postern_abort", "v(p)"),
        ("sys", "l(llllll)"),
    ];
    imports.extend(always.map(|(name, types)| (name.to_owned(), types.parse().ok())));
    let imports = imports.into_iter().filter(|(name, _)| !own(name));
    imports
        .map(|(name, signature)| ImportOwned {
            name: name.into(),
            signature,
        })
        .collect()
}

/// An image of which nothing is called, with room for 128 gate slots: one import takes a page of
/// them.
fn nothing() -> Result<Image, LoadError> {
    let mut builder = ImageBuilder::new([0xcc]);
    builder.import("__postern_exit", "v(i)".parse().ok());
    let bytes = builder.build()?;
    Image::from_bytes(&bytes)
}

fn plan(room: &Capacity) -> Option<Plan> {
    let page = u64::from(PAGE);
    let pages = |bytes: u64| {
        let bytes = bytes.max(page).checked_next_multiple_of(page)?;
        u32::try_from(bytes).ok().filter(|&bytes| bytes < 1 << 30)
    };
    let slots = room.functions.clamp(1, postern_verifier::window::MAX_LINKS);
    Some(Plan {
        start: 0,
        slots: slots.next_multiple_of(128),
        text: pages(room.code)?,
        constants: pages(room.constants)?,
    })
}
