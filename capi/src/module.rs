//! Modules: `pt_module_…`.
//!
//! Each version of a module has a handle, so that services find the domain that called them. It is
//! made before the first call of the version and taken back when the version has drained, or the
//! module goes.

use crate::boundary::{self, HandOver, Out, ReloadHandler, Text, User};
use crate::domain::{self, DomainKind, Opened};
use crate::failure::{self, Code, Failure};
use crate::fault::Shown;
use crate::handle::{Handle, kind};
use crate::image::ImageKind;
use crate::object::Object;
use crate::options::{self, OptionsKind};
use crate::pointers::Pointers;
use postern::{Domain, Module, ModuleEvent, ReplaceError};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

/// A module with what the C host set up.
pub struct Reloadable {
    module: Module,
    versions: Arc<Versions>,
    user: User,
    how: Object<How>,
    pointers: Pointers,
}

/// How its versions are replaced.
#[derive(Clone)]
struct How {
    probation: u32,
    drain: Duration,
    end_stragglers: bool,
    carry: Option<(String, String, usize)>,
    hand_over: HandOver<Handle<DomainKind>>,
    hand_over_user: User,
}

/// The handles of the versions' domains.
#[derive(Default)]
struct Versions(Object<Handles>);

#[derive(Default)]
struct Handles {
    all: Vec<Handle<DomainKind>>,
    /// The module was given back.
    freed: bool,
}

impl Versions {
    fn enter(&self, domain: &Domain, user: User) -> Result<Handle<DomainKind>, Failure> {
        let handle = domain::enter(Arc::new(Opened::new(domain.clone(), user)));
        let entered = self.0.lock().and_then(|mut handles| {
            if handles.freed {
                return Err(Failure::new(Code::Closed, "the module was given back"));
            }
            handles.all.push(handle);
            Ok(())
        });
        match entered {
            Ok(()) => Ok(handle),
            Err(failure) => {
                let _ = domain::leave(handle);
                Err(failure)
            }
        }
    }

    /// Takes those back that are `gone`.
    fn forget(&self, gone: impl Fn(Handle<DomainKind>) -> bool, freed: bool) {
        // In a forked child that nobody told which there are, they stay.
        let Ok(mut handles) = self.0.lock() else {
            return;
        };
        handles.freed |= freed;
        let known = std::mem::take(&mut handles.all).into_iter();
        let (gone, here): (Vec<_>, Vec<_>) = known.partition(|&handle| gone(handle));
        handles.all = here;
        drop(handles);
        for handle in gone {
            let _ = domain::leave(handle);
        }
    }

    /// Forgets the versions that are closed.
    fn forget_closed(&self) {
        self.forget(
            |handle| handle.get().map_or(true, |o| o.domain.is_closed()),
            false,
        );
    }

    /// Forgets all versions, and lets none be entered from now on.
    fn forget_all(&self) {
        self.forget(|_| true, true);
    }
}

kind!(ModuleKind: Arc<Reloadable>, b'M', "pt_module");

/// Names in C and values, for the test that the header agrees.
pub const EVENTS: [(&str, i32); 4] = [
    ("PT_REPLACED", 1),
    ("PT_CONFIRMED", 2),
    ("PT_ROLLED_BACK", 3),
    ("PT_DRAINED", 4),
];
/// Names in C and values of what can be counted.
pub const COUNTS: [(&str, i32); 7] = [
    ("PT_MODULE_VERSION", 0),
    ("PT_MODULE_REPLACED", 1),
    ("PT_MODULE_REFUSED", 2),
    ("PT_MODULE_ROLLED_BACK", 3),
    ("PT_MODULE_HELD", 4),
    ("PT_MODULE_DRAINING", 5),
    ("PT_MODULE_ON_PROBATION", 6),
];

impl From<ReplaceError> for Failure {
    fn from(error: ReplaceError) -> Failure {
        let code = match &error {
            ReplaceError::Make(inner) => failure::instantiate(inner),
            ReplaceError::Function(inner) => failure::symbol(inner),
            ReplaceError::HandOver(_) | ReplaceError::Prepare(_) => Code::HandOver,
            _ => Code::Busy,
        };
        Failure::new(code, error.to_string())
    }
}

fn tell(handler: ReloadHandler, user: User, event: &ModuleEvent) {
    let (what, version, fault) = match event {
        ModuleEvent::Replaced { version } => (1, *version, None),
        ModuleEvent::Confirmed { version } => (2, *version, None),
        ModuleEvent::RolledBack { to, fault, .. } => (3, *to, fault.as_ref()),
        ModuleEvent::Drained { version } => (4, *version, None),
        _ => return,
    };
    let shown = fault.map(|fault| Shown::of_fault(fault));
    let fault = shown.as_ref().map(|shown| &shown.c);
    boundary::call_reload_handler(handler, what, version, fault, user);
}

/// `pt_module_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_new(
    image: Handle<ImageKind>,
    options: Handle<OptionsKind>,
) -> Handle<ModuleKind> {
    failure::or(Handle::NULL, || {
        let options = options::get(options)?;
        let versions = Arc::new(Versions::default());
        let (seen, (handler, user)) = (versions.clone(), options.on_reload);
        let all = options.clone();
        let module = Module::builder(&image.get()?, move |builder| all.apply(builder))
            .on_event(move |event| {
                if matches!(event, ModuleEvent::Drained { .. }) {
                    seen.forget_closed();
                }
                tell(handler, user, event);
            })
            .build()?;
        versions.enter(&module.domain(), options.user)?;
        Ok(Handle::make(Arc::new(Reloadable {
            module,
            versions,
            user: options.user,
            how: Object::new(How {
                probation: 32,
                drain: Duration::from_secs(1),
                end_stragglers: false,
                carry: None,
                hand_over: HandOver::NONE,
                hand_over_user: User::default(),
            }),
            pointers: Pointers::default(),
        })))
    })
}

/// `pt_module_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_free(module: Handle<ModuleKind>) -> c_int {
    failure::code(|| {
        let module = module.take()?;
        let current = module.module.domain();
        module.versions.forget_all();
        // Calls of the module's functions hold nothing.
        drop(module);
        current.close();
        Ok(())
    })
}

fn change(
    module: Handle<ModuleKind>,
    change: impl FnOnce(&mut How) -> Result<(), Failure>,
) -> c_int {
    failure::code(|| {
        let module = module.get()?;
        change(&mut *module.how.lock()?)
    })
}

/// `pt_module_probation`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_probation(module: Handle<ModuleKind>, calls: u32) -> c_int {
    change(module, |how| {
        how.probation = calls;
        Ok(())
    })
}

/// `pt_module_drain`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_drain(
    module: Handle<ModuleKind>,
    microseconds: u64,
    end_stragglers: c_int,
) -> c_int {
    change(module, |how| {
        how.drain = Duration::from_micros(microseconds);
        how.end_stragglers = end_stragglers != 0;
        Ok(())
    })
}

/// `pt_module_carry`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_carry(
    module: Handle<ModuleKind>,
    save: Text<'_>,
    load: Text<'_>,
    room: usize,
) -> c_int {
    change(module, |how| {
        let name = |text: Text<'_>| text.get("function's name").map(str::to_owned);
        how.carry = Some((name(save)?, name(load)?, room));
        how.hand_over = HandOver::NONE;
        Ok(())
    })
}

/// `pt_module_hand_over`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_hand_over(
    module: Handle<ModuleKind>,
    hand_over: HandOver<Handle<DomainKind>>,
    user: User,
) -> c_int {
    change(module, |how| {
        (how.hand_over, how.hand_over_user) = (hand_over, user);
        how.carry = None;
        Ok(())
    })
}

/// `pt_module_replace`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_replace(module: Handle<ModuleKind>, image: Handle<ImageKind>) -> c_int {
    failure::code(|| {
        let (module, image) = (module.get()?, image.get()?);
        // Without its lock: the host's functions that are called meanwhile may change it.
        let how = module.how.lock()?.clone();
        let entered = Cell::new(None);
        let mut replacement = module
            .module
            .replacement(&image)
            .probation(how.probation)
            .drain(how.drain)
            .prepare(|new| {
                let handle = module.versions.enter(new, module.user);
                entered.set(Some(handle.map_err(|failure| failure.message)?));
                Ok::<_, String>(())
            });
        if how.end_stragglers {
            replacement = replacement.end_stragglers();
        }
        if let Some((save, load, room)) = &how.carry {
            replacement = replacement.carry(save, load, *room);
        }
        if how.hand_over.is_some() {
            replacement = replacement.hand_over(|old, new| {
                let handle = |d| domain::handle_of(d).unwrap_or(Handle::NULL);
                match boundary::hand_over(
                    how.hand_over,
                    handle(old),
                    handle(new),
                    how.hand_over_user,
                ) {
                    0 => Ok(()),
                    answer => Err(Failed(answer)),
                }
            });
        }
        let done = replacement.apply();
        if done.is_err()
            && let Some(new) = entered.get()
        {
            module.versions.forget(|handle| handle.0 == new.0, false);
        }
        done?;
        Ok(())
    })
}

/// The host's function refused.
#[derive(Debug)]
struct Failed(c_int);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the host's function returned {}", self.0)
    }
}

impl std::error::Error for Failed {}

/// `pt_module_confirm`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_confirm(module: Handle<ModuleKind>) -> c_int {
    failure::code(|| {
        module.get()?.module.confirm();
        Ok(())
    })
}

/// `pt_module_roll_back`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_roll_back(module: Handle<ModuleKind>) -> c_int {
    failure::number(|| Ok(i64::from(module.get()?.module.roll_back()))) as c_int
}

/// `pt_module_domain`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_domain(module: Handle<ModuleKind>) -> Handle<DomainKind> {
    failure::or(Handle::NULL, || {
        let current = module.get()?.module.domain();
        domain::handle_of(&current)
            .ok_or_else(|| Failure::new(Code::Closed, "the version is being replaced"))
    })
}

/// `pt_module_sym`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_sym(
    module: Handle<ModuleKind>,
    name: Text<'_>,
    signature: Text<'_>,
) -> *mut c_void {
    failure::or(0, || {
        let reloadable = module.get()?;
        let make = |name: &str, signature: &_| reloadable.module.function_pointer(name, signature);
        reloadable.pointers.by_name(name, signature, make)
    }) as *mut c_void
}

/// `pt_module_count`
#[unsafe(no_mangle)]
pub extern "C" fn pt_module_count(
    module: Handle<ModuleKind>,
    what: c_int,
    value: Out<'_, u64>,
) -> c_int {
    failure::code(|| {
        let c = module.get()?.module.counters();
        let all = [
            c.version,
            c.replaced,
            c.refused,
            c.rolled_back,
            c.held,
            c.draining as u64,
            u64::from(c.on_probation),
        ];
        value.put(options::pick(&all, what)?);
        Ok(())
    })
}
