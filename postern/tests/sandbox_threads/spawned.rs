//! Functions that extensions spawn, and the library's locks, in C.

use super::support::compile;
use super::{LONG, settled, until};
use postern::{CallError, Caller, Domain, FaultKind, Image, Placement, Posted};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// In C: spawned functions, and the library's allocator.
const SOURCE: &str = r#"
#include <postern/threads.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
extern void tells(int what);
static volatile unsigned done, sum;
static _Thread_local unsigned mine;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void function(void *argument)
{
    mine++;
    pthread_mutex_lock(&lock);
    sum += (unsigned)(uintptr_t)argument * mine;
    pthread_mutex_unlock(&lock);
    tells((int)(uintptr_t)argument);
}
static void traps(void *argument) { *(volatile int *)8 = 1; }
int spawn(unsigned argument) { return postern_spawn(function, (void *)(uintptr_t)argument); }
int spawn_trap(void) { return postern_spawn(traps, 0); }
int spawn_wild(unsigned place) { return postern_spawn((void (*)(void *))(uintptr_t)place, 0); }
void spawns(uint32_t event, uint64_t data) { postern_spawn(function, (void *)(uintptr_t)data); }
unsigned summed(void) { return sum; }
void allocates(uint32_t event, uint64_t data)
{
    void *volatile p = malloc(100000 + data);
    free(p);
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}
unsigned churns(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char *volatile p = malloc(100000 + i % 300);
        if (!p)
            return 0;
        *p = 1;
        free(p);
    }
    return done;
}
"#;

fn in_c(threads: u32) -> (Domain, Receiver<i32>) {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    let image = IMAGE.get_or_init(|| compile("spawn.c", SOURCE, &["-O1"]));
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let builder = Domain::builder(image)
        .placement(Placement::Cold)
        .deadline(Some(LONG))
        .service("tells", move |_: &Caller<'_>, what: i32| {
            let _ = tell.lock().unwrap().send(what);
        });
    let domain = builder.sandbox_threads(threads).build().unwrap();
    (domain, told)
}

#[test]
fn functions_are_spawned_from_calls_and_handlers() {
    let (domain, told) = in_c(3);
    let spawn = domain.func::<fn(u32) -> i32>("spawn").unwrap();
    let attachment = domain.upcall("spawns").unwrap().attach().unwrap();
    let mut expected = 0;
    for n in 1..200u32 {
        match n % 2 {
            0 => assert_eq!(spawn.call(n).unwrap(), 0),
            _ => assert_eq!(attachment.send(n, n.into()), Posted::Sent),
        }
        told.recv_timeout(LONG).unwrap();
        expected += n;
    }
    let counters = settled(&domain);
    assert_eq!((counters.spawned, counters.promoted), (199, 0));
    let summed = domain.func::<fn() -> u32>("summed").unwrap();
    // Each found its thread-local variable as it was at first.
    assert_eq!(summed.call().unwrap(), expected);
    assert_eq!(attachment.counters().delivered, 100);
}

#[test]
fn what_cannot_be_spawned_says_so() {
    let (domain, _told) = in_c(0);
    let spawn = domain.func::<fn(u32) -> i32>("spawn").unwrap();
    assert_eq!(spawn.call(1).unwrap(), -libc::ENOSYS);
    let (domain, told) = in_c(1);
    let wild = domain.func::<fn(u32) -> i32>("spawn_wild").unwrap();
    for place in [0, 1, 0x1_1001, u32::MAX] {
        assert_eq!(wild.call(place).unwrap(), -libc::EINVAL);
    }
    let spawn = domain.func::<fn(u32) -> i32>("spawn").unwrap();
    let (mut given, mut full) = (0, 0);
    while full == 0 {
        match spawn.call(1).unwrap() {
            0 => given += 1,
            error => {
                assert_eq!(error, -libc::EAGAIN);
                full += 1;
            }
        }
    }
    for _ in 0..given {
        told.recv_timeout(LONG).unwrap();
    }
    assert_eq!(settled(&domain).full, 1);
    let trap = domain.func::<fn() -> i32>("spawn_trap").unwrap();
    // Its fault ends the call that has it called, if that is still inside.
    match trap.call() {
        Ok(status) => assert_eq!(status, 0),
        Err(CallError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::AnotherThread),
        Err(error) => panic!("{error}"),
    }
    until("it is closed", || domain.is_poisoned());
    assert!(matches!(spawn.call(1), Err(CallError::Poisoned)));
    settled(&domain);
    domain.reset().unwrap();
    assert_eq!(spawn.call(1).unwrap(), 0);
    told.recv_timeout(LONG).unwrap();
}

/// Handlers interrupt their own client in the allocator of the domain, and want its lock.
#[test]
fn a_handler_waits_for_a_lock_of_its_own_client() {
    let (domain, _told) = in_c(2);
    let churns = domain.func::<fn(u32) -> u32>("churns").unwrap();
    let attachment = domain.upcall("allocates").unwrap().attach().unwrap();
    let sender = attachment.sender();
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0u64;
            while !ends.load(SeqCst) {
                // The pool has room for eighteen, and its threads are not always scheduled.
                let pool = domain.sandbox_threads();
                if pool.promoted - pool.resumed < 9 {
                    sender.send(1, n % 1000);
                    n += 1;
                }
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        let begun = Instant::now();
        while attachment.counters().promoted < 20 && begun.elapsed() < LONG {
            let _ = churns.call(20_000);
        }
        ends.store(true, SeqCst);
    });
    until("all have ended", || {
        let counters = settled(&domain);
        counters.promoted == counters.resumed
    });
    let counters = attachment.counters();
    assert_eq!((counters.ended, counters.skipped), (0, 0), "{counters:?}");
    assert!(counters.promoted >= 20, "{counters:?}");
    let done = counters.delivered + counters.promoted;
    assert_eq!(u64::from(churns.call(1).unwrap()), done);
    assert!(!domain.is_poisoned());
}
