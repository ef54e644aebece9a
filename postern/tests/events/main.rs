//! Events call handlers of domains: every kind of them, in every way that this machine allows.
//!
//! Nothing here hangs on how long a wake-up takes: tests wait until what they count is there.
#![allow(clippy::undocumented_unsafe_blocks)]
mod acts;
mod kinds;
mod pages;
mod pressure;
mod strangers;
#[path = "../support/mod.rs"]
mod support;

use postern::{Domain, DomainBuilder, Event, EventError, Image, Subscription, Way, Ways};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use support::{code, cold};

/// Handlers that any number of threads run at once.
fn image() -> &'static Image {
    static IMAGE: LazyLock<Image> = LazyLock::new(|| {
        let source = ".data
             .balign 8
             calls: .quad 0
             total: .quad 0
             last: .quad 0
             second: .quad 0
             order: .quad 0
             .text
             on: lock incq %gs:calls(,%eiz,1)
                 lock addq %rsi,%gs:total(,%eiz,1)
                 movq %rsi,%gs:last(,%eiz,1)
                 ret
             other: lock addq %rsi,%gs:second(,%eiz,1)
                 ret
             notes: movq %gs:order(,%eiz,1),%rax
                 shlq $8,%rax
                 orq %rdi,%rax
                 movq %rax,%gs:order(,%eiz,1)
                 ret
             loops: jmp loops
             traps: ud2
             who: call __postern_upcall_client
                 cltq
                 movq %rax,%gs:last(,%eiz,1)
                 ret
             wakes: movl %esi,%edi
                 call __postern_upcall_wake
                 cltq
                 movq %rax,%gs:last(,%eiz,1)
                 ret
             sends: movq %rsi,%rax
                 shrq $32,%rax
                 movl %esi,%edi
                 movl %eax,%esi
                 movl $77,%edx
                 call __postern_upcall_send
                 cltq
                 movq %rax,%gs:last(,%eiz,1)
                 ret
             again: movl %edi,%ebx
                 call __postern_upcall_client
                 movl %eax,%edi
                 movl %ebx,%esi
                 movl $1,%edx
                 call __postern_upcall_send
                 lock incq %gs:calls(,%eiz,1)
                 ret
             nices: movl %esi,%edi
                 movl $7,%esi
                 call __postern_upcall_nice
                 cltq
                 movq %rax,%gs:last(,%eiz,1)
                 ret
             calls_of: movq %gs:calls(,%eiz,1),%rax
                 ret
             total_of: movq %gs:total(,%eiz,1),%rax
                 ret
             last_of: movq %gs:last(,%eiz,1),%rax
                 ret
             second_of: movq %gs:second(,%eiz,1),%rax
                 ret
             order_of: movq %gs:order(,%eiz,1),%rax
                 ret";
        let handlers = [
            "on", "other", "notes", "loops", "traps", "who", "wakes", "sends", "again", "nices",
        ];
        let handlers = handlers.map(|name| (name, "v(IL)"));
        let acts = [
            ("__postern_upcall_client", "i()"),
            ("__postern_upcall_wake", "i(I)"),
            ("__postern_upcall_send", "i(IIL)"),
            ("__postern_upcall_nice", "i(Ii)"),
        ];
        let looks = ["calls_of", "total_of", "last_of", "second_of", "order_of"];
        let exports = [&handlers[..], &looks.map(|name| (name, "L()"))[..]].concat();
        code(&acts, &exports, source).image()
    });
    &IMAGE
}

fn builder() -> DomainBuilder {
    cold(image()).deadline(Some(Duration::from_secs(60)))
}

/// A domain of each way that this machine allows.
fn domains() -> Vec<(Way, Domain)> {
    let all = [Way::Current, Way::RealTime, Way::Plain];
    let made = all.into_iter().filter_map(|way| {
        let domain = builder().ways(Ways::only(way)).build().unwrap();
        match domain.way() {
            Ok(_) => Some((way, domain)),
            Err(error) => {
                eprintln!("NOT TESTED here, {way:?}: {error}");
                None
            }
        }
    });
    made.collect()
}

fn number(domain: &Domain, name: &str) -> u64 {
    domain.func::<fn() -> u64>(name).unwrap().call().unwrap()
}

/// Waits until it is so.
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::yield_now();
    }
}

fn handled(event: &Subscription) -> u64 {
    let counters = event.counters();
    counters.by_current + counters.by_dispatcher
}

#[test]
fn a_timer_is_told_as_often_as_it_ran_out() {
    for (way, domain) in domains() {
        let attached = domain.attach().unwrap();
        assert_eq!(attached.is_interrupted(), way == Way::Current);
        let tick = domain
            .on(Event::every(Duration::from_micros(500)), "on")
            .unwrap();
        until("ticks", || handled(&tick) >= 50);
        let counters = tick.counters();
        println!("{way:?}: {}; {counters:?}", tick.way());
        drop(tick);
        // Whoever had one when it was dropped has told it.
        until("the last", || {
            let calls = number(&domain, "calls_of");
            std::thread::sleep(Duration::from_millis(2));
            calls == number(&domain, "calls_of")
        });
        let (calls, total) = (number(&domain, "calls_of"), number(&domain, "total_of"));
        assert!(calls >= 50 && total >= calls);
        assert_eq!(
            (counters.skipped, counters.faults, counters.dropped),
            (0, 0, 0)
        );
        let once = domain
            .on(Event::after(Duration::from_millis(1)), "other")
            .unwrap();
        until("one", || handled(&once) == 1);
        assert_eq!(number(&domain, "second_of"), 1);
    }
}

/// What several threads ring is told to the last one, whoever tells it.
#[test]
fn a_flood_is_told_exactly_once() {
    for (way, domain) in domains() {
        let bell = domain.on(Event::doorbell(), "on").unwrap();
        const THREADS: u64 = 3;
        const RINGS: u64 = 20_000;
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let attached = domain.attach().unwrap();
                    let doorbell = bell.doorbell().unwrap();
                    for n in 1..=RINGS {
                        doorbell.ring(n).unwrap();
                    }
                    drop(attached);
                });
            }
        });
        let rung = THREADS * RINGS * (RINGS + 1) / 2;
        until("all", || number(&domain, "total_of") == rung);
        until("all counted", || {
            handled(&bell) == number(&domain, "calls_of")
        });
        let counters = bell.counters();
        println!("{way:?}: {counters:?}");
        assert_eq!(counters.coalesced, rung - number(&domain, "calls_of"));
        assert_eq!(
            (counters.skipped, counters.faults, counters.dropped),
            (0, 0, 0)
        );
        if way != Way::Current {
            assert_eq!(counters.by_current, 0);
        }
    }
}

/// With the program of the kernel, whoever rings has been interrupted when its next instruction
/// comes, unless the dispatcher was faster; so somebody was, of many.
#[test]
fn the_current_thread_is_interrupted() {
    let domain = builder().ways(Ways::only(Way::Current)).build().unwrap();
    let bell = match domain.on(Event::doorbell(), "on") {
        Ok(bell) => bell,
        Err(EventError::Way(error)) => return eprintln!("NOT TESTED here: {error}"),
        Err(error) => panic!("{error}"),
    };
    let doorbell = bell.doorbell().unwrap();
    let attached = domain.attach().unwrap();
    until("interruptions", || {
        doorbell.ring(1).unwrap();
        bell.counters().by_current >= 20
    });
    println!("{:?} {attached:?}", bell.counters());
    drop(attached);
    // Nobody who is not attached is.
    let before = bell.counters();
    for _ in 0..200 {
        doorbell.ring(1).unwrap();
    }
    until("all", || {
        number(&domain, "total_of") > 0 && handled(&bell) > handled_of(&before)
    });
    assert_eq!(bell.counters().by_current, before.by_current);
}

/// A thread that never looks, since it blocks the signal: what it leaves is the dispatcher's, and
/// it is signalled once, whatever happens.
#[test]
fn who_is_interrupted_and_takes_nothing_keeps_nothing() {
    let domain = builder().ways(Ways::only(Way::Current)).build().unwrap();
    let bell = match domain.on(Event::doorbell(), "on") {
        Ok(bell) => bell,
        Err(EventError::Way(error)) => return eprintln!("NOT TESTED here: {error}"),
        Err(error) => panic!("{error}"),
    };
    let doorbell = bell.doorbell().unwrap();
    let mask = |how| unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGRTMAX() - 4);
        libc::pthread_sigmask(how, &set, std::ptr::null_mut());
    };
    let attached = domain.attach().unwrap();
    mask(libc::SIG_BLOCK);
    let begun = Instant::now();
    until("a call", || {
        doorbell.ring(1).unwrap();
        bell.counters().by_dispatcher >= 20 && is_pending(libc::SIGRTMAX() - 4)
    });
    println!("{:?} {:?}", begun.elapsed(), bell.counters());
    assert_eq!(bell.counters().by_current, 0);
    assert_eq!(queued(libc::SIGRTMAX() - 4), 1);
    // What is taken by its handler is followed by another.
    drop(attached);
    mask(libc::SIG_UNBLOCK);
    let attached = domain.attach().unwrap();
    for _ in 0..3 {
        mask(libc::SIG_BLOCK);
        until("a signal", || {
            doorbell.ring(1).unwrap();
            is_pending(libc::SIGRTMAX() - 4)
        });
        mask(libc::SIG_UNBLOCK);
    }
    drop(attached);
}

/// Takes what is queued of a signal that the calling thread blocks: how often it is.
fn queued(signal: i32) -> usize {
    let none = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut n = 0;
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, signal);
        while libc::sigtimedwait(&set, std::ptr::null_mut(), &none) == signal {
            n += 1;
        }
    }
    n
}

fn is_pending(signal: i32) -> bool {
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&mut set);
        libc::sigismember(&set, signal) == 1
    }
}

fn handled_of(counters: &postern::EventCounters) -> u64 {
    counters.by_current + counters.by_dispatcher
}

/// A thread that its priority puts before the dispatcher, on the same processor: each event
/// interrupts it, though the dispatcher never has its turn.
#[test]
fn no_event_waits_for_the_dispatcher() {
    const RINGS: u64 = 50;
    let pinned = std::thread::spawn(|| {
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
        // Its threads stay on this processor, too.
        let ways = Ways::only(Way::Current).priority(1);
        let domain = builder().ways(ways).build().unwrap();
        let bell = match domain.on(Event::doorbell(), "on") {
            Ok(bell) => bell,
            Err(EventError::Way(error)) => return eprintln!("NOT TESTED here: {error}"),
            Err(error) => panic!("{error}"),
        };
        let doorbell = bell.doorbell().unwrap();
        let attached = domain.attach().unwrap();
        let priority = |policy, sched_priority| unsafe {
            let parameters = libc::sched_param { sched_priority };
            libc::sched_setscheduler(0, policy, &parameters)
        };
        if priority(libc::SCHED_FIFO, 2) != 0 {
            return eprintln!("NOT TESTED here: no real-time priority");
        }
        for n in 1..=RINGS {
            doorbell.ring(1).unwrap();
            let begun = Instant::now();
            // Not by another's turn: this thread gives none.
            while bell.counters().by_current < n {
                assert!(begun.elapsed() < Duration::from_secs(60), "the {n}th");
                std::hint::spin_loop();
            }
        }
        assert_eq!(priority(libc::SCHED_OTHER, 0), 0);
        println!("{:?}", bell.counters());
        assert_eq!(number(&domain, "calls_of"), RINGS);
        drop(attached);
    });
    pinned.join().unwrap();
}
