//! Calls: typed entries, and what comes of a call that did not return.

pub use crate::error::CallError;
pub use crate::service::ending;

use crate::code::Recovery;
use crate::domain::{Domain, DomainInner, reclaim};
use crate::fault::{Fault, FaultKind};
use crate::own_threads::mine;
use crate::service::caller;
use crate::value::{Output, Value};
use postern_gates::above::{Ended, Failure, Held};
use postern_gates::enter;
use postern_gates::entry::Entry;
use postern_gates::gate::STATUS_OK;
use postern_gates::outcome::{self, RawFault, Refusal};
use postern_gates::peer::PeerError;
use postern_gates::stale;
use postern_image::Signature;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// What `ended` leaves for whoever made the call.
enum CallFailure {
    Error(CallError),
    Panic(Box<dyn std::any::Any + Send>),
}

// What the last call that did not return left, in two words, each written at once: a signal handler
// whose call is refused may come between any two instructions, and neither allocates nor frees.
// None has a destructor, for a thread may call extensions at its very end.
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

/// When a thread ends. (What calls leave after that, in its last destructors, and nobody asks for,
/// stays.)
pub(crate) fn thread_exited() {
    SHOWN.set(NOTHING);
    drop(FAILURE.with(|place| place.take()));
}

/// For the gates: a call was ended, and has left.
pub(crate) fn ended(held: Option<Held>, ended: Ended) {
    // The host's own code runs on the way out, which nobody waits for without end.
    mine::has_left();
    let life = held.as_ref().map_or(0, |held| held.life);
    let domain = held.and_then(|held| held.domain.downcast::<DomainInner>().ok());
    let (raw, message, recovery) = (ended.fault, ended.message, ended.recovery);
    let mut left = match (raw.kind, ended.panic) {
        (outcome::PANIC, Some(panic)) => CallFailure::Panic(panic),
        (outcome::EXIT, _) => {
            let by_itself = caller::status_of(ended.detail);
            let by_another = || {
                domain
                    .as_ref()
                    .and_then(|inner| inner.threads.exit_status())
            };
            let status = by_itself.or_else(by_another).unwrap_or(0);
            CallFailure::Error(CallError::Exited(status))
        }
        _ => match &domain {
            // The host's own code runs in there (`on_fault`), and may panic; the gate around us
            // cannot be unwound.
            Some(inner) => {
                match catch_unwind(AssertUnwindSafe(|| {
                    fault(inner, &raw, message, life, recovery, false)
                })) {
                    Ok(error) => CallFailure::Error(error),
                    Err(panic) => CallFailure::Panic(panic),
                }
            }
            None => CallFailure::Error(CallError::Closed),
        },
    };
    // The last reference may be this one, and the last call inside may have been this one:
    // destructors of the host's run, too.
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

/// What comes of a fault. With `closed` it has closed the domain already.
pub(crate) fn fault(
    inner: &Arc<DomainInner>,
    raw: &RawFault,
    message: Option<String>,
    life: u64,
    recovery: u32,
    closed: bool,
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
        // Whoever ended it from another thread had closed the domain before; now, outside, it may
        // have begun anew already.
        if raw.kind != outcome::ANOTHER {
            if let Some(code) = code
                && life == inner.restarts.life()
            {
                code.closes(&fault);
            }
            let stays = recovery == Some(Recovery::Terminate);
            inner.poison(life, stays, closed, fault.kind);
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

/// Why the last call on this thread that did not return did not. For callers that only see a 0: C
/// function pointers.
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

/// What [`last_error`] shows from now on: for faces of other languages, which hand an error on that
/// they got.
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

/// What the calling extension is told of a call that failed.
fn peer_error(error: &CallError) -> PeerError {
    match error {
        CallError::Fault(fault) => match fault.kind {
            FaultKind::Deadline => PeerError::Time,
            FaultKind::Interrupted => PeerError::Interrupted,
            FaultKind::AnotherThread => PeerError::Poisoned,
            _ => PeerError::Fault,
        },
        CallError::Exited(_) => PeerError::Exited,
        CallError::Poisoned | CallError::Resting(_) => PeerError::Poisoned,
        CallError::Busy => PeerError::Busy,
        CallError::Closed => PeerError::Closed,
        CallError::TooDeep => PeerError::TooDeep,
        CallError::TooManyThreads | CallError::NoMemory | CallError::NoDataStack => {
            PeerError::NoRoom
        }
        _ => PeerError::Thread,
    }
}

/// For the gates: what the extension that called a peer is told of the peer's call, which did not
/// return.
pub(crate) fn failure() -> Failure {
    match take_failure() {
        CallFailure::Error(error) => Failure::Error(peer_error(&error)),
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

/// Runs a function of one argument, an integer or a pointer, and no result.
pub(crate) fn run_with(entry: &Entry, argument: u64) -> Result<(), CallError> {
    match enter::integers(entry, [argument, 0, 0, 0, 0, 0]).status {
        STATUS_OK => Ok(()),
        _ => Err(failed()),
    }
}

/// How many calls of extensions this thread is inside: 0 outside, 1 in a service, more when
/// services call extensions.
pub fn nesting() -> usize {
    stale::nesting()
}

/// For hosts whose services leave by longjmp over the calls that led to them: forgets calls until
/// `nesting` are left. The gates find out by themselves when the next call comes from the same
/// stack, no deeper than the one that was left; this says it for all others. False in a signal
/// handler that interrupted an extension.
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

/// A typed entry of a domain. It keeps the domain alive.
pub struct Func<F> {
    entry: Box<Entry>,
    domain: Domain,
    /// Keeps a slot of a namespace from being another function's.
    held: Option<Arc<()>>,
    types: PhantomData<fn() -> F>,
}

/// As [`Domain`].
impl<F> std::panic::UnwindSafe for Func<F> {}
impl<F> std::panic::RefUnwindSafe for Func<F> {}

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
