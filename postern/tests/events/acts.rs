//! What handlers do for clients, priorities, and handlers of their own for each event.

use super::support::cold;
use super::{builder, domains, handled, image, number, until};
use postern::{CommonMemory, Domain, Event, Posted, Subscription, Way, Ways};
use std::time::{Duration, Instant};

/// A domain whose handlers run only where something is sent.
fn posting() -> Domain {
    builder().ways(Ways::only(Way::Plain)).build().unwrap()
}

fn on(domain: &Domain, name: &str) -> Subscription {
    domain.on(Event::posted(), name).unwrap()
}

#[test]
fn each_event_has_its_handler() {
    let domain = posting();
    let (one, two) = (on(&domain, "on"), on(&domain, "other"));
    let client = domain.attach().unwrap();
    assert_eq!(client.send(one.number(), 3), Some(Posted::Sent));
    assert_eq!(client.send(two.number(), 4), Some(Posted::Sent));
    assert_eq!(
        (number(&domain, "total_of"), number(&domain, "second_of")),
        (3, 4)
    );
    assert_eq!(client.send(63, 4), None);
    assert_eq!(one.counters().by_current, 1);
    let number_of_two = two.number();
    drop(two);
    assert_eq!(client.send(number_of_two, 4), None);
    assert_eq!(client.counters().delivered, 2);
}

/// While the handler of one event runs, others come, and are told by their priority.
#[test]
fn the_highest_priority_is_told_first() {
    let domain = posting();
    let numbers = on(&domain, "notes");
    let client = domain.attach().unwrap();
    let events: Vec<_> = [10u8, 200, 0, 90]
        .into_iter()
        .map(|priority| on(&domain, "notes").priority(priority))
        .collect();
    // Held back until all wait.
    let signal = libc::SIGRTMAX() - 4;
    let mask = |how| unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(how, &set, std::ptr::null_mut());
    };
    mask(libc::SIG_BLOCK);
    for event in &events {
        client.send(event.number(), 0);
    }
    mask(libc::SIG_UNBLOCK);
    let n: Vec<u64> = events.iter().map(|e| e.number().into()).collect();
    let expected = n[1] << 24 | n[3] << 16 | n[0] << 8 | n[2];
    assert_eq!(number(&domain, "order_of"), expected);
    drop(numbers);
}

/// The same of what the kernel tells: all rung before anybody looks.
#[test]
fn so_it_is_of_events_of_the_kernel() {
    for (_, domain) in domains() {
        let first = domain.on(Event::doorbell(), "notes").unwrap().priority(1);
        let last = domain.on(Event::doorbell(), "notes").unwrap().priority(9);
        let (a, b) = (first.doorbell().unwrap(), last.doorbell().unwrap());
        for _ in 0..50 {
            a.ring(1).unwrap();
            b.ring(1).unwrap();
        }
        let told = |e: &Subscription| handled(e) + e.counters().coalesced;
        until("all", || told(&first) == 50 && told(&last) == 50);
    }
}

#[test]
fn clients_are_woken_and_sent_to() {
    let domain = posting();
    let (wakes, sends, who, on_data) = (
        on(&domain, "wakes"),
        on(&domain, "sends"),
        on(&domain, "who"),
        on(&domain, "on"),
    );
    let client = domain.attach().unwrap();
    let last = || number(&domain, "last_of") as i64;
    client.send(who.number(), 0);
    assert_eq!(last(), i64::from(client.number()));
    assert_eq!(client.wait(Duration::ZERO), 0);
    client.send(wakes.number(), client.number().into());
    assert_eq!(client.wait(Duration::from_secs(60)), 1);
    client.send(wakes.number(), 40);
    assert_eq!(last(), i64::from(-libc::ESRCH));
    // To itself, from a handler: told behind it.
    let to = |event: u32, client: u32| u64::from(event) << 32 | u64::from(client);
    client.send(sends.number(), to(on_data.number(), client.number()));
    assert_eq!(number(&domain, "total_of"), 77);
    client.send(sends.number(), to(60, client.number()));
    assert_eq!(last(), i64::from(-libc::ENOENT));
    client.send(sends.number(), to(on_data.number(), 50));
    assert_eq!(last(), i64::from(-libc::ESRCH));
    // Another client sleeps until this one's handler wakes it.
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let domain = &domain;
        let sleeper = scope.spawn(move || {
            let client = domain.attach().unwrap();
            sender.send(client.number()).unwrap();
            client.wait(Duration::from_secs(60))
        });
        let number = receiver.recv().unwrap();
        assert_ne!(number, client.number());
        client.send(wakes.number(), number.into());
        assert_eq!(sleeper.join().unwrap(), 1);
        // Its number is free again.
        client.send(wakes.number(), number.into());
        assert_eq!(last(), i64::from(-libc::ESRCH));
    });
    // By a call of the domain that is no handler, too; and a thread that is none has no number.
    drop(client);
    let call = domain.func::<fn(u32, u64)>("who").unwrap();
    call.call(0, 0).unwrap();
    assert_eq!(last(), i64::from(-libc::ENOENT));
}

/// Clients that have a place one after the other are counted once each.
#[test]
fn what_former_clients_did_is_counted_once() {
    let memory = CommonMemory::new(image()).unwrap();
    let domain = cold(image())
        .common(&memory)
        .ways(Ways::only(Way::Plain))
        .build()
        .unwrap();
    let event = on(&domain, "on");
    for _ in 0..3 {
        let client = domain.attach().unwrap();
        client.send(event.number(), 1);
        assert_eq!(client.counters().delivered, 1);
    }
    assert_eq!(number(&domain, "calls_of"), 3);
    drop((event, domain));
    // Somebody who looks at all domains just then has it a moment longer; and each client that came
    // or went had what there was until then told.
    until("it is counted", || memory.view(None).total.delivered >= 3);
    assert_eq!(memory.view(None).total.delivered, 3);
}

/// In a thread of its own, whose niceness goes with it.
#[test]
fn niceness_is_granted() {
    let domain = posting();
    let nices = on(&domain, "nices");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let last = || number(&domain, "last_of") as i64;
            let mine = || unsafe { libc::getpriority(libc::PRIO_PROCESS, libc::gettid() as u32) };
            let client = domain.attach().unwrap();
            let before = mine();
            client.send(nices.number(), client.number().into());
            assert_eq!((last(), mine()), (i64::from(-libc::EPERM), before));
            drop(client);
            let client = domain.client().niceness(true).attach().unwrap();
            client.send(nices.number(), client.number().into());
            if before <= 7 {
                assert_eq!((last(), mine()), (0, 7));
            }
        });
    });
}

/// Handlers that send their own client events have no more than about half of its time.
#[test]
fn a_thread_gets_on_whatever_handlers_send_it() {
    let domain = posting();
    let again = on(&domain, "again");
    let (number, other) = (again.number(), domain.clone());
    let (says, said) = std::sync::mpsc::channel();
    let attached = std::thread::spawn(move || {
        let client = other.attach().unwrap();
        client.send(number, 0).unwrap();
        let begun = Instant::now();
        let mut turns = 0u64;
        while begun.elapsed() < Duration::from_millis(200) {
            turns += 1;
        }
        says.send(turns).unwrap();
        client.counters().delivered
    });
    let turns = said.recv_timeout(Duration::from_secs(60));
    let turns = turns.expect("the thread does not get on");
    let delivered = attached.join().unwrap();
    println!("{turns} turns, {delivered} handlers");
    assert!(turns > 100 && delivered > 100);
    drop(again);
}
