//! What a handler has when it waits, it has where it goes on.

use super::support::{cold, succeeds_in_child};
use super::{LONG, handlers, number, settled, until, waiting};
use postern::{Caller, Posted};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;

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
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let waits = waiting(1, |b| {
        let mut limits = postern::Limits::default();
        limits.call_depth = Some(64);
        limits.sandbox_threads = 1;
        b.limits(limits).on_fault(move |fault| {
            let _ = tell.lock().unwrap().send(fault.to_string());
        })
    });
    let attachment = waits.domain.upcall("deeper").unwrap().attach().unwrap();
    waits.permits.give(1);
    attachment.send(40, 0);
    waits.told.recv_timeout(LONG).unwrap();
    assert_eq!(number(&waits.domain, "counted"), 40);
    attachment.send(80, 0);
    // It had begun: whatever it held, nobody gives back.
    let fault = told.recv_timeout(LONG).unwrap();
    assert!(fault.contains("could not go on"), "{fault}");
    assert!(waits.domain.is_poisoned());
    let counters = settled(&waits.domain);
    assert_eq!((counters.ended, counters.skipped), (1, 0));
}

/// Not a test of how fast it is, but the figure.
#[test]
fn what_waiting_costs() {
    succeeds_in_child("suspended::what_waiting_costs", || {
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
