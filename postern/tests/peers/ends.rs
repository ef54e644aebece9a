//! Calls that do not return: faults, deadlines, interrupts, domains that go.

use crate::guest::{ask, callee, caller, calling, error, plain, serving};
use crate::support::{cold, watched};
use postern::{Caller, Domain, FaultKind, PeerError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

#[test]
fn every_fault_of_a_peer_is_a_value() {
    let kinds: Arc<Mutex<Vec<FaultKind>>> = Arc::default();
    let seen = kinds.clone();
    let b = cold(&callee())
        .deadline(Some(Duration::from_millis(20)))
        .service("s", |c: &Caller<'_>, _: i64| {
            c.abort("no");
            1i64
        })
        .on_fault(move |f| seen.lock().unwrap().push(f.kind))
        .build()
        .unwrap();
    let a = cold(&caller())
        .deadline(None)
        .peer_open("peer")
        .build()
        .unwrap();
    assert_eq!(ask(&a, 1).unwrap(), error(PeerError::Unbound));
    for (name, kind) in [
        ("null", FaultKind::NullPointer),
        ("trap", FaultKind::Trap),
        ("recurse", FaultKind::ControlStackOverflow),
        ("overflow", FaultKind::DataStackOverflow),
        ("jump", FaultKind::BadJump),
        ("divide", FaultKind::Arithmetic),
        ("spin", FaultKind::Deadline),
        ("service", FaultKind::Aborted),
    ] {
        a.bind_peer("peer", &b.peer_export(name).unwrap()).unwrap();
        let expected = match kind {
            FaultKind::Deadline => PeerError::Time,
            _ => PeerError::Fault,
        };
        for _ in 0..3 {
            assert_eq!(ask(&a, 12).unwrap(), error(expected), "{name}");
            assert_eq!(kinds.lock().unwrap().pop(), Some(kind));
            assert!(b.is_poisoned() && !a.is_poisoned());
            // From now on it is refused, in the same call and in others.
            let refused = error(PeerError::Poisoned);
            assert_eq!(ask(&a, 12).unwrap(), refused, "{name}");
            assert_eq!(
                a.func::<fn(i64) -> i64>("twice").unwrap().call(1).unwrap(),
                0
            );
            b.reset().unwrap();
        }
    }
    a.bind_peer("peer", &b.peer_export("add").unwrap()).unwrap();
    assert_eq!(ask(&a, 12).unwrap(), 13);
    a.bind_peer("peer", &b.peer_export("leave").unwrap())
        .unwrap();
    assert_eq!(ask(&a, 12).unwrap(), error(PeerError::Exited));
    assert!(!b.is_poisoned());
    // A success forgets the failure before it.
    a.bind_peer("peer", &b.peer_export("add").unwrap()).unwrap();
    assert_eq!(ask(&a, -1).unwrap(), 0);
    assert_eq!(a.counters().faults.len(), 0);
    assert_eq!(postern::nesting(), 0);
}

/// A deadline of the caller's passes while the peer works: it acts when the peer has returned, and
/// the peer is not harmed.
#[test]
fn the_callers_deadline_waits_for_the_peer() {
    let entered: Arc<AtomicU32> = Arc::default();
    let n = entered.clone();
    // The peer's service returns only after the watchdog has asked for the end of the caller's
    // call.
    let b = cold(&callee())
        .deadline(None)
        .service("s", move |caller: &Caller<'_>, x: i64| {
            watched(&caller.domain(), Duration::from_millis(5));
            n.fetch_add(1, SeqCst);
            x
        })
        .build()
        .unwrap();
    let a = cold(&caller())
        .deadline(Some(Duration::from_millis(5)))
        .peer("peer", &b.peer_export("service").unwrap())
        .build()
        .unwrap();
    for _ in 0..3 {
        let e = ask(&a, 5).unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline);
        assert!(a.is_poisoned() && !b.is_poisoned());
        a.reset().unwrap();
    }
    assert_eq!(entered.load(SeqCst), 3);
    assert_eq!(b.counters().faults.len(), 0);
}

/// The export says how long: a call that takes longer ends, and its end is the peer's fault, not
/// the caller's.
#[test]
fn the_exports_limit_bounds_the_wait() {
    let b = cold(&callee())
        .deadline(None)
        .service("s", |_: &Caller<'_>, x: i64| x)
        .build()
        .unwrap();
    let export = b.peer_export("spin").unwrap();
    let a = cold(&caller())
        .deadline(None)
        .peer("peer", &export.time(Duration::from_millis(5)))
        .build()
        .unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&a, 5).unwrap(), error(PeerError::Time));
        assert!(b.is_poisoned() && !a.is_poisoned());
        b.reset().unwrap();
    }
    // The limit is that call's only: the host's own calls have none, and are ended otherwise.
    let spin = b.func::<fn(i64) -> i64>("spin").unwrap();
    let call = std::thread::spawn(move || spin.call(1));
    std::thread::sleep(Duration::from_millis(40));
    assert!(!call.is_finished());
    while !call.is_finished() {
        b.interrupt();
        std::thread::yield_now();
    }
    let e = call.join().unwrap().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Interrupted);
}

/// Interrupts reach the domain that they are meant for, and only that.
#[test]
fn interrupts_while_a_peer_runs() {
    let (enter, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (e, l) = (enter.clone(), leave.clone());
    let b = serving(move |_, x| {
        e.wait();
        l.wait();
        x
    });
    let a = calling(&b.peer_export("service").unwrap());
    let (mine, theirs) = (a.clone(), b.clone());
    let call = std::thread::spawn(move || {
        let caller = ask(&mine, 3);
        let callee = ask(&mine, 3);
        (caller, callee, ask(&mine, 3))
    });
    // The caller: its peer finishes, then it ends.
    enter.wait();
    a.interrupt();
    leave.wait();
    // The callee: its call ends, the caller gets a value.
    enter.wait();
    theirs.interrupt();
    leave.wait();
    enter.wait();
    leave.wait();
    let (caller, callee, nobody) = call.join().unwrap();
    assert_eq!(
        caller.unwrap_err().fault().unwrap().kind,
        FaultKind::Interrupted
    );
    assert_eq!(callee.unwrap(), error(PeerError::Interrupted));
    assert_eq!(nobody.unwrap(), 3);
    assert!(!a.is_poisoned() && !b.is_poisoned());
}

/// Reset waits for nobody who waits; close and drop end the call, and the caller gets a value.
#[test]
fn reset_close_and_drop_while_the_caller_waits() {
    let gates = || (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    for what in ["reset", "close", "drop", "caller"] {
        let (enter, leave) = gates();
        let (e, l) = (enter.clone(), leave.clone());
        let b = serving(move |c, x| {
            e.wait();
            l.wait();
            if x == 4 {
                // Once the handle is gone, this ends the service.
                loop {
                    let _ = c.domain();
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            x
        });
        let a = cold(&caller()).peer_open("peer").build().unwrap();
        a.bind_peer("peer", &b.peer_export("service").unwrap())
            .unwrap();
        let mine = a.clone();
        let argument = if what == "drop" { 4 } else { 3 };
        let call = std::thread::spawn(move || ask(&mine, argument));
        enter.wait();
        assert!(a.reset().is_err() && b.reset().is_err());
        let result = match what {
            "reset" => {
                leave.wait();
                assert_eq!(call.join().unwrap().unwrap(), 3);
                b.reset().unwrap();
                a.reset().unwrap();
                continue;
            }
            "close" => {
                let same = b.clone();
                let closing = std::thread::spawn(move || same.close());
                while !b.is_closed() {
                    std::thread::yield_now();
                }
                // Its call has been asked to end.
                watched(&b, Duration::ZERO);
                leave.wait();
                closing.join().unwrap();
                call.join().unwrap()
            }
            "drop" => {
                let dropping = std::thread::spawn(move || drop(b));
                leave.wait();
                dropping.join().unwrap();
                call.join().unwrap()
            }
            _ => {
                let same = a.clone();
                let closing = std::thread::spawn(move || same.close());
                while !a.is_closed() {
                    std::thread::yield_now();
                }
                leave.wait();
                closing.join().unwrap();
                let e = call.join().unwrap().unwrap_err();
                assert_eq!(e.fault().unwrap().kind, FaultKind::AnotherThread);
                assert!(!b.is_poisoned());
                continue;
            }
        };
        let value = result.unwrap();
        assert!(
            [error(PeerError::Poisoned), error(PeerError::Closed)].contains(&value),
            "{what}: {value}"
        );
        assert!(!a.is_poisoned());
        assert_eq!(ask(&a, 3).unwrap(), error(PeerError::Closed));
    }
}

/// A domain in the middle of a chain is dropped by a service at its end, and its place is taken by
/// another.
#[test]
fn a_domain_that_waits_in_the_chain_is_dropped() {
    let middle: Arc<Mutex<Option<Domain>>> = Arc::default();
    let m = middle.clone();
    let made: Arc<Mutex<Vec<Domain>>> = Arc::default();
    let keep = made.clone();
    let c = serving(move |_, x| {
        drop(m.lock().unwrap().take());
        for _ in 0..3 {
            keep.lock().unwrap().push(plain());
        }
        x
    });
    for direct in [true, false] {
        let (first, second) = (
            cold(&caller()).peer_open("peer").build().unwrap(),
            calling(&c.peer_export("service").unwrap()),
        );
        first
            .bind_peer("peer", &second.peer_export("raw").unwrap())
            .unwrap();
        *middle.lock().unwrap() = Some(second);
        let value = ask(&first, 9).unwrap();
        let ended = [error(PeerError::Poisoned), error(PeerError::Closed)];
        assert!(ended.contains(&value), "{value} {direct}");
        assert!(!first.is_poisoned() && !c.is_poisoned());
        made.lock().unwrap().clear();
    }
}

/// A panic of a service of the peer's is the host's own affair: it goes around both.
#[test]
fn a_panic_in_the_peers_service_goes_around_both() {
    let b = serving(|_, x| if x < 0 { panic!("negative {x}") } else { x });
    let a = calling(&b.peer_export("service").unwrap());
    for x in [-5, 7, -9, 11] {
        match catch_unwind(AssertUnwindSafe(|| ask(&a, x))) {
            Ok(r) => assert_eq!(r.unwrap(), x),
            Err(p) => assert_eq!(*p.downcast::<String>().unwrap(), format!("negative {x}")),
        }
        assert_eq!(postern::nesting(), 0);
    }
    assert!(!a.is_poisoned() && !b.is_poisoned());
}

/// A handler of the host's for faults may call extensions while the caller waits.
#[test]
fn the_peers_fault_handler_may_call_extensions() {
    let other = plain();
    let add = other.func::<fn(i64) -> i64>("add").unwrap();
    let seen: Arc<AtomicU32> = Arc::default();
    let n = seen.clone();
    let b = cold(&callee())
        .service("s", |_: &Caller<'_>, x: i64| x)
        .on_fault(move |_| {
            n.fetch_add(add.call(41).unwrap() as u32, SeqCst);
        })
        .build()
        .unwrap();
    let a = calling(&b.peer_export("trap").unwrap());
    for round in 1..4 {
        assert_eq!(ask(&a, 1).unwrap(), error(PeerError::Fault));
        assert_eq!(seen.load(SeqCst), 42 * round);
        b.reset().unwrap();
    }
}
