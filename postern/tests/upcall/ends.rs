//! Upcalls, attachments, domains and threads end.

use super::support::{cold, fork, succeeds_in_child};
use super::{Flood, domain, handlers, victim};
use postern::{CallError, Caller, FaultKind, Posted};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};

fn fault_kind(error: Option<CallError>) -> Option<FaultKind> {
    error.and_then(|error| error.fault().map(|fault| fault.kind))
}

/// The domains of the handler and of the interrupted calls, by another thread.
#[test]
fn resets_and_closes_by_others() {
    let (domain, victim) = (domain(), victim());
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(SeqCst) {
                let _ = domain.reset();
                let _ = victim.reset();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let attachment = domain.upcall("on").unwrap().attach().unwrap();
        let add = victim.func::<fn(i32, i32) -> i32>("add").unwrap();
        let flood = Flood::of(attachment.sender());
        let (begun, mut good) = (Instant::now(), 0);
        while attachment.counters().delivered < 1000 || good < 1000 {
            match add.call(1, 2) {
                Ok(sum) => good += i32::from(sum == 3),
                Err(error) => assert!(matches!(error, CallError::Busy), "{error}"),
            }
            assert!(begun.elapsed() < Duration::from_secs(100), "{attachment:?}");
        }
        ends.store(true, SeqCst);
        domain.close();
        let closed = attachment.counters();
        while attachment.counters().skipped < closed.skipped + 10 {
            std::hint::spin_loop();
        }
        drop(flood);
        assert_eq!(attachment.counters().delivered, closed.delivered);
        assert_eq!(attachment.counters().ended, 0);
    });
}

#[test]
fn a_handler_that_loops_is_ended_and_poisons_its_domain_only() {
    let (domain, victim) = (domain(), victim());
    let upcall = domain.upcall("loops").unwrap();
    let attachment = upcall.longest(Duration::from_millis(5)).attach().unwrap();
    let begun = Instant::now();
    assert_eq!(attachment.send(1, 1), Posted::Sent);
    assert!(begun.elapsed() >= Duration::from_millis(5));
    assert_eq!(attachment.counters().ended, 1);
    assert!(domain.is_poisoned());
    assert_eq!(
        fault_kind(attachment.take_fault()),
        Some(FaultKind::Deadline)
    );
    assert!(attachment.take_fault().is_none());
    // Skipped, until the domain begins anew.
    attachment.send(1, 1);
    assert_eq!(attachment.counters().skipped, 1);
    domain.reset().unwrap();
    // In a call, too.
    let sum = victim.func::<fn(i64) -> i64>("sum").unwrap();
    let sender = attachment.sender();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        sender.send(2, 2);
    });
    let n = 40_000_000;
    assert_eq!(sum.call(n).unwrap(), n * (n + 1) / 2);
    thread.join().unwrap();
    assert_eq!(attachment.counters().ended, 2);
    assert!(domain.is_poisoned() && !victim.is_poisoned());
}

#[test]
fn a_handler_that_faults_poisons_its_domain_only() {
    for (name, kind) in [
        ("traps", FaultKind::Trap),
        ("deep", FaultKind::ControlStackOverflow),
    ] {
        let victim = victim();
        let told = Arc::new(AtomicU32::new(0));
        let count = told.clone();
        let builder = cold(&handlers()).service("s", |_: &Caller<'_>, x: i32| x);
        let builder = builder.on_fault(move |_| {
            count.fetch_add(1, SeqCst);
        });
        let domain = builder.build().unwrap();
        let attachment = domain.upcall(name).unwrap().attach().unwrap();
        let serve = victim.func::<fn(i32) -> i32>("serve").unwrap();
        for round in 1..50 {
            attachment.send(1, 1);
            assert_eq!(serve.call(20).unwrap(), 41);
            assert!(domain.is_poisoned());
            assert_eq!(attachment.counters().ended, round);
            let fault = attachment.take_fault();
            assert_eq!(fault_kind(fault), Some(kind), "{name}");
            assert_eq!(u64::from(told.load(SeqCst)), round);
            domain.reset().unwrap();
        }
        assert!(!victim.is_poisoned());
    }
}

/// The timer that looks at the time of handlers runs out at any instruction of a detachment.
#[test]
fn a_timer_that_runs_out_while_a_thread_detaches() {
    let test = "ends::a_timer_that_runs_out_while_a_thread_detaches";
    succeeds_in_child(test, || {
        let domain = domain();
        let longest = Duration::from_micros(50);
        for n in 0..4_000u64 {
            let upcall = domain.upcall("empty").unwrap().longest(longest);
            let attachment = upcall.attach().unwrap();
            let begun = Instant::now();
            attachment.send(1, 1);
            // The thread begins to detach so long before.
            let before = Duration::from_nanos(200 * (n % 200));
            while begun.elapsed() + before < longest {}
            drop(attachment);
            if domain.is_poisoned() {
                domain.reset().unwrap();
            }
        }
    });
}

/// Ticks that came faster than a thread takes them would leave it no instruction.
#[test]
fn a_thread_gets_on_however_short_the_longest_time_is() {
    let test = "ends::a_thread_gets_on_however_short_the_longest_time_is";
    succeeds_in_child(test, || {
        let domain = domain();
        let upcall = domain.upcall("empty").unwrap();
        let attachment = upcall.longest(Duration::ZERO).attach().unwrap();
        for n in 0..2_000 {
            attachment.send(n % 3, 1);
            if domain.is_poisoned() {
                domain.reset().unwrap();
            }
        }
        let counters = attachment.counters();
        assert!(counters.delivered > 0, "{counters:?}");
    });
}

/// A thread that ends while it is attached, and one that forks.
#[test]
fn ends_and_forks_while_attached() {
    succeeds_in_child("ends::ends_and_forks_while_attached", || {
        let domain = domain();
        for _ in 0..20 {
            let domain = domain.clone();
            std::thread::spawn(move || {
                let attachment = domain.upcall("on").unwrap().attach().unwrap();
                let flood = Flood::of(attachment.sender());
                while attachment.counters().delivered < 10 {}
                // It is never dropped.
                std::mem::forget((attachment, flood));
            });
        }
        let attachment = domain.upcall("on").unwrap().attach().unwrap();
        let before = attachment.counters().delivered;
        let status = fork(|| {
            attachment.send(1, 1);
            attachment.counters().delivered == before
        });
        assert_eq!(status, 0);
        assert_eq!(attachment.send(1, 1), Posted::Sent);
        assert!(attachment.counters().delivered > before);
    });
}
