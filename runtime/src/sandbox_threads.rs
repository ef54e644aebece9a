//! Threads of a domain's pool: they go on with handlers that had to wait, and call functions that
//! the extension spawns.
//!
//! Invariant: as for threads that an extension starts ([`crate::own_threads`]), such a thread
//! enters no domain but its own, only while it is on the list, and has no reference to the domain
//! while it is inside. A reset ends them all, and starts others.

pub(crate) mod state;

use crate::call;
use crate::domain::{self, Domain, DomainInner, let_go};
use crate::error::CallError;
use crate::fault::FaultKind;
use crate::fork;
use crate::own_threads::mine::Belonging;
use crate::own_threads::state::OwnThreads;
use crate::value::Offset;
use postern_gates::gate::STATUS_OK;
use postern_gates::lifecycle::Phase;
use postern_gates::mask::SignalsBlocked;
use postern_gates::outcome::{ANOTHER, NO_SANDBOX_THREAD, RawFault};
use postern_gates::resume::Resume;
use postern_gates::upcall::{Job, Pool, PoolCounters};
use postern_gates::{map, signal, thread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// What a thread takes of the kernel's mappings, about: its stack and signal stacks with their
/// guards.
const MAPPINGS: i64 = 8;
/// Between two tries to enter a domain that somebody has for himself.
const AGAIN: Duration = Duration::from_millis(1);

/// Held while data stacks change hands, so that no fork comes between.
static EXCHANGE: Mutex<()> = Mutex::new(());

impl Domain {
    /// What was done for handlers that wait, and for functions that the extension spawned
    /// ([`DomainBuilder::sandbox_threads`](crate::DomainBuilder::sandbox_threads)).
    pub fn sandbox_threads(&self) -> PoolCounters {
        let pool = self.0.sandbox.pool.as_ref();
        pool.map(|pool| pool.counters()).unwrap_or_default()
    }
}

/// Starts as many threads as the domain may have and has not. Fewer, if the system gives no more.
pub(crate) fn start(inner: &DomainInner) {
    let (Some(pool), Some(arc)) = (&inner.sandbox.pool, domain::of(&inner.control)) else {
        return;
    };
    let weak = Arc::downgrade(&arc);
    let_go(arc);
    // Whoever drops the last reference waits for their calls.
    inner.pointed_to.store(true, Ordering::SeqCst);
    let threads = &inner.sandbox.threads;
    threads.join_finished();
    while let Ok(number) = threads.reserve() {
        let thread = SandboxThread {
            threads: threads.clone(),
            pool: pool.clone(),
            own: inner.threads.clone(),
            domain: weak.clone(),
            number,
        };
        let made = map::room(MAPPINGS).map_err(std::io::Error::other);
        let made = made.and_then(|()| {
            let named = std::thread::Builder::new().name("postern-sandbox".into());
            // It has them blocked from its first moment.
            let _signals = SignalsBlocked::new();
            named.spawn(move || thread.run())
        });
        match made {
            Ok(handle) => threads.made(number, handle),
            Err(error) => {
                tracing::error!(%error, domain = %inner.name, "a sandbox thread cannot be started");
                threads.gone(number, false);
                break;
            }
        }
    }
    pool.opens(threads.run());
}

/// One of them.
struct SandboxThread {
    threads: Arc<OwnThreads>,
    pool: Arc<Pool>,
    /// Those that the domain's extension started.
    own: Arc<OwnThreads>,
    domain: Weak<DomainInner>,
    number: u64,
}

impl SandboxThread {
    fn run(self) {
        signal::take_only_ours();
        let list = (self.threads.clone(), self.number);
        let belonging = Belonging::to_pool(self.own.clone(), self.domain.clone(), list);
        while self.threads.may_enter(self.number) {
            let news = self.pool.news();
            match self.pool.take() {
                Some(job) => self.go_on(job),
                None => self.pool.sleep(news),
            }
        }
        drop(belonging);
        self.threads.gone(self.number, true);
    }

    /// With a handler or a function, to its end.
    fn go_on(&self, mut job: Job<'_>) {
        let tid = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        while !job.is_over() && self.threads.enters(self.number, tid) {
            let ended = catch_unwind(AssertUnwindSafe(|| enter(&self.domain, &job)));
            self.threads.left(self.number);
            match ended {
                // The constructors run, or somebody has the domain for himself.
                Ok(Err(CallError::Busy)) => std::thread::sleep(AGAIN),
                Ok(Ok(()) | Err(CallError::Fault(_) | CallError::Exited(_))) => {
                    job.done();
                    break;
                }
                Ok(Err(error)) => {
                    self.refused(&job, &error);
                    break;
                }
                // A service's, which nobody made the call for.
                Err(panic) => {
                    // Dropping it might panic.
                    std::mem::forget(panic);
                    job.done();
                    with_domain(&self.domain, |inner| {
                        let life = inner.restarts.life();
                        inner.poison(life, false, false, FaultKind::Aborted);
                    });
                    break;
                }
            }
        }
        renew(&self.domain, &job);
    }

    /// A handler that has run in part could not go on: it is one that another thread's fault has
    /// ended there, or it faulted itself, unless another life has begun, or begins.
    fn refused(&self, job: &Job<'_>, error: &CallError) {
        with_domain(&self.domain, |inner| {
            // In this order: whoever resets has changed the job's pool before it opens.
            let life = inner.restarts.life();
            let (kind, message) = match inner.control.lifecycle().now() {
                Phase::Open | Phase::MovePending => {
                    let message = format!("a handler that had waited could not go on: {error}");
                    (NO_SANDBOX_THREAD, Some(message))
                }
                Phase::Poisoned => (ANOTHER, None),
                _ => return,
            };
            if job.argument().is_none() && !job.is_over() {
                let raw = RawFault {
                    kind,
                    ..RawFault::default()
                };
                drop(call::fault(inner, &raw, message, life, 0, false));
            }
        });
    }
}

fn with_domain<R>(
    domain: &Weak<DomainInner>,
    what: impl FnOnce(&Arc<DomainInner>) -> R,
) -> Option<R> {
    let inner = domain.upgrade()?;
    let done = what(&inner);
    let_go(inner);
    Some(done)
}

/// The call of a job, on the calling thread, which has no reference to the domain meanwhile.
pub(crate) fn enter(domain: &Weak<DomainInner>, job: &Job<'_>) -> Result<(), CallError> {
    if let Some(argument) = job.argument() {
        let entry = with_domain(domain, |inner| {
            let signature = <fn(Offset) as call::FuncType>::signature();
            inner.entry(job.function(), &signature)
        });
        return call::run_with(&entry.ok_or(CallError::Closed)?, argument.into());
    }
    let resume = with_domain(domain, |inner| {
        let resume = Resume::of(&inner.control, job)?;
        let _exchange = fork::lock(&EXCHANGE);
        resume.exchange_stacks();
        Some(resume)
    });
    let resume = resume.flatten().ok_or(CallError::Closed)?;
    match resume.call().status {
        STATUS_OK => Ok(()),
        _ => Err(call::failed()),
    }
}

/// Whoever has the calling thread's data stack, or the job's, next, finds thread-local variables as
/// they were at first.
pub(crate) fn renew(domain: &Weak<DomainInner>, job: &Job<'_>) {
    with_domain(domain, |inner| {
        let index = thread::my_index_if_known();
        let own = index.map(|index| inner.control.data_stack(index));
        for stack in own.into_iter().chain(job.stack()) {
            inner.instance.renew_stack_top(stack);
        }
    });
}
