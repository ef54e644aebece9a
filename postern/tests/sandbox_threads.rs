//! Sandbox threads: a handler that must wait goes on on a thread of its domain's, and the thread
//! that it interrupted goes on at once; and functions that extensions spawn.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;

use postern::{
    CallError, Caller, CommonMemory, Domain, DomainBuilder, FaultKind, Image, Placement, Posted,
    SandboxCounters,
};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};
use support::{code, cold, succeeds_in_child};

/// Handlers that wait, in assembly: what they have in registers is told afterwards.
fn handlers() -> Image {
    let source = "
        .data
        .balign 8
        sum: .quad 0
        count: .quad 0
        .text
        /* All registers that a call of a service keeps, and what is on the data stack. */
        keeps: PUSH %rsi
            movq $1,%rbx
            movq $2,%rbp
            movq $3,%r12
            movq $4,%r13
            movq $5,%r14
            call waits
            POP %rcx
            addq %rcx,%rax
            addq %rbx,%rax
            addq %rbp,%rax
            addq %r12,%rax
            addq %r13,%rax
            addq %r14,%rax
            movq %rax,%gs:sum(,%eiz,1)
            movl $0,%edi
            call tells
            ret
        /* Six integers and eight numbers. */
        many: movl $7,%edi
            movq %rsi,%rsi
            movl $3,%edx
            movl $4,%ecx
            movl $5,%r8d
            movl $6,%r9d
            cvtsi2sd %rdi,%xmm0
            movapd %xmm0,%xmm1
            addsd %xmm0,%xmm1
            call numbers
            movq %rax,%gs:sum(,%eiz,1)
            addsd %xmm0,%xmm0
            cvttsd2si %xmm0,%rax
            movq %rax,%gs:count(,%eiz,1)
            movl $0,%edi
            call tells
            ret
        /* So deep as the event says; back at each depth it counts. */
        deep: testl %edi,%edi
            je 1f
            decl %edi
            call deep
            incq %gs:count(,%eiz,1)
            ret
        1:  xorl %esi,%esi
            call waits
            ret
        deeper: movq $0,%gs:count(,%eiz,1)
            call deep
            movl $0,%edi
            call tells
            ret
        traps: xorl %esi,%esi
            call waits
            ud2
        loops: xorl %esi,%esi
            call waits
        1:  jmp 1b
        /* The service returns to whom the handler would: none of its own calls is left. */
        leaps: jmp waits
        summed: movq %gs:sum(,%eiz,1),%rax
            ret
        counted: movq %gs:count(,%eiz,1),%rax
            ret";
    let imports = [
        ("waits", "l(il)"),
        ("numbers", "d(ilidd)"),
        ("tells", "v(i)"),
    ];
    let exports = [
        ("keeps", "v(IL)"),
        ("many", "v(IL)"),
        ("deeper", "v(IL)"),
        ("traps", "v(IL)"),
        ("loops", "v(IL)"),
        ("leaps", "v(IL)"),
        ("summed", "L()"),
        ("counted", "L()"),
    ];
    code(&imports, &exports, source).image()
}

/// How many calls of a service may return.
#[derive(Default)]
struct Permits(Mutex<Wanted>, Condvar);

#[derive(Default)]
struct Wanted {
    left: u32,
    /// Who has begun to wait.
    waits: u32,
}

impl Permits {
    fn give(&self, n: u32) {
        self.0.lock().unwrap().left += n;
        self.1.notify_all();
    }

    fn take(&self) {
        let mut wanted = self.0.lock().unwrap();
        wanted.waits += 1;
        let mut wanted = self.1.wait_while(wanted, |w| w.left == 0).unwrap();
        wanted.left -= 1;
    }

    /// Whoever wants one holds none of the host's locks from there on.
    fn is_waited_for(&self) -> bool {
        self.0.lock().unwrap().waits > 0
    }
}

/// A domain of the handlers, with a service that waits for a permit, and one that says when a
/// handler is at its end.
struct Waits {
    domain: Domain,
    permits: Arc<Permits>,
    begun: Receiver<()>,
    told: Receiver<i32>,
}

fn waiting(threads: u32, more: impl FnOnce(DomainBuilder) -> DomainBuilder) -> Waits {
    let permits = Arc::<Permits>::default();
    let taken = permits.clone();
    let (begins, begun) = channel();
    let (tell, told) = channel();
    let (begins, tell) = (Mutex::new(begins), Mutex::new(tell));
    let builder = cold(&handlers())
        .deadline(Some(LONG))
        .service("waits", move |_: &Caller<'_>, event: i32, data: i64| {
            let _ = begins.lock().unwrap().send(());
            taken.take();
            i64::from(event) + data
        })
        .service(
            "numbers",
            |_: &Caller<'_>, a: i32, b: i64, c: i32, x: f64, y: f64| {
                f64::from(a) + b as f64 + f64::from(c) + x * 100.0 + y * 1000.0
            },
        )
        .service("tells", move |_: &Caller<'_>, what: i32| {
            let _ = tell.lock().unwrap().send(what);
        });
    Waits {
        domain: more(builder.sandbox_threads(threads)).build().unwrap(),
        permits,
        begun,
        told,
    }
}

fn number(domain: &Domain, name: &str) -> u64 {
    domain.func::<fn() -> u64>(name).unwrap().call().unwrap()
}

const LONG: Duration = Duration::from_secs(60);

/// Waits until it is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn settled(domain: &Domain) -> SandboxCounters {
    until("threads are busy", || domain.sandbox_threads().busy == 0);
    domain.sandbox_threads()
}

#[test]
fn the_client_goes_on_while_its_handler_waits() {
    let waits = waiting(1, |b| b);
    let attachment = waits.domain.upcall("keeps").unwrap().attach().unwrap();
    for round in 1..50u64 {
        assert_eq!(attachment.send(7, round << 32), Posted::Sent);
        // Here it waits, and this thread calls the same domain.
        waits.begun.recv_timeout(LONG).unwrap();
        assert_eq!(attachment.counters().promoted, round);
        number(&waits.domain, "summed");
        waits.permits.give(1);
        waits.told.recv_timeout(LONG).unwrap();
        let sum = 7 + 2 * (round << 32) + 1 + 2 + 3 + 4 + 5;
        assert_eq!(number(&waits.domain, "summed"), sum);
        settled(&waits.domain);
    }
    let counters = settled(&waits.domain);
    assert_eq!((counters.promoted, counters.resumed), (49, 49));
    assert_eq!((counters.skipped, counters.full), (0, 0));
    assert!(!waits.domain.is_poisoned());
}

#[test]
fn arguments_of_all_kinds_come_through() {
    let waits = waiting(2, |b| b);
    let attachment = waits.domain.upcall("many").unwrap().attach().unwrap();
    for round in 1..20u64 {
        attachment.send(1, round << 40);
        waits.told.recv_timeout(LONG).unwrap();
        let sum = 2 * (7 + (round << 40) + 3 + 700 + 14_000);
        assert_eq!(number(&waits.domain, "counted"), sum);
        settled(&waits.domain);
    }
}

#[test]
fn calls_return_as_deep_as_they_were() {
    let waits = waiting(1, |b| b);
    let attachment = waits.domain.upcall("deeper").unwrap().attach().unwrap();
    for depth in [0, 1, 2, 100, 4094] {
        attachment.send(depth, 0);
        waits.permits.give(1);
        waits.told.recv_timeout(LONG).unwrap();
        assert_eq!(number(&waits.domain, "counted"), u64::from(depth));
        settled(&waits.domain);
    }
    // Two more are the handler's own call and that of the service.
    attachment.send(4095, 0);
    let error = attachment.take_fault().unwrap();
    assert!(error.to_string().contains("deeper in calls"), "{error}");
    waits.domain.reset().unwrap();
    attachment.send(1, 0);
    waits.permits.give(1);
    waits.told.recv_timeout(LONG).unwrap();
}

#[test]
fn a_handler_whose_last_act_is_the_service_has_no_call_left() {
    let waits = waiting(1, |b| b);
    let attachment = waits.domain.upcall("leaps").unwrap().attach().unwrap();
    for round in 1..10 {
        attachment.send(3, 0);
        waits.begun.recv_timeout(LONG).unwrap();
        waits.permits.give(1);
        until("it returns", || {
            waits.domain.sandbox_threads().resumed == round
        });
    }
    assert_eq!(settled(&waits.domain).skipped, 0);
    assert!(!waits.domain.is_poisoned());
}

/// A limit of calls counts for a handler where it goes on.
#[test]
fn a_limit_of_calls_holds_where_a_handler_goes_on() {
    let limits = postern::Limits::default();
    let waits = waiting(1, |b| {
        let mut limits = limits.clone();
        limits.call_depth = Some(64);
        limits.sandbox_threads = 1;
        b.limits(limits)
    });
    let attachment = waits.domain.upcall("deeper").unwrap().attach().unwrap();
    waits.permits.give(1);
    attachment.send(40, 0);
    waits.told.recv_timeout(LONG).unwrap();
    assert_eq!(number(&waits.domain, "counted"), 40);
    attachment.send(80, 0);
    until("it is skipped", || {
        waits.domain.sandbox_threads().skipped == 1
    });
    assert!(!waits.domain.is_poisoned());
}

#[test]
fn faults_of_handlers_that_waited_are_told_as_ever() {
    for (name, kind) in [("traps", FaultKind::Trap), ("loops", FaultKind::Deadline)] {
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let waits = waiting(1, |b| {
            b.deadline(Some(Duration::from_millis(30)))
                .on_fault(move |fault| {
                    let _ = tell.lock().unwrap().send(fault.kind);
                })
        });
        let attachment = waits.domain.upcall(name).unwrap().attach().unwrap();
        for _ in 0..5 {
            waits.permits.give(1);
            attachment.send(1, 1);
            assert_eq!(told.recv_timeout(LONG), Ok(kind));
            settled(&waits.domain);
            assert!(waits.domain.is_poisoned());
            assert!(attachment.take_fault().is_none());
            waits.domain.reset().unwrap();
        }
        let counters = settled(&waits.domain);
        assert_eq!((counters.promoted, counters.resumed), (5, 5));
    }
}

#[test]
fn who_has_no_place_is_ended_and_the_thread_goes_on() {
    let waits = waiting(1, |b| b);
    let attachment = waits.domain.upcall("keeps").unwrap().attach().unwrap();
    attachment.send(0, 0);
    waits.begun.recv_timeout(LONG).unwrap();
    for n in 1..17 {
        attachment.send(n, 0);
    }
    let counters = waits.domain.sandbox_threads();
    assert_eq!((counters.promoted, counters.busy), (17, 1));
    assert!(counters.longest >= 16);
    assert!(attachment.take_fault().is_none());
    attachment.send(17, 0);
    let error = attachment.take_fault().unwrap();
    assert!(error.to_string().contains("as many waited"), "{error}");
    assert_eq!(waits.domain.sandbox_threads().full, 1);
    // That closed the domain, so the one that is in a service ends, and the others do not begin.
    waits.permits.give(1);
    until("all are gone", || {
        waits.domain.sandbox_threads().skipped == 16
    });
    settled(&waits.domain);
    waits.domain.reset().unwrap();
    waits.permits.give(1);
    attachment.send(1, 0);
    waits.told.recv_timeout(LONG).unwrap();
}

#[test]
fn a_reset_ends_what_waits() {
    let waits = waiting(2, |b| b);
    let attachment = waits.domain.upcall("keeps").unwrap().attach().unwrap();
    for round in 1..10 {
        for event in 0..6 {
            attachment.send(event, 0);
        }
        for _ in 0..2 {
            waits.begun.recv_timeout(LONG).unwrap();
        }
        // A reset waits for services.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(3));
                waits.permits.give(2);
            });
            waits.domain.reset().unwrap();
        });
        let counters = settled(&waits.domain);
        assert_eq!(counters.resumed + counters.skipped, 6 * round);
        assert_eq!(counters.resumed, 2 * round);
        assert_eq!(number(&waits.domain, "summed"), 0);
    }
    waits.permits.give(1);
    attachment.send(1, 1);
    waits.told.recv_timeout(LONG).unwrap();
}

#[test]
fn interrupts_and_closes_end_what_waits() {
    let waits = waiting(1, |b| b);
    let attachment = waits.domain.upcall("loops").unwrap().attach().unwrap();
    waits.permits.give(1);
    attachment.send(1, 1);
    until("it runs", || {
        waits.domain.interrupt();
        waits.domain.sandbox_threads().resumed == 1
    });
    assert!(!waits.domain.is_poisoned());
    for event in 0..4 {
        attachment.send(event, 0);
    }
    waits.permits.give(4);
    waits.domain.close();
    let counters = settled(&waits.domain);
    assert!(counters.resumed <= 2, "{counters:?}");
    attachment.send(1, 1);
    assert_eq!(attachment.counters().skipped, 1);
}

/// Attachments and handles go while a handler is in a service.
#[test]
fn a_domain_goes_while_a_handler_waits() {
    for detached in [false, true] {
        let waits = waiting(1, |b| b);
        let attachment = waits.domain.upcall("keeps").unwrap().attach().unwrap();
        for event in 0..3 {
            attachment.send(event, 0);
        }
        waits.begun.recv_timeout(LONG).unwrap();
        drop(attachment);
        if detached {
            let again = waits.domain.upcall("keeps").unwrap().attach().unwrap();
            again.send(7, 7);
            waits.permits.give(4);
            for _ in 0..4 {
                waits.told.recv_timeout(LONG).unwrap();
            }
            assert_eq!(number(&waits.domain, "summed"), 7 + 2 * 7 + 15);
        }
        let permits = waits.permits.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(3));
            permits.give(1);
        });
        drop(waits);
        thread.join().unwrap();
    }
}

#[test]
fn a_panic_of_a_service_closes_the_domain() {
    let domain = cold(&handlers())
        .service("waits", |_: &Caller<'_>, _: i32, _: i64| -> i64 {
            std::panic::resume_unwind(Box::new(()))
        })
        .service(
            "numbers",
            |_: &Caller<'_>, _: i32, _: i64, _: i32, _: f64, _: f64| 0.0,
        )
        .service("tells", |_: &Caller<'_>, _: i32| {})
        .sandbox_threads(1)
        .build()
        .unwrap();
    let attachment = domain.upcall("keeps").unwrap().attach().unwrap();
    attachment.send(1, 1);
    until("it is closed", || domain.is_poisoned());
    domain.reset().unwrap();
    assert_eq!(number(&domain, "summed"), 0);
}

#[test]
fn a_forked_child_has_none_until_it_attaches() {
    succeeds_in_child("a_forked_child_has_none_until_it_attaches", || {
        let waits = waiting(1, |b| b);
        let attachment = waits.domain.upcall("keeps").unwrap().attach().unwrap();
        for event in 0..3 {
            attachment.send(event, 0);
        }
        waits.begun.recv_timeout(LONG).unwrap();
        // Else the child may have the lock of what tells that, which nobody there gives back.
        until("it waits", || waits.permits.is_waited_for());
        let status = support::fork(|| {
            // A handler was inside, on a thread that is not here.
            assert!(waits.domain.is_poisoned());
            waits.domain.reset().unwrap();
            let again = waits.domain.upcall("keeps").unwrap();
            let again = std::thread::scope(|scope| {
                let attached = scope.spawn(|| {
                    let attachment = again.attach().unwrap();
                    attachment.send(1, 1);
                    attachment.counters().promoted == 1
                });
                attached.join().unwrap()
            });
            waits.permits.give(1);
            waits.told.recv_timeout(LONG).unwrap();
            again && settled(&waits.domain).busy == 0
        });
        assert_eq!(status, 0);
        waits.permits.give(3);
        for _ in 0..3 {
            waits.told.recv_timeout(LONG).unwrap();
        }
    });
}

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
    let image = IMAGE.get_or_init(|| support::compile("spawn.c", SOURCE, &["-O1"]));
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

/// A process is killed while a handler of a common domain waits in a service: the others find the
/// domain as if a call had been inside.
#[test]
fn a_killed_process_with_a_handler_that_waits() {
    let image = handlers();
    let memory = CommonMemory::new(&image).unwrap();
    let build = |begun: Option<i32>| {
        cold(&image)
            .common(&memory)
            .deadline(Some(LONG))
            .service("waits", move |_: &Caller<'_>, _: i32, _: i64| -> i64 {
                let byte = 1u8;
                unsafe {
                    libc::write(begun.unwrap(), (&raw const byte).cast(), 1);
                    loop {
                        libc::pause();
                    }
                }
            })
            .service(
                "numbers",
                |_: &Caller<'_>, _: i32, _: i64, _: i32, _: f64, _: f64| 0.0,
            )
            .service("tells", |_: &Caller<'_>, _: i32| {})
            .grant_to_all("waits")
            .grant_to_all("numbers")
            .grant_to_all("tells")
            .sandbox_threads(1)
            .build()
            .unwrap()
    };
    let domain = build(None);
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let child = unsafe { libc::fork() };
    if child == 0 {
        let domain = build(Some(ends[1]));
        let attachment = domain.upcall("keeps").unwrap().attach().unwrap();
        attachment.send(1, 1);
        loop {
            unsafe { libc::pause() };
        }
    }
    let mut byte = 0u8;
    unsafe {
        assert_eq!(libc::read(ends[0], (&raw mut byte).cast(), 1), 1);
        assert!(!domain.is_poisoned());
        assert_eq!(libc::kill(child, libc::SIGKILL), 0);
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        libc::close(ends[0]);
        libc::close(ends[1]);
    }
    until("it is closed", || domain.is_poisoned());
    assert!(format!("{:?}", domain.poison()).contains(&child.to_string()));
    domain.reset().unwrap();
    assert_eq!(number(&domain, "summed"), 0);
}

/// Not a test of how fast it is, but the figure.
#[test]
fn what_waiting_costs() {
    succeeds_in_child("what_waiting_costs", || {
        static ENTERED: AtomicU64 = AtomicU64::new(0);
        let now = || unsafe { std::arch::x86_64::_rdtsc() };
        let builder = cold(&handlers())
            .service("waits", move |_: &Caller<'_>, _: i32, _: i64| -> i64 {
                ENTERED.store(now(), SeqCst);
                0
            })
            .service(
                "numbers",
                |_: &Caller<'_>, _: i32, _: i64, _: i32, _: f64, _: f64| 0.0,
            )
            .service("tells", |_: &Caller<'_>, _: i32| {});
        let domain = builder.sandbox_threads(1).build().unwrap();
        let figure = |upcall: postern::Upcall, waits: bool| {
            let attachment = upcall.attach().unwrap();
            let mut all: Vec<(u64, u64)> = (1..=2000)
                .map(|n| {
                    let begun = now();
                    attachment.send(1, 1);
                    let back = now() - begun;
                    if waits {
                        until("it is done", || domain.sandbox_threads().resumed == n);
                    }
                    (back, ENTERED.load(SeqCst).saturating_sub(begun))
                })
                .collect();
            all.sort_unstable();
            let back = all[all.len() / 2].0;
            all.sort_unstable_by_key(|one| one.1);
            (back, all[all.len() / 2].1)
        };
        let upcall = domain.upcall("keeps").unwrap();
        let pure = figure(
            unsafe { upcall.clone().allow("waits").allow("tells") },
            false,
        );
        let promoted = figure(upcall, true);
        println!(
            "cycles, medians: until the thread goes on {} and with a handler that waits {} ({:.2}); until the service runs {} and {}",
            pure.0,
            promoted.0,
            promoted.0 as f64 / pure.0 as f64,
            pure.1,
            promoted.1
        );
    });
}
