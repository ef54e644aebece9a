//! Modules: a domain that can be replaced by one of another image while it is being called.
//!
//! Invariant: at each moment one version is *current*, and every function of the module that
//! somebody holds leads there. A version that was replaced is closed only when nobody is inside;
//! nothing of a replacement shows before all of it is known to work. [`route`] says where a call
//! goes that comes in between.

mod carry;
mod replace;
mod route;
mod versions;

pub use replace::{ReplaceError, Replaced, Replacement};
pub use versions::ModuleEvent;

use postern_gates::gate::STATUS_OK;
use postern_gates::switch::Switch;
use postern_image::Signature;
use postern_runtime::{
    CallError, Domain, DomainBuilder, Enter, FuncType, Image, InstantiateError, Output,
    SymbolError, Value, call,
};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use versions::{Configure, ModuleState, OnEvent, Version, Versions};

/// A domain behind a name that stays while its image is replaced. Cloning shares it.
#[derive(Clone)]
pub struct Module(Arc<Versions>);

/// Collects what a module is. See [`Module::builder`].
#[must_use = "nothing happens before build()"]
pub struct ModuleBuilder {
    image: Image,
    configure: Configure,
    on_event: Option<OnEvent>,
}

/// What a module did so far, and how it is now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleCounters {
    /// Number of the current version; the first is 1.
    pub version: u64,
    /// Replacements that were made.
    pub replaced: u64,
    /// Replacements that were refused.
    pub refused: u64,
    /// New versions that were left for the one before.
    pub rolled_back: u64,
    /// Calls that waited for a hand-over of state.
    pub held: u64,
    /// Versions that were left and that somebody is still inside of.
    pub draining: usize,
    /// Calls that the current version has to do without a fault; 0 if it stays.
    pub on_probation: u32,
}

impl ModuleBuilder {
    /// Called when a version is replaced, stays, is rolled back or has drained, on the thread that
    /// does it, which may be one that calls the module: it must not wait for others.
    pub fn on_event(mut self, handler: impl Fn(&ModuleEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Box::new(handler));
        self
    }

    /// Makes the first version.
    ///
    /// # Errors
    /// As of [`DomainBuilder::build`].
    pub fn build(self) -> Result<Module, InstantiateError> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let domain = (self.configure)(Domain::builder(&self.image)).build()?;
        let inner = Arc::new(Versions {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed) as usize,
            configure: self.configure,
            on_event: self.on_event,
            state: Mutex::new(ModuleState {
                current: Version { number: 1, domain },
                previous: None,
                draining: Vec::new(),
                functions: Vec::new(),
                replacing: None,
                holding: None,
                last_version: 1,
            }),
            replaced: 0.into(),
            refused: 0.into(),
            rolled_back: 0.into(),
            held: 0.into(),
        });
        inner.adopt(&inner.state().current.domain);
        Ok(Module(inner))
    }
}

impl Module {
    /// A module whose versions are made as `configure` says, the first of `image`.
    ///
    /// # Errors
    /// As of [`DomainBuilder::build`].
    pub fn new(
        image: &Image,
        configure: impl Fn(DomainBuilder) -> DomainBuilder + Send + Sync + 'static,
    ) -> Result<Module, InstantiateError> {
        Module::builder(image, configure).build()
    }

    /// The same, with more to say. `configure` gives each version its services, limits and policy.
    pub fn builder(
        image: &Image,
        configure: impl Fn(DomainBuilder) -> DomainBuilder + Send + Sync + 'static,
    ) -> ModuleBuilder {
        ModuleBuilder {
            image: image.clone(),
            configure: Box::new(configure),
            on_event: None,
        }
    }

    /// A typed entry whose calls always go to the current version.
    ///
    /// # Errors
    /// The current version has no such export or the types differ; or the version before, which may
    /// come back.
    pub fn func<F: FuncType>(&self, name: &str) -> Result<ModuleFunc<F>, SymbolError> {
        let switch = self.0.function(name, F::signature(), false)?;
        Ok(ModuleFunc {
            switch,
            module: self.0.clone(),
            types: PhantomData,
        })
    }

    /// The same as a plain C function pointer. `signature` must be the type by which the host calls
    /// it, as for [`Domain::function_pointer`]. It may be called for good: once the module is gone,
    /// calls return 0. The same name and type give the same pointer.
    ///
    /// # Errors
    /// As [`Module::func`].
    pub fn function_pointer(
        &self,
        name: &str,
        signature: &Signature,
    ) -> Result<*const (), SymbolError> {
        let switch = self.0.function(name, *signature, true)?;
        Ok(switch.stub()? as *const ())
    }

    /// The current version. It may be replaced at any time: what is called through it does not
    /// follow.
    pub fn domain(&self) -> Domain {
        self.0.state().current.domain.clone()
    }

    /// Replaces the current version by a domain of `image`, with the defaults of
    /// [`Module::replacement`].
    ///
    /// # Errors
    /// See [`ReplaceError`]; nothing has changed then.
    pub fn replace(&self, image: &Image) -> Result<Replaced, ReplaceError> {
        self.replacement(image).apply()
    }

    /// Says how the current version is to be replaced by a domain of `image`.
    pub fn replacement<'a>(&'a self, image: &Image) -> Replacement<'a> {
        Replacement::new(&self.0, image)
    }

    /// The current version stays, whatever it does: ends its probation.
    pub fn confirm(&self) {
        self.0.confirm();
        self.0.reap();
    }

    /// The version before comes back, as it was left. False if the current one is not on probation.
    pub fn roll_back(&self) -> bool {
        self.0.roll_back(None, None)
    }

    /// The counters now. Versions that everybody has left are closed on the way.
    pub fn counters(&self) -> ModuleCounters {
        self.0.reap();
        let state = self.0.state();
        ModuleCounters {
            version: state.current.number,
            replaced: self.0.replaced.load(Ordering::Relaxed),
            refused: self.0.refused.load(Ordering::Relaxed),
            rolled_back: self.0.rolled_back.load(Ordering::Relaxed),
            held: self.0.held.load(Ordering::Relaxed),
            draining: state.draining.len(),
            on_probation: state.previous.as_ref().map_or(0, |p| p.1),
        }
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.state();
        f.debug_struct("Module")
            .field("version", &state.current.number)
            .field("domain", &state.current.domain)
            .finish_non_exhaustive()
    }
}

/// A typed entry of a [`Module`]: each call goes to the version of that moment. It keeps the module
/// alive.
pub struct ModuleFunc<F> {
    switch: Arc<Switch>,
    module: Arc<Versions>,
    types: PhantomData<fn() -> F>,
}

impl<F: Enter> ModuleFunc<F> {
    #[inline]
    fn run(&self, arguments: F::Arguments) -> Result<F::Result, CallError> {
        let entry = self.switch.current();
        let returned = F::enter(entry, arguments);
        let late = !std::ptr::eq(entry, self.switch.current());
        if returned.status != STATUS_OK {
            let error = call::failed();
            if late {
                self.module.late();
            }
            return Err(error);
        }
        if late {
            self.module.late();
        }
        Ok(F::result(&returned))
    }
}

macro_rules! function {
    ($($a:ident $v:ident),*) => {
        impl<R: Output, $($a: Value),*> ModuleFunc<fn($($a),*) -> R> {
            /// Calls the module's present version.
            ///
            /// # Errors
            /// As of [`Func`](postern_runtime::Func); never because the version is being replaced.
            ///
            /// # Panics
            /// Goes on with the panic of a service that the extension called.
            #[inline]
            #[allow(clippy::too_many_arguments)]
            pub fn call(&self, $($v: $a),*) -> Result<R, CallError> {
                self.run(($($v,)*))
            }
        }
    };
}
postern_runtime::for_each_function_type!(function);

impl<F> Clone for ModuleFunc<F> {
    fn clone(&self) -> Self {
        ModuleFunc {
            switch: self.switch.clone(),
            module: self.module.clone(),
            types: PhantomData,
        }
    }
}

impl<F> std::fmt::Debug for ModuleFunc<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModuleFunc").finish_non_exhaustive()
    }
}
