//! Calls: typed entries, and what comes of a call that did not return.

use crate::Domain;
use crate::code::Recovery;
use crate::domain::{DomainInner, reclaim};
use crate::fault::{Fault, FaultKind};
use crate::peer;
use crate::value::{Output, Value};
use postern_gates::above::{Ended, Failure, Held};
use postern_gates::control::MAX_THREADS;
use postern_gates::enter;
use postern_gates::entry::Entry;
use postern_gates::gate::STATUS_OK;
use postern_gates::outcome::{self, RawFault, Refusal};
use postern_gates::{shim, stale};
use postern_image::Signature;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;
use thiserror::Error;

/// Why a call has no result.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The extension broke a rule, crashed or took too long. The domain is poisoned.
    #[error("{0}")]
    Fault(Arc<Fault>),
    /// The extension ended itself with a status.
    #[error("the extension exited with status {0}")]
    Exited(i32),
    /// An earlier fault closed the domain.
    #[error("an earlier fault closed the domain; reset() it")]
    Poisoned,
    /// An earlier fault closed the domain, and its restart policy lets it rest.
    #[error(
        "the domain faulted and rests for another {0:?}, as its restart policy says; reset() starts it at once"
    )]
    Resting(Duration),
    /// The domain is being reset by another thread.
    #[error("the domain is being reset; try again")]
    Busy,
    /// The domain was closed for good.
    #[error("the domain is closed")]
    Closed,
    /// A signal that must reach Postern is blocked in this thread.
    #[error("signal {} is blocked in this thread, so a fault would kill the process; unblock it with pthread_sigmask", signal_name(*.0))]
    SignalBlocked(i32),
    /// Somebody replaced a handler.
    #[error("the handler of {} was replaced after Postern started; chain to the former one, or start Postern with install_handlers = false and call handle_signal from yours", signal_name(*.0))]
    HandlerReplaced(i32),
    /// A handler of the host's would run on the control stack.
    #[error("the handler of {} was installed without SA_ONSTACK, so it would end the process if it came when an extension has used up the stack; install it with that flag, or start Postern with adopt_handlers = true (PT_ADOPT_HANDLERS in C)", signal_name(*.0))]
    HandlerStack(i32),
    /// The call came from a signal handler that interrupted an extension.
    #[error(
        "this thread is inside an extension already (a signal handler must not call extensions)"
    )]
    InsideExtension,
    /// The call came from a signal handler that runs on the alternate signal stack.
    #[error(
        "this thread is on its alternate signal stack, where a fault could not be handled; call from outside the signal handler"
    )]
    OnSignalStack,
    /// The watchdog's thread could not be made.
    #[error(
        "the watchdog cannot start, so no deadline would be kept; raise the limit of threads (`ulimit -u`)"
    )]
    NoWatchdog,
    /// Calls nest too deeply.
    #[error(
        "calls between host and extensions nest too deeply (the limit is {})",
        postern_gates::record::MAX_NESTING
    )]
    TooDeep,
    /// The domain's limit of threads.
    #[error("more threads have entered the domain than its limit allows; raise Limits::threads")]
    TooManyThreads,
    /// The process's limit of threads.
    #[error(
        "{} threads that live have entered extensions, which is the limit of a process; let some of them end",
        MAX_THREADS
    )]
    ThreadTable,
    /// There is no program to run.
    #[error("the image exports no `__postern_main`; link it from objects that define main()")]
    NoMain,
    /// The program's arguments found no place.
    #[error("the program's arguments: {0}")]
    Arguments(crate::MemoryError),
    /// No memory for stacks.
    #[error("no memory for the thread's stacks")]
    NoMemory,
    /// The window has no room for a data stack, or the extension left its stack pointer outside its stack.
    #[error("no room on the extension's data stack")]
    NoDataStack,
}

const NAMES: [(i32, &str); 23] = [
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGSTKFLT, "SIGSTKFLT"),
    (libc::SIGCHLD, "SIGCHLD"),
    (libc::SIGCONT, "SIGCONT"),
    (libc::SIGTSTP, "SIGTSTP"),
    (libc::SIGTTIN, "SIGTTIN"),
    (libc::SIGTTOU, "SIGTTOU"),
    (libc::SIGURG, "SIGURG"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPROF, "SIGPROF"),
    (libc::SIGWINCH, "SIGWINCH"),
    (libc::SIGIO, "SIGIO"),
    (libc::SIGPWR, "SIGPWR"),
];

pub(crate) fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGSEGV => "SIGSEGV".into(),
        libc::SIGBUS => "SIGBUS".into(),
        libc::SIGILL => "SIGILL".into(),
        libc::SIGFPE => "SIGFPE".into(),
        libc::SIGTRAP => "SIGTRAP".into(),
        n if n >= libc::SIGRTMIN() => format!("SIGRTMIN+{}", n - libc::SIGRTMIN()),
        n => match NAMES.iter().find(|(number, _)| *number == n) {
            Some((_, name)) => (*name).into(),
            None => format!("signal {n}"),
        },
    }
}

impl CallError {
    /// The fault, if it is one.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            CallError::Fault(fault) => Some(fault),
            _ => None,
        }
    }

    fn from_refusal(refusal: Refusal) -> CallError {
        match refusal {
            Refusal::Poisoned => CallError::Poisoned,
            Refusal::Resting(left) => CallError::Resting(left),
            Refusal::Busy | Refusal::Moving => CallError::Busy,
            Refusal::Closed => CallError::Closed,
            Refusal::SignalBlocked(signal) => CallError::SignalBlocked(signal),
            Refusal::HandlerReplaced(signal) => CallError::HandlerReplaced(signal),
            Refusal::HandlerStack(signal) => CallError::HandlerStack(signal),
            Refusal::InsideExtension => CallError::InsideExtension,
            Refusal::OnSignalStack => CallError::OnSignalStack,
            Refusal::NoWatchdog => CallError::NoWatchdog,
            Refusal::TooDeep => CallError::TooDeep,
            Refusal::TooManyThreads => CallError::TooManyThreads,
            Refusal::ThreadTable => CallError::ThreadTable,
            Refusal::NoMemory => CallError::NoMemory,
            Refusal::NoDataStack => CallError::NoDataStack,
        }
    }
}

/// What `ended` leaves for whoever made the call.
enum CallFailure {
    Error(CallError),
    Panic(Box<dyn std::any::Any + Send>),
}

// What the last call that did not return left, in two words, each written at once: a signal handler whose call is refused may come
// between any two instructions, and neither allocates nor frees. None has a destructor, for a thread may call extensions at its very end.
thread_local! {
    /// Which of the two is meant: [`NOTHING`], [`IN_LEFT`], or a refusal's word.
    static SHOWN: Cell<u64> = const { Cell::new(NOTHING) };
    static FAILURE: ManuallyDrop<Cell<Option<Box<CallFailure>>>> =
        const { ManuallyDrop::new(Cell::new(None)) };
}

const NOTHING: u64 = 0;
const IN_LEFT: u64 = 1;

fn leave(left: CallFailure) {
    drop(FAILURE.with(|place| place.replace(Some(Box::new(left)))));
    SHOWN.set(IN_LEFT);
}

/// When a thread ends. (What calls leave after that, in its last destructors, and nobody asks for, stays.)
pub(crate) fn thread_exited() {
    SHOWN.set(NOTHING);
    drop(FAILURE.with(|place| place.take()));
}

/// For the gates: a call was ended, and has left.
pub(crate) fn ended(held: Option<Held>, ended: Ended) {
    let life = held.as_ref().map_or(0, |held| held.life);
    let domain = held.and_then(|held| held.domain.downcast::<DomainInner>().ok());
    let (raw, message, recovery) = (ended.fault, ended.message, ended.recovery);
    let mut left = match (raw.kind, ended.panic) {
        (outcome::PANIC, Some(panic)) => CallFailure::Panic(panic),
        (outcome::EXIT, _) => CallFailure::Error(CallError::Exited(ended.detail as i32)),
        _ => match &domain {
            // The host's own code runs in there (`on_fault`), and may panic; the gate around us cannot be unwound.
            Some(inner) => {
                match catch_unwind(AssertUnwindSafe(|| {
                    fault(inner, &raw, message, life, recovery)
                })) {
                    Ok(error) => CallFailure::Error(error),
                    Err(panic) => CallFailure::Panic(panic),
                }
            }
            None => CallFailure::Error(CallError::Closed),
        },
    };
    // The last reference may be this one, and the last call inside may have been this one: destructors of the host's run, too.
    let dropped = catch_unwind(AssertUnwindSafe(|| {
        drop(domain);
        reclaim::sweep();
    }));
    match (dropped, &left) {
        (Err(panic), CallFailure::Error(_)) => left = CallFailure::Panic(panic),
        // Two panics: the first one goes on. Dropping the other might panic.
        (Err(panic), CallFailure::Panic(_)) => std::mem::forget(panic),
        (Ok(()), _) => {}
    }
    leave(left);
}

fn fault(
    inner: &Arc<DomainInner>,
    raw: &RawFault,
    message: Option<String>,
    life: u64,
    recovery: u32,
) -> CallError {
    let fault = Arc::new(Fault::new(inner, raw, message));
    // Nobody but the gate had called it: nothing of the domain has run.
    let untouched = fault.kind == FaultKind::Deleted && fault.depth == 0;
    let code = inner.code.get();
    let recovery = code.map(|code| code.recovery(recovery));
    if raw.kind != outcome::INTERRUPT && !untouched && recovery != Some(Recovery::Continue) {
        if let Some(supervisor) = inner.supervisor.get().and_then(Weak::upgrade) {
            // Before the domain closes, so that no call finds it closed.
            supervisor.faulted(inner.id(), &fault);
        }
        // Whoever ended it from another thread had closed the domain before; now, outside, it may have begun anew already.
        if raw.kind != outcome::ANOTHER {
            if let Some(code) = code
                && life == inner.restarts.life()
            {
                code.closes(&fault);
            }
            inner.poison(life, recovery == Some(Recovery::Terminate));
        }
    }
    let offset = fault.offset.map_or(0, |o| o.0);
    let span = tracing::warn_span!("postern.fault", domain = %inner.name, image = %inner.image.name, kind = fault.kind.name(), offset);
    span.in_scope(|| {
        tracing::warn!("extension fault");
        inner.note_fault(&fault);
    });
    CallError::Fault(fault)
}

/// A call that was refused is remembered like one that was ended.
pub(crate) fn refused(refusal: Refusal) {
    SHOWN.set(refusal.word());
}

/// Why the last call on this thread that did not return did not. For callers that only see a 0: C function pointers.
pub fn last_error() -> Option<CallError> {
    match SHOWN.get() {
        NOTHING => None,
        IN_LEFT => FAILURE.with(|place| {
            let left = place.take();
            let error = match left.as_deref() {
                Some(CallFailure::Error(error)) => Some(error.clone()),
                _ => None,
            };
            place.set(left);
            error
        }),
        word => Refusal::of_word(word).map(CallError::from_refusal),
    }
}

/// What [`last_error`] shows from now on: for faces of other languages, which hand an error on that they got.
pub fn set_last_error(error: CallError) {
    leave(CallFailure::Error(error));
}

/// Forgets what [`last_error`] shows. Frees nothing, so signal handlers may call it.
pub fn clear_last_error() {
    SHOWN.set(NOTHING);
}

/// What the call that did not return left.
fn take_failure() -> CallFailure {
    let left = match SHOWN.replace(NOTHING) {
        NOTHING => None,
        IN_LEFT => FAILURE.with(|place| place.take()).map(|left| *left),
        word => Refusal::of_word(word).map(|r| CallFailure::Error(CallError::from_refusal(r))),
    };
    // Nothing, if a signal handler has called extensions in between.
    left.unwrap_or(CallFailure::Error(CallError::Closed))
}

/// For the gates: what the extension that called a peer is told of the peer's call, which did not return.
pub(crate) fn failure() -> Failure {
    match take_failure() {
        CallFailure::Error(error) => Failure::Error(peer::error(&error)),
        CallFailure::Panic(panic) => Failure::Panic(panic),
    }
}

/// How the call that has just not returned ended.
///
/// # Panics
/// Goes on with the panic of a service.
#[cold]
pub fn failed() -> CallError {
    match take_failure() {
        CallFailure::Error(error) => error,
        CallFailure::Panic(panic) => std::panic::resume_unwind(panic),
    }
}

/// The same, and [`last_error`] still shows it: for calls that faces of other languages make.
///
/// # Panics
/// As [`failed`].
#[cold]
pub fn failed_and_kept() -> CallError {
    last_error().unwrap_or_else(failed)
}

/// Runs a function without arguments and result.
pub(crate) fn run(entry: &Entry) -> Result<(), CallError> {
    match enter::integers(entry, [0; 6]).status {
        STATUS_OK => Ok(()),
        _ => Err(failed()),
    }
}

/// How many calls of extensions this thread is inside: 0 outside, 1 in a service, more when services call extensions.
pub fn nesting() -> usize {
    stale::nesting()
}

/// For hosts whose services leave by longjmp over the calls that led to them: forgets calls until `nesting` are left. The gates find out by
/// themselves when the next call comes from the same stack, no deeper than the one that was left; this says it for all others. False
/// in a signal handler that interrupted an extension.
///
/// # Safety
/// The services of the forgotten calls never return: their stack frames are gone.
#[expect(unsafe_code, reason = "the caller's promise")]
pub unsafe fn unwind(nesting: usize) -> bool {
    // SAFETY: the caller's promise.
    let left = unsafe { stale::unwind(nesting) };
    reclaim::sweep();
    left
}

/// Ends the running service's call with a message.
pub(crate) fn abort(message: String) {
    shim::end_when_back(outcome::ABORT, 0, Some(message));
}

/// Ends the running service's call in the name of the policy.
pub(crate) fn kill(reason: String) {
    shim::end_when_back(outcome::KILL, 0, Some(reason));
}

/// Whether the running service's call ends as soon as the service returns.
pub fn ending() -> bool {
    shim::ending()
}

/// Ends the running service's call with a status.
pub(crate) fn exit(status: i32) {
    shim::end_when_back(outcome::EXIT, status as u32 as u64, None);
}

/// A typed entry of a domain. It keeps the domain alive.
pub struct Func<F> {
    entry: Box<Entry>,
    domain: Domain,
    /// Keeps a slot of a namespace from being another function's.
    held: Option<Arc<()>>,
    types: PhantomData<fn() -> F>,
}

impl<F: FuncType> Func<F> {
    pub(crate) fn new(domain: &Domain, offset: u32, signature: &Signature) -> Func<F> {
        Func {
            entry: Box::new(domain.entry(offset, signature)),
            domain: domain.clone(),
            held: None,
            types: PhantomData,
        }
    }

    /// One of a namespace, that holds its slot.
    pub fn held(domain: &Domain, entry: Entry, held: Arc<()>) -> Func<F> {
        Func {
            entry: Box::new(entry),
            domain: domain.clone(),
            held: Some(held),
            types: PhantomData,
        }
    }
}

impl<F> Func<F> {
    /// The domain that is called.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<F> Clone for Func<F> {
    fn clone(&self) -> Self {
        Func {
            entry: self.entry.clone(),
            domain: self.domain.clone(),
            held: self.held.clone(),
            types: PhantomData,
        }
    }
}

impl<F> std::fmt::Debug for Func<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Func")
            .field("domain", &self.domain)
            .field("offset", &format_args!("{:#x}", self.entry.offset()))
            .finish()
    }
}

/// Function types of entries: `fn(A, B, …) -> R` of up to ten [`Value`]s.
pub trait FuncType: 'static {
    /// The C types.
    fn signature() -> Signature;
}

/// Function types whose entries can be called with arguments in a tuple: all [`FuncType`]s.
pub trait Enter: FuncType {
    /// The arguments.
    type Arguments;
    /// The result.
    type Result;

    /// Calls an entry.
    fn enter(entry: &Entry, arguments: Self::Arguments) -> enter::Returned;

    /// The result in the registers of a call that returned.
    fn result(returned: &enter::Returned) -> Self::Result;
}

/// Calls a macro with the parameters of each [`FuncType`], and names for them.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_function_type {
    ($each:ident) => {
        $each!();
        $each!(A a);
        $each!(A a, B b);
        $each!(A a, B b, C c);
        $each!(A a, B b, C c, D d);
        $each!(A a, B b, C c, D d, E e);
        $each!(A a, B b, C c, D d, E e, G g);
        $each!(A a, B b, C c, D d, E e, G g, H h);
        $each!(A a, B b, C c, D d, E e, G g, H h, I j);
        $each!(A a, B b, C c, D d, E e, G g, H h, I j, J k);
        $each!(A a, B b, C c, D d, E e, G g, H h, I j, J k, K l);
    };
}

macro_rules! function {
    ($($a:ident $v:ident),*) => {
        impl<R: Output, $($a: Value),*> FuncType for fn($($a),*) -> R {
            fn signature() -> Signature {
                Signature::new(R::TYPE, &[$($a::TYPE),*]).expect("at most sixteen parameters")
            }
        }

        impl<R: Output, $($a: Value),*> Enter for fn($($a),*) -> R {
            type Arguments = ($($a,)*);
            type Result = R;

            #[inline(always)]
            #[allow(unused_mut, unused_variables, unused_assignments)]
            fn enter(entry: &Entry, ($($v,)*): ($($a,)*)) -> enter::Returned {
                let (mut integers, mut floats, mut stack) = ([0u64; 6], [0u64; 8], [0u64; 10]);
                let (mut in_integers, mut in_floats, mut on_stack) = (0, 0, 0);
                $(
                    let bits = Value::to_bits($v);
                    if $a::TYPE.is_float() && in_floats < 8 {
                        floats[in_floats] = bits;
                        in_floats += 1;
                    } else if !$a::TYPE.is_float() && in_integers < 6 {
                        integers[in_integers] = bits;
                        in_integers += 1;
                    } else {
                        stack[on_stack] = bits;
                        on_stack += 1;
                    }
                )*
                if in_floats == 0 && on_stack == 0 {
                    enter::integers(entry, integers)
                } else {
                    enter::all(entry, integers, floats, &stack[..on_stack])
                }
            }

            #[inline(always)]
            fn result(returned: &enter::Returned) -> R {
                R::from_registers(returned.integer, returned.float)
            }
        }

        impl<R: Output, $($a: Value),*> Func<fn($($a),*) -> R> {
            /// Calls the extension.
            ///
            /// # Errors
            /// The call was refused, or ended in another way than by returning.
            ///
            /// # Panics
            /// Goes on with the panic of a service that the extension called.
            #[inline]
            #[allow(clippy::too_many_arguments)]
            pub fn call(&self, $($v: $a),*) -> Result<R, CallError> {
                let returned = <fn($($a),*) -> R>::enter(&self.entry, ($($v,)*));
                if returned.status != STATUS_OK {
                    return Err(failed());
                }
                Ok(<fn($($a),*) -> R>::result(&returned))
            }
        }
    };
}
for_each_function_type!(function);

#[cfg(test)]
mod tests {
    use crate::sample;
    use postern_gates::register;

    /// Their stacks have been those of threads that called extensions at their very end.
    #[test]
    fn threads_on_used_stacks_are_not_taken_for_ending_ones() {
        let domain = sample::domain("int one(void) { return 1; }");
        let domain = domain.build().unwrap();
        let one = domain.func::<fn() -> i32>("one").unwrap();
        struct Last(crate::Func<fn() -> i32>);
        impl Drop for Last {
            fn drop(&mut self) {
                assert_eq!(self.0.call().unwrap(), 1);
            }
        }
        thread_local!(static AT_END: std::cell::Cell<Option<Last>> = const { std::cell::Cell::new(None) });
        // Whether the thread is still known after a call.
        let known = || {
            AT_END.set(Some(Last(one.clone())));
            assert_eq!(one.call().unwrap(), 1);
            register::is_registered()
        };
        for round in 0..60 {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(known)).collect();
                for thread in threads {
                    assert!(thread.join().unwrap(), "round {round}");
                }
            });
        }
    }
}
