//! What a domain is given: `pt_options_…`, `pt_options_service`, `pt_options_service_stack`,
//! `pt_options_on_fault`.
//!
//! Options are plain data, so that one set serves any number of domains.

use crate::boundary::{self, FaultHandler, Function, ReloadHandler, Text, User};
use crate::failure::{self, Code, Failure};
use crate::fault::Shown;
use crate::handle::{Handle, kind};
use crate::object::Draft;
use postern::{
    BackOff, Capacity, DEFAULT_STACK, Decider, DomainBuilder, Lendable, Limits, PeerExport,
    Placement, Policy, PoolBuilder, Recycle, RestartPolicy, Signature, Ways,
};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

/// A service as it was offered.
#[derive(Clone)]
struct Offer {
    name: String,
    function: Function,
    signature: Signature,
    stack: usize,
}

/// The options of a domain.
#[derive(Clone, Default)]
pub struct Options {
    name: Option<String>,
    limits: Limits,
    placement: Placement,
    /// How events get to handlers.
    pub ways: Ways,
    services: Vec<Offer>,
    /// Imports that peers serve; those that are left open have none yet.
    peers: Vec<(String, Option<PeerExport>)>,
    /// Services that all who have a common domain's memory may use.
    to_all: Vec<String>,
    on_fault: FaultHandler,
    on_fault_user: User,
    /// What system calls may do.
    pub policy: Policy,
    /// Who is asked about each call.
    pub decider: Option<Decider>,
    /// The host's own pointer.
    pub user: User,
    /// What namespaces have for their functions.
    pub capacity: Capacity,
    /// Called with what happens to modules.
    pub on_reload: (ReloadHandler, User),
    restart: Option<RestartPolicy>,
    pool: PoolOptions,
}

/// What a pool is given.
#[derive(Clone, Default)]
struct PoolOptions {
    domains: Option<u32>,
    warm: Option<u32>,
    flags: c_int,
    wait: Option<(Duration, usize)>,
}

impl Options {
    /// Grants an import that is another domain's function, or leaves it open.
    pub fn peer(&mut self, import: &str, export: Option<PeerExport>) {
        self.services.retain(|s| s.name != import);
        self.peers.retain(|(name, _)| name != import);
        self.peers.push((import.to_owned(), export));
    }

    /// Hands everything to a builder.
    pub fn apply(&self, builder: DomainBuilder) -> DomainBuilder {
        let builder = self.apply_without_restart(builder);
        match &self.restart {
            Some(policy) => builder.restart(policy.clone()),
            None => builder,
        }
    }

    /// How long domains rest after faults, if they do.
    pub fn back_off(&self) -> Option<BackOff> {
        match &self.restart {
            Some(RestartPolicy::BackOff(back_off)) => Some(back_off.clone()),
            _ => None,
        }
    }

    /// Hands what a pool is told to its builder.
    pub fn pool<T: Lendable>(&self, mut builder: PoolBuilder<T>) -> PoolBuilder<T> {
        let pool = &self.pool;
        if let Some(domains) = pool.domains {
            builder = builder.size(domains as usize);
        }
        if let Some(warm) = pool.warm {
            builder = builder.warm(warm as usize);
        }
        if pool.flags & 1 != 0 {
            builder = builder.recycle(Recycle::Keep);
        }
        if pool.flags & 2 != 0 {
            builder = builder.per_thread();
        }
        if let Some((time, callers)) = pool.wait {
            builder = builder.max_wait(time).max_waiting(callers);
        }
        match &self.restart {
            Some(policy) => builder.restart(policy.clone()),
            None => builder,
        }
    }

    /// Hands everything to a builder but the restart policy, which is the pool's business.
    pub fn apply_without_restart(&self, mut builder: DomainBuilder) -> DomainBuilder {
        if let Some(name) = &self.name {
            builder = builder.name(name);
        }
        builder = builder
            .limits(self.limits.clone())
            .placement(self.placement)
            .ways(self.ways)
            .policy(self.policy.clone());
        if let Some(decider) = &self.decider {
            builder = builder.decider(decider.clone());
        }
        for s in &self.services {
            builder = boundary::grant(builder, &s.name, s.function, s.signature, s.stack);
        }
        for (import, export) in &self.peers {
            builder = match export {
                Some(export) => builder.peer(import, export),
                None => builder.peer_open(import),
            };
        }
        for name in &self.to_all {
            builder = builder.grant_to_all(name);
        }
        if self.on_fault.is_some() {
            let (handler, user) = (self.on_fault, self.on_fault_user);
            builder = builder.on_fault(move |fault| {
                boundary::call_handler(handler, &Shown::of_fault(fault).c, user);
            });
        }
        builder
    }
}

kind!(OptionsKind: Draft<Options>, b'O', "pt_options");

/// The options as they are now; NULL means the defaults.
pub fn get(options: Handle<OptionsKind>) -> Result<Arc<Options>, Failure> {
    match options.0 {
        0 => Ok(Arc::default()),
        _ => options.as_it_is(),
    }
}

/// Changes options, or leaves them as they are if that fails.
pub fn change(
    options: Handle<OptionsKind>,
    change: impl FnOnce(&mut Options) -> Result<(), Failure>,
) -> c_int {
    failure::code(|| options.change(change))
}

/// `pt_options_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_new() -> Handle<OptionsKind> {
    failure::or(Handle::NULL, || Ok(Handle::draft(Options::default())))
}

/// `pt_options_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_free(options: Handle<OptionsKind>) -> c_int {
    failure::code(|| options.take().map(drop))
}

/// `pt_options_name`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_name(options: Handle<OptionsKind>, name: Text<'_>) -> c_int {
    change(options, |o| {
        o.name = Some(name.get("domain's name")?.to_owned());
        Ok(())
    })
}

/// `pt_options_grant_to_all`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_grant_to_all(
    options: Handle<OptionsKind>,
    service: Text<'_>,
) -> c_int {
    change(options, |o| {
        o.to_all.push(service.get("service's name")?.to_owned());
        Ok(())
    })
}

/// `pt_options_deadline`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_deadline(options: Handle<OptionsKind>, microseconds: u64) -> c_int {
    change(options, |o| {
        o.limits.deadline = (microseconds != 0).then(|| Duration::from_micros(microseconds));
        Ok(())
    })
}

/// `pt_options_heap`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_heap(options: Handle<OptionsKind>, bytes: u64) -> c_int {
    change(options, |o| {
        o.limits.heap = (bytes != 0).then_some(bytes);
        Ok(())
    })
}

/// `pt_options_heap_ceiling`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_heap_ceiling(options: Handle<OptionsKind>, bytes: u64) -> c_int {
    change(options, |o| {
        o.limits.heap_ceiling = match bytes {
            0 => Limits::default().heap_ceiling,
            bytes => bytes,
        };
        Ok(())
    })
}

/// `pt_options_data_stack`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_data_stack(options: Handle<OptionsKind>, bytes: u64) -> c_int {
    change(options, |o| {
        o.limits.data_stack = (bytes != 0).then_some(bytes);
        Ok(())
    })
}

/// `pt_options_call_depth`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_call_depth(options: Handle<OptionsKind>, calls: u32) -> c_int {
    change(options, |o| {
        o.limits.call_depth = (calls != 0).then_some(calls);
        Ok(())
    })
}

/// `pt_options_threads`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_threads(options: Handle<OptionsKind>, threads: u32) -> c_int {
    change(options, |o| {
        if threads == 0 {
            return Err(Failure::new(
                Code::Argument,
                "at least one thread must be able to enter",
            ));
        }
        o.limits.threads = threads;
        Ok(())
    })
}

/// What was given; the default for 0.
fn given<T: Default + PartialEq>(value: T, default: T) -> T {
    if value == T::default() {
        default
    } else {
        value
    }
}

/// `pt_options_capacity`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_capacity(
    options: Handle<OptionsKind>,
    functions: u32,
    code: u64,
    constants: u64,
    variables: u64,
) -> c_int {
    change(options, |o| {
        let mut capacity = Capacity::default();
        capacity.functions = given(functions, capacity.functions);
        capacity.code = given(code, capacity.code);
        capacity.constants = given(constants, capacity.constants);
        capacity.variables = given(variables, capacity.variables);
        o.capacity = capacity;
        Ok(())
    })
}

/// `pt_options_own_threads`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_own_threads(options: Handle<OptionsKind>, threads: u32) -> c_int {
    change(options, |o| {
        o.limits.own_threads = threads;
        Ok(())
    })
}

/// `pt_options_sandbox_threads`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_sandbox_threads(options: Handle<OptionsKind>, threads: u32) -> c_int {
    change(options, |o| {
        o.limits.sandbox_threads = threads;
        Ok(())
    })
}

/// Names in C and values, for the test that the header agrees.
pub const PLACEMENTS: [(&str, i32); 3] = [
    ("PT_PLACE_AUTO", 0),
    ("PT_PLACE_HOT", 1),
    ("PT_PLACE_COLD", 2),
];

/// `pt_options_placement`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_placement(options: Handle<OptionsKind>, wanted: c_int) -> c_int {
    change(options, |o| {
        o.placement = placement(wanted)?;
        Ok(())
    })
}

/// A `PT_PLACE_…`.
///
/// # Errors
/// It is none.
pub fn placement(wanted: c_int) -> Result<Placement, Failure> {
    match wanted {
        0 => Ok(Placement::Auto),
        1 => Ok(Placement::Hot),
        2 => Ok(Placement::Cold),
        _ => Err(Failure::new(
            Code::Argument,
            format!("{wanted} is no placement; PT_PLACE_AUTO, _HOT and _COLD are"),
        )),
    }
}

/// `pt_options_user`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_user(options: Handle<OptionsKind>, user: User) -> c_int {
    change(options, |o| {
        o.user = user;
        Ok(())
    })
}

/// One of the values that C has numbers for.
pub fn pick<T: Copy>(values: &[T], what: c_int) -> Result<T, Failure> {
    let value = usize::try_from(what).ok().and_then(|i| values.get(i));
    value.copied().ok_or_else(|| {
        Failure::new(
            Code::Argument,
            format!("{what} is none of the values that the header lists"),
        )
    })
}

/// Names in C and values, for the test that the header agrees.
pub const RESTARTS: [(&str, i32); 2] = [("PT_RESTART_NEVER", 0), ("PT_RESTART_IMMEDIATE", 1)];

/// `pt_options_restart`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_restart(options: Handle<OptionsKind>, how: c_int) -> c_int {
    change(options, |o| {
        o.restart = Some(match how {
            0 => RestartPolicy::Never,
            1 => RestartPolicy::Immediate,
            _ => {
                return Err(Failure::new(
                    Code::Argument,
                    format!("{how} is no restart policy; PT_RESTART_NEVER and _IMMEDIATE are"),
                ));
            }
        });
        Ok(())
    })
}

/// `pt_options_back_off`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_back_off(
    options: Handle<OptionsKind>,
    first: u64,
    factor: u32,
    most: u64,
    give_up_after: u32,
) -> c_int {
    change(options, |o| {
        let mut back_off = BackOff::default();
        back_off.first = given(Duration::from_micros(first), back_off.first);
        back_off.most = given(Duration::from_micros(most), back_off.most);
        back_off.factor = given(factor, back_off.factor);
        back_off.give_up_after = (give_up_after != 0).then_some(give_up_after);
        o.restart = Some(RestartPolicy::BackOff(back_off));
        Ok(())
    })
}

/// `pt_options_pool`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_pool(
    options: Handle<OptionsKind>,
    domains: u32,
    warm: u32,
    flags: c_int,
) -> c_int {
    change(options, |o| {
        if flags & !3 != 0 {
            return Err(Failure::new(
                Code::Argument,
                format!("{flags} has flags that are not PT_POOL_…"),
            ));
        }
        o.pool.domains = (domains != 0).then_some(domains);
        (o.pool.warm, o.pool.flags) = (Some(warm), flags);
        Ok(())
    })
}

/// `pt_options_pool_wait`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_pool_wait(
    options: Handle<OptionsKind>,
    microseconds: u64,
    callers: u32,
) -> c_int {
    change(options, |o| {
        o.pool.wait = Some((Duration::from_micros(microseconds), callers as usize));
        Ok(())
    })
}

/// `pt_options_on_reload`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_on_reload(
    options: Handle<OptionsKind>,
    handler: ReloadHandler,
    user: User,
) -> c_int {
    change(options, |o| {
        o.on_reload = (handler, user);
        Ok(())
    })
}

/// A signature from its text.
pub fn signature(text: Text<'_>) -> Result<Signature, Failure> {
    let text = text.get("signature")?;
    text.parse()
        .map_err(|e| Failure::new(Code::Argument, format!("signature \"{text}\": {e}")))
}

/// `pt_options_service`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_service(
    options: Handle<OptionsKind>,
    name: Text<'_>,
    function: Function,
    signature: Text<'_>,
) -> c_int {
    pt_options_service_stack(options, name, function, signature, DEFAULT_STACK)
}

/// `pt_options_service_stack`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_service_stack(
    options: Handle<OptionsKind>,
    name: Text<'_>,
    function: Function,
    signature: Text<'_>,
    stack: usize,
) -> c_int {
    change(options, |o| {
        let offer = Offer {
            name: name.get("service's name")?.to_owned(),
            function: function.needed("service's function")?,
            signature: self::signature(signature)?,
            stack,
        };
        if offer.signature.parameters().len() > 6 {
            return Err(Failure::new(
                Code::Argument,
                format!("service `{}` has more than six parameters", offer.name),
            ));
        }
        o.services.retain(|s| s.name != offer.name);
        o.peers.retain(|(name, _)| *name != offer.name);
        o.services.push(offer);
        Ok(())
    })
}

/// `pt_options_on_fault`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_on_fault(
    options: Handle<OptionsKind>,
    handler: FaultHandler,
    user: User,
) -> c_int {
    change(options, |o| {
        o.on_fault = handler;
        o.on_fault_user = user;
        Ok(())
    })
}
