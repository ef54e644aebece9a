//! Threads that a hostile extension starts, against what a host does with its domain: they have
//! deadlines wherever they start, and none goes on in a life of the domain that is not its own.
mod support;

use fastrand::Rng;
use postern::{
    CallError, Caller, Domain, DomainBuilder, FaultKind, Grant, Image, Placement, Pool,
    RestartPolicy,
};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};
use support::{fork, succeeds_in_child};

const SOURCE: &str = r#"
typedef void entry(void *);
extern int __postern_thread_start(entry *, void *);
extern void __postern_thread_exit(unsigned *, unsigned);
extern int __postern_wait(const void *, unsigned, long long);
extern int __postern_wake(const void *, unsigned);
extern int s(void);

static volatile int started, ran;
static unsigned never;

static void spins(void *unused) { for (;;) ran = 1; }
static void waits(void *unused)
{
    ran = 1;
    for (;;)
        __postern_wait(&never, 0, -1);
}
static void breaks(void *unused) { *(volatile int *)8 = 1; }
static void returns(void *unused) {}
static void serves(void *unused) { s(); }
/* Starts whatever it can, with garbage between, and never ends. */
static void floods(void *unused)
{
    for (unsigned i = 1;; i = i * 1664525 + 1013904223) {
        __postern_thread_start(floods, 0);
        __postern_thread_start(returns, 0);
        __postern_thread_start((entry *)(unsigned long)i, 0);
        __postern_wait((void *)(unsigned long)i, i, 1);
        __postern_wake((void *)(unsigned long)(i * 4), i);
        if (i % 16 == 0)
            __postern_thread_exit((unsigned *)(unsigned long)(i * 4), i);
    }
}

static entry *const KINDS[] = { spins, waits, breaks, floods, serves };
int start(int kind) { started = 1; return __postern_thread_start(KINDS[kind], 0); }
int serve_and_start(int kind) { s(); return start(kind); }
int state(void) { return started | ran << 1; }
"#;
const SPINS: i32 = 0;
const WAITS: i32 = 1;
const BREAKS: i32 = 2;
const FLOODS: i32 = 3;
const SERVES: i32 = 4;

fn builder(
    threads: u32,
    service: impl Fn(&Caller<'_>) -> i32 + Send + Sync + 'static,
) -> DomainBuilder {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    let image = IMAGE.get_or_init(|| support::compile("threads.c", SOURCE, &["-O1"]));
    let builder = Domain::builder(image)
        .placement(Placement::Cold)
        .deadline(None);
    builder.service("s", service).own_threads(threads)
}

fn start(domain: &Domain, kind: i32) -> Result<i32, CallError> {
    domain.func::<fn(i32) -> i32>("start").unwrap().call(kind)
}

/// 1 if a thread was started in this life of the domain, and 2 if one ran.
fn state(domain: &Domain) -> i32 {
    domain.func::<fn() -> i32>("state").unwrap().call().unwrap()
}

/// Comes true soon.
fn soon(mut what: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !what() {
        if begin.elapsed() > Duration::from_secs(60) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn tid() -> i32 {
    // SAFETY: has no preconditions.
    unsafe { libc::gettid() }
}

/// Nothing but the thread's start tells the child's runtime that somebody is inside.
#[test]
fn a_thread_that_starts_in_a_child_has_a_deadline() {
    let child = Arc::new(AtomicI32::new(0));
    let forked = child.clone();
    let domain = builder(1, move |_| {
        // SAFETY: the child returns through the gate, and leaves below.
        forked.store(unsafe { libc::fork() }, SeqCst);
        0
    });
    let domain = domain
        .deadline(Some(Duration::from_secs(1)))
        .build()
        .unwrap();
    let call = domain.func::<fn(i32) -> i32>("serve_and_start").unwrap();
    let result = call.call(SPINS);
    let ends = || matches!(result, Ok(0)) && soon(|| domain.is_poisoned());
    let pid = child.load(SeqCst);
    if pid == 0 {
        // SAFETY: leaves the child.
        unsafe { libc::_exit(if ends() { 0 } else { 3 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
    assert!(ends());
}

#[test]
fn a_child_has_none_and_starts_its_own() {
    succeeds_in_child("a_child_has_none_and_starts_its_own", || {
        let domain = builder(2, |_| 0).build().unwrap();
        assert_eq!(start(&domain, WAITS).unwrap(), 0);
        assert_eq!(start(&domain, SPINS).unwrap(), 0);
        assert!(start(&domain, WAITS).unwrap() < 0);
        assert!(soon(|| state(&domain) == 3));
        let status = fork(|| {
            assert!(domain.is_poisoned());
            domain.reset().unwrap();
            assert_eq!(state(&domain), 0);
            for _ in 0..3 {
                for kind in [SPINS, WAITS] {
                    assert_eq!(start(&domain, kind).unwrap(), 0);
                }
                assert!(start(&domain, WAITS).unwrap() < 0);
                assert!(soon(|| state(&domain) == 3));
                domain.reset().unwrap();
                assert_eq!(state(&domain), 0);
            }
            assert_eq!(start(&domain, SPINS).unwrap(), 0);
            domain.close();
            true
        });
        assert_eq!(status, 0);
        assert_eq!(state(&domain), 3);
        assert!(start(&domain, WAITS).unwrap() < 0, "both run on");
        domain.reset().unwrap();
    });
}

/// Its fault is told when the host has long begun anew.
#[test]
fn a_thread_of_a_life_that_is_over_ends_nothing() {
    let (telling, told) = (Arc::new(AtomicI32::new(0)), Arc::new(Barrier::new(2)));
    let (number, wait) = (telling.clone(), told.clone());
    let domain = builder(2, |_| 0).on_fault(move |fault| {
        // That of the call that started it, which may still be inside, is nobody's.
        if fault.kind == FaultKind::AnotherThread {
            return;
        }
        number.store(tid(), SeqCst);
        wait.wait();
    });
    let domain = domain.build().unwrap();
    // The fault may end this call, too.
    assert_eq!(start(&domain, BREAKS).unwrap_or(0), 0);
    assert!(soon(|| telling.load(SeqCst) != 0));
    domain.reset().unwrap();
    assert_eq!(start(&domain, WAITS).unwrap(), 0);
    told.wait();
    let task = format!("/proc/self/task/{}", telling.load(SeqCst));
    assert!(soon(|| !std::path::Path::new(&task).exists()));
    assert_eq!(start(&domain, SPINS).unwrap(), 0);
    assert!(!domain.is_poisoned());
}

/// Whoever is lent a domain finds nobody in it, and nothing of what ran there before.
#[test]
fn a_pool_lends_domains_without_threads() {
    let make = || builder(4, |_| 0).build();
    for per_thread in [false, true] {
        let pool = Pool::builder(make).size(2);
        let pool = if per_thread { pool.per_thread() } else { pool };
        let pool = pool.build().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 0..30 {
                        let domain = pool.get().unwrap();
                        assert_eq!(state(&domain), 0);
                        assert!(start(&domain, [SPINS, WAITS, FLOODS][round % 3]).unwrap() <= 0);
                        let _ = start(&domain, FLOODS);
                    }
                });
            }
        });
        assert_eq!(pool.counters().abandoned, 0);
    }
}

/// A call that begins a domain anew waits for threads as for other calls: not for long.
#[test]
fn a_restart_does_not_wait_for_a_thread_in_a_service() {
    let (inside, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (i, l) = (inside.clone(), leave.clone());
    let builder = builder(2, move |_| {
        i.wait();
        l.wait();
        0
    });
    let domain = builder.restart(RestartPolicy::Immediate).build().unwrap();
    assert_eq!(start(&domain, SERVES).unwrap(), 0);
    inside.wait();
    let _ = start(&domain, BREAKS);
    assert!(soon(|| domain.is_poisoned()));
    std::thread::scope(|scope| {
        let call = scope.spawn(|| domain.func::<fn() -> i32>("state").unwrap().call());
        let refused = soon(|| call.is_finished());
        leave.wait();
        assert!(refused);
        assert!(matches!(call.join().unwrap(), Err(CallError::Busy)));
    });
    let again = || domain.func::<fn() -> i32>("state").unwrap().call();
    assert!(soon(|| matches!(again(), Ok(0))));
}

/// A panic of a service ends the life in which it was.
#[test]
fn a_service_that_panics_on_a_thread_closes_the_domain() {
    let domain = builder(1, |_| std::panic::resume_unwind(Box::new(7)))
        .build()
        .unwrap();
    for _ in 0..3 {
        // The panic may end this call, too.
        assert_eq!(start(&domain, SERVES).unwrap_or(0), 0);
        assert!(soon(|| domain.is_poisoned()));
        domain.reset().unwrap();
        assert_eq!(state(&domain), 0);
    }
}

/// As fast as it can, while the host does everything at once.
#[test]
fn floods_end_whatever_the_host_does() {
    succeeds_in_child("floods_end_whatever_the_host_does", || {
        let mut random = Rng::with_seed(5);
        for round in 0..60 {
            let builder = builder(random.u32(1..7), |_| 0).placement(Placement::Auto);
            let limit = (round % 3 == 0).then(|| Duration::from_millis(random.u64(1..30)));
            let domain = builder.deadline(limit).build().unwrap();
            std::thread::scope(|scope| {
                let flood = domain.clone();
                scope.spawn(move || (start(&flood, FLOODS), start(&flood, WAITS)));
                for _ in 0..random.u32(1..4) {
                    std::thread::sleep(Duration::from_micros(random.u64(0..3000)));
                    let grant = Grant::Service("__postern_thread_start".into());
                    match random.u32(0..8) {
                        0 => domain.close(),
                        1 => domain.interrupt(),
                        2 => drop(domain.revoke_at_once(&grant)),
                        3 => domain.set_placement(Placement::Hot),
                        4 => domain.set_placement(Placement::Cold),
                        5 => assert_eq!(fork(|| in_the_child(&domain)), 0),
                        _ => drop(domain.reset()),
                    }
                }
            });
            match random.bool() {
                true => domain.close(),
                false => drop(domain),
            }
        }
        let threads = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap();
            let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
            names.filter(|name| name == b"postern-thread\n").count()
        };
        assert!(soon(|| threads() == 0));
    });
}

fn in_the_child(domain: &Domain) -> bool {
    // SAFETY: whoever hangs is ended, and the parent sees it.
    unsafe { libc::alarm(60) };
    if domain.is_closed() {
        return true;
    }
    domain.reset().unwrap();
    let _ = start(domain, FLOODS);
    domain.reset().is_ok() && state(domain) == 0
}
