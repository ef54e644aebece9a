//! Threads that an extension starts: threads of the process, as many as the host grants, each of
//! which makes one call of the domain. Also words of the window for which threads sleep.
//!
//! Invariant: such a thread enters no domain but its own, and only while it is on the domain's list
//! ([`state`]); it has no reference to the domain, so it keeps none alive. Whoever empties the
//! domain ends its call first.

pub(crate) mod mine;
pub(crate) mod state;

use crate::call;
use crate::domain::{Domain, DomainInner, of};
use crate::error::CallError;
use crate::fault::FaultKind;
use crate::image::ImageInner;
use crate::service::{Caller, Services, ending};
use crate::value::Offset;
use mine::Belonging;
use postern_gates::entry::Entry;
use postern_gates::machine::{self, Slept};
use postern_gates::map;
use postern_gates::mask::SignalsBlocked;
use postern_gates::upcall::Pool;
use postern_gates::{outcome, signal, slow};
use state::{OwnThreads, ProgramEnd, Refused};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// How long a thread sleeps before it looks whether its call shall end. (The signal that asks for
/// that ends the sleep at once; only one that comes between the look and the sleep is not seen.)
const SLICE: Duration = Duration::from_millis(50);
/// Between two tries of a thread to enter a domain that somebody has for himself.
const AGAIN: Duration = Duration::from_millis(1);

/// What a thread takes of the kernel's mappings, about: its stack and signal stacks with their
/// guards, a control stack of the runtime's own.
const MAPPINGS: i64 = 10;

/// A thread's state while whoever starts it waits.
const STARTING: u32 = 0;
const READY: u32 = 1;
const FAILED: u32 = 2;

/// The service by which an extension has a function called by a thread of its domain's pool.
pub(crate) const SPAWN: &str = "__postern_spawn";

/// The services of one domain.
pub(crate) struct ThreadServices {
    threads: Arc<OwnThreads>,
    /// Set once the domain is there.
    domain: OnceLock<Weak<DomainInner>>,
    /// The same: its pool, if it has one, and whose functions that calls.
    pool: OnceLock<(Arc<Pool>, Arc<ImageInner>)>,
}

impl ThreadServices {
    /// Those of a domain with these threads.
    pub(crate) fn new(threads: &Arc<OwnThreads>) -> Arc<ThreadServices> {
        Arc::new(ThreadServices {
            threads: threads.clone(),
            domain: OnceLock::new(),
            pool: OnceLock::new(),
        })
    }

    /// Says whose they are.
    pub(crate) fn belong_to(&self, domain: &Arc<DomainInner>) {
        let _ = self.domain.set(Arc::downgrade(domain));
        if let Some(pool) = &domain.sandbox.pool {
            let _ = self.pool.set((pool.clone(), domain.image.clone()));
        }
    }

    /// Offers the service with this name, if it is one of them.
    pub(crate) fn offer(self: &Arc<Self>, services: &mut Services, name: &str) -> bool {
        let own = self.clone();
        match name {
            "__postern_exit" => services.add(name, move |caller: &Caller<'_>, status: i32| {
                own.exit(caller, status);
            }),
            "__postern_thread_start" => services.add(
                name,
                move |_: &Caller<'_>, function: Offset, argument: Offset| {
                    own.start(function, argument)
                },
            ),
            SPAWN => services.add(
                name,
                move |_: &Caller<'_>, function: Offset, argument: Offset| {
                    own.spawn(function, argument)
                },
            ),
            "__postern_thread_exit" => {
                services.add(
                    name,
                    move |caller: &Caller<'_>, word: Offset, value: u32| {
                        own.thread_exit(caller, word, value);
                    },
                );
            }
            "__postern_wait" => services.add(
                name,
                move |caller: &Caller<'_>, word: Offset, value: u32, nanoseconds: i64| {
                    own.wait(caller, word, value, nanoseconds)
                },
            ),
            "__postern_wake" => {
                services.add(
                    name,
                    |caller: &Caller<'_>, word: Offset, most: u32| match word.0 % 4 {
                        0 => caller.control.wake(word.0, most) as i32,
                        _ => -libc::EINVAL,
                    },
                );
            }
            _ => return false,
        }
        true
    }

    fn domain(&self) -> Option<Domain> {
        self.domain.get().and_then(Weak::upgrade).map(Domain)
    }

    /// Ends the program: where the domain has threads of its own, all calls of it.
    fn exit(&self, caller: &Caller<'_>, status: i32) {
        caller.exit(status);
        exit_all(&self.threads, caller, status);
    }

    /// Starts a thread that calls `function` with `argument`: 0, or a negated error number.
    fn start(&self, function: Offset, argument: Offset) -> i32 {
        let Some(number) = self.reserve() else {
            return -libc::EAGAIN;
        };
        let report = Arc::new(AtomicU32::new(STARTING));
        // Bound here, so that the reference is dropped before anybody waits.
        let entry = self.entry(function);
        let made = entry.and_then(|(entry, life)| {
            map::room(MAPPINGS).map_err(|_| libc::EAGAIN)?;
            let thread = OwnThread {
                threads: self.threads.clone(),
                domain: self.domain.get().cloned().unwrap_or_default(),
                number,
                life,
                entry,
                argument,
            };
            let report = report.clone();
            let named = std::thread::Builder::new().name("postern-thread".into());
            // It has them blocked from its first moment.
            let _signals = SignalsBlocked::new();
            named
                .spawn(move || thread.run(&report))
                .map_err(|_| libc::EAGAIN)
        });
        match made {
            Ok(handle) => self.threads.made(number, handle),
            Err(error) => {
                self.threads.gone(number, false);
                return -error;
            }
        }
        loop {
            match report.load(Ordering::SeqCst) {
                READY => return 0,
                FAILED => return -libc::EAGAIN,
                _ if ending() => return -libc::EINTR,
                _ => machine::wait_at_most(&report, STARTING, SLICE),
            }
        }
    }

    /// Has a thread of the domain's pool call `function` with `argument`: 0, or a negated error
    /// number. Handlers of upcalls may call this: it takes no lock and allocates nothing.
    fn spawn(&self, function: Offset, argument: Offset) -> i32 {
        let Some((pool, image)) = self.pool.get() else {
            return -libc::ENOSYS;
        };
        if !image.text.is_start(function.0) {
            return -libc::EINVAL;
        }
        match pool.spawn(function.0, argument.0) {
            true => 0,
            false => -libc::EAGAIN,
        }
    }

    /// A place for one more, also if that becomes free at once.
    fn reserve(&self) -> Option<u64> {
        loop {
            self.threads.join_finished();
            match self.threads.reserve() {
                Ok(number) => return Some(number),
                Err(Refused::Full) => return None,
                Err(Refused::Soon(_)) if ending() => return None,
                Err(Refused::Soon(since)) => self.threads.await_change(since, SLICE),
            }
        }
    }

    /// Where a thread begins, and in which life of the domain.
    fn entry(&self, function: Offset) -> Result<(Entry, u64), i32> {
        let domain = self.domain().ok_or(libc::EAGAIN)?;
        if !domain.0.is_start(function.0) {
            return Err(libc::EINVAL);
        }
        // The threads have no reference to it: whoever drops the last one waits for their calls.
        domain.0.pointed_to.store(true, Ordering::SeqCst);
        let entry = domain.entry(function.0, &<fn(Offset) as call::FuncType>::signature());
        Ok((entry, domain.0.restarts.life()))
    }

    /// Ends the calling thread, if the extension started it, else its call. At that moment another
    /// can be started in its place; only then the word, if one is named, becomes `value`, and
    /// whoever waits for it is woken.
    fn thread_exit(&self, caller: &Caller<'_>, word: Offset, value: u32) {
        if let Some(number) = mine::number_of(&self.threads) {
            self.threads.leaves(number);
        }
        caller.exit(0);
        if word == Offset::NULL || !word.0.is_multiple_of(4) {
            return;
        }
        if let Some(domain) = self.domain()
            && domain.write(word, &value.to_le_bytes()).is_ok()
        {
            caller.control.wake(word.0, u32::MAX);
        }
    }

    /// Sleeps while the word has this value, until it is woken, or so many nanoseconds (for ever,
    /// if they are negative) have passed: 0 or a negated error number. May return without a cause.
    fn wait(&self, caller: &Caller<'_>, word: Offset, value: u32, nanoseconds: i64) -> i32 {
        let readable = || {
            // Dropped before the thread sleeps: a thread that waits keeps no domain alive.
            let domain = self.domain();
            domain.is_some_and(|domain| domain.check(word, 4, false).is_ok())
        };
        if !word.0.is_multiple_of(4) {
            return -libc::EINVAL;
        }
        if !readable() {
            return -libc::EFAULT;
        }
        let limit = u64::try_from(nanoseconds).ok();
        let end = limit.and_then(|n| Instant::now().checked_add(Duration::from_nanos(n)));
        loop {
            if ending() {
                return -libc::EINTR;
            }
            let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
            match caller.control.wait(word.0, value, left.min(SLICE)) {
                Slept::Woken => return 0,
                Slept::Differs => return -libc::EAGAIN,
                Slept::Unreadable => return -libc::EFAULT,
                Slept::LongEnough if left < SLICE => return -libc::ETIMEDOUT,
                Slept::LongEnough => {}
            }
        }
    }
}

/// The calling extension's program ends with this status: where the domain has threads of its own,
/// these and all calls inside end, too.
pub(crate) fn exit_all(threads: &OwnThreads, caller: &Caller<'_>, status: i32) {
    if threads.run()
        && let Some(inner) = of(caller.control)
    {
        threads.ended(None, ProgramEnd::Exited(status));
        inner.end_all(outcome::EXIT);
    }
}

/// A thread that is made.
struct OwnThread {
    threads: Arc<OwnThreads>,
    domain: Weak<DomainInner>,
    number: u64,
    /// The domain's, in which it was started.
    life: u64,
    entry: Entry,
    argument: Offset,
}

impl OwnThread {
    fn run(self, report: &AtomicU32) {
        signal::take_only_ours();
        let belonging = Belonging::to(self.threads.clone(), self.domain.clone(), self.number);
        let ready = slow::make_ready(&self.entry).is_ok();
        report.store(if ready { READY } else { FAILED }, Ordering::SeqCst);
        machine::wake_all(report);
        if ready {
            self.call();
        }
        drop(belonging);
        self.threads.gone(self.number, true);
    }

    /// Makes the call, and notes how it ended.
    fn call(&self) {
        let tid = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        while self.threads.enters(self.number, tid) {
            let called = || call::run_with(&self.entry, self.argument.0.into());
            let ended = catch_unwind(AssertUnwindSafe(called));
            self.threads.left(self.number);
            match ended {
                // The constructors run, or somebody has the domain for himself.
                Ok(Err(CallError::Busy)) => std::thread::sleep(AGAIN),
                Ok(Err(CallError::Fault(fault))) => {
                    let mine = !matches!(
                        fault.kind,
                        FaultKind::Interrupted | FaultKind::AnotherThread
                    );
                    if mine {
                        self.threads
                            .ended(Some(self.number), ProgramEnd::Fault(fault));
                    }
                    return;
                }
                Ok(_) => return,
                Err(panic) => {
                    self.threads
                        .ended(Some(self.number), ProgramEnd::Panic(panic));
                    if let Some(inner) = self.domain.upgrade() {
                        inner.poison(self.life, false, false, FaultKind::Aborted);
                        crate::domain::let_go(inner);
                    }
                    return;
                }
            }
        }
    }
}
