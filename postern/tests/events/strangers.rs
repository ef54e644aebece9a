//! Handlers that misbehave, domains that go, descriptors of any kind, forks.

use super::support::{code, cold, fork, succeeds_in_child};
use super::{builder, domains, handled, image, number, until};
use postern::{AttachError, Caller, Event, EventError, SymbolError, Way, Ways};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn handlers_that_fault_or_loop_close_their_domain_and_the_host_is_told() {
    for (way, _) in domains() {
        for (name, limits) in [
            ("traps", Some(Duration::from_secs(60))),
            ("loops", Some(Duration::from_millis(5))),
        ] {
            let told = Arc::new(AtomicU64::new(0));
            let count = told.clone();
            let domain = cold(image())
                .deadline(limits)
                .on_fault(move |_| {
                    count.fetch_add(1, SeqCst);
                })
                .ways(Ways::only(way))
                .build()
                .unwrap();
            let attached = domain.attach().unwrap();
            let bell = domain.on(Event::doorbell(), name).unwrap();
            let doorbell = bell.doorbell().unwrap();
            for round in 1..=5 {
                doorbell.ring(1).unwrap();
                until("a fault", || told.load(SeqCst) == round);
                until("its count", || bell.counters().faults == round);
                until("it is closed", || domain.is_poisoned());
                // Skipped, and counted.
                let skipped = bell.counters().skipped;
                doorbell.ring(1).unwrap();
                until("a skip", || bell.counters().skipped == skipped + 1);
                domain.reset().unwrap();
            }
            println!("{way:?} {name}: {:?} {attached:?}", bell.counters());
        }
    }
}

/// A domain without a deadline has one for its handlers.
#[test]
fn handlers_without_a_deadline_end() {
    let domain = cold(image())
        .deadline(None)
        .ways(Ways::only(Way::Plain))
        .build()
        .unwrap();
    let _once = domain.on(Event::after(Duration::ZERO), "loops").unwrap();
    until("an end", || domain.is_poisoned());
}

#[test]
fn what_cannot_be_waited_for_says_why() {
    let domain = builder().build().unwrap();
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let refused = |event, name| domain.on(event, name).unwrap_err();
    assert!(matches!(
        refused(Event::readable(&file), "on"),
        EventError::AlwaysReady
    ));
    let missing = refused(Event::doorbell(), "nowhere");
    assert!(matches!(
        missing,
        EventError::Handler(SymbolError::Missing { .. })
    ));
    let types = refused(Event::doorbell(), "calls_of");
    assert!(matches!(types, EventError::Handler(_)), "{types}");
    let attached = domain.attach().unwrap();
    let again = domain.attach().unwrap_err();
    assert!(matches!(again, EventError::Attach(AttachError::Attached)));
    drop(attached);
    let all: Vec<_> = (0..64)
        .map(|_| domain.on(Event::doorbell(), "on").unwrap())
        .collect();
    assert!(matches!(
        refused(Event::doorbell(), "on"),
        EventError::TooMany
    ));
    drop(all);
    // A real-time priority that does not exist.
    let builder = builder().ways(Ways::only(Way::RealTime).priority(1000));
    let error = builder.build().unwrap().way().unwrap_err();
    assert!(error.to_string().contains("ulimit -r"), "{error}");
}

/// Events of a domain that is closed, or reset again and again, while they come.
#[test]
fn closes_and_resets() {
    for (_, domain) in domains() {
        let bell = domain.on(Event::doorbell(), "on").unwrap();
        let tick = domain
            .on(Event::every(Duration::from_micros(200)), "other")
            .unwrap();
        let doorbell = bell.doorbell().unwrap();
        let _attached = domain.attach().unwrap();
        let mut rings = 0;
        for _ in 0..100 {
            doorbell.ring(1).unwrap();
            rings += 1;
            let _ = domain.reset();
        }
        let told = || {
            let c = bell.counters();
            c.by_current + c.by_dispatcher + c.coalesced + c.skipped
        };
        until("all", || told() == rings);
        domain.close();
        let skipped = tick.counters().skipped;
        until("skips", || tick.counters().skipped > skipped + 3);
        assert_eq!((bell.counters().faults, tick.counters().faults), (0, 0));
    }
}

/// Subscriptions that come and go while what they wait for happens.
#[test]
fn subscriptions_come_and_go() {
    for (_, domain) in domains() {
        let _attached = domain.attach().unwrap();
        for n in 0..300 {
            let tick = domain
                .on(Event::every(Duration::from_micros(50)), "on")
                .unwrap();
            if n % 3 == 0 {
                until("one", || handled(&tick) > 0);
            }
        }
    }
}

/// A handle that goes while its events come.
#[test]
fn domains_go() {
    for (way, _) in domains() {
        for _ in 0..20 {
            let domain = builder().ways(Ways::only(way)).build().unwrap();
            let attached = domain.attach().unwrap();
            let tick = domain
                .on(Event::every(Duration::from_micros(50)), "on")
                .unwrap();
            drop(domain);
            until("one", || handled(&tick) > 0);
            drop(tick);
            drop(attached);
        }
    }
}

/// A subscription goes while its handler is in a service. The thread that is in there may find,
/// when it comes back, what the next subscription waits for.
#[test]
fn a_handler_that_returns_late_takes_no_event_away() {
    let source = "waits_for: call waits
             ret";
    let image = code(&[("waits", "v(I)")], &[("waits_for", "v(IL)")], source).image();
    let (begins, begun) = channel();
    let begins = Mutex::new(begins);
    let gates: Arc<[(Mutex<bool>, Condvar); 2]> = Arc::default();
    let passes = gates.clone();
    let domain = cold(&image)
        .deadline(Some(LONG))
        .ways(Ways::only(Way::Plain))
        .service("waits", move |_: &Caller<'_>, event: u32| {
            let _ = begins.lock().unwrap().send(event);
            let (open, opened) = &passes[event as usize];
            drop(opened.wait_while(open.lock().unwrap(), |open| !*open));
        })
        .build()
        .unwrap();
    let open = |event: u32| {
        let (open, opened) = &gates[event as usize];
        *open.lock().unwrap() = true;
        opened.notify_all();
    };
    let on = || domain.on(Event::doorbell(), "waits_for").unwrap();
    let first = on();
    first.doorbell().unwrap().ring(1).unwrap();
    assert_eq!(begun.recv_timeout(LONG), Ok(0));
    drop(first);
    let second = on();
    let doorbell = second.doorbell().unwrap();
    let number = second.number();
    doorbell.ring(1).unwrap();
    assert_eq!(begun.recv_timeout(LONG), Ok(number));
    doorbell.ring(1).unwrap();
    open(0);
    std::thread::sleep(Duration::from_millis(20));
    open(1);
    until("both", || handled(&second) == 2);
    assert_eq!(second.counters().skipped, 0);
}

/// A forked child has no events, takes none of its parent's, and harms none by what it drops.
#[test]
fn forks() {
    succeeds_in_child("strangers::forks", || {
        for (way, domain) in domains() {
            let bell = domain.on(Event::doorbell(), "on").unwrap();
            let doorbell = bell.doorbell().unwrap();
            let attached = domain.attach().unwrap();
            let mut kept = Some((bell, attached));
            let status = fork(|| {
                for _ in 0..50 {
                    doorbell.ring(1).unwrap();
                }
                let (bell, attached) = kept.take().unwrap();
                let refused = domain.on(Event::doorbell(), "on").unwrap_err();
                assert!(matches!(refused, EventError::Forked));
                let before = bell.counters();
                drop(attached);
                drop(bell);
                // One of the child's own.
                let own = builder().ways(Ways::only(way)).build().unwrap();
                let tick = own
                    .on(Event::every(Duration::from_micros(100)), "on")
                    .unwrap();
                let client = own.attach().unwrap();
                until("the child's", || handled(&tick) > 3);
                drop((tick, client));
                before.by_current == 0 || way == Way::Current
            });
            assert_eq!(status, 0, "{way:?}");
            let (bell, _attached) = kept.unwrap();
            until("all", || number(&domain, "total_of") == 50);
            doorbell.ring(1).unwrap();
            until("one more", || number(&domain, "total_of") == 51);
            assert_eq!(bell.counters().skipped, 0);
        }
    });
}
