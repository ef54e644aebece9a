//! Handlers that wait end: by faults, resets, closes, forks, and the ends of domains and processes.

use super::support::{cold, fork, succeeds_in_child};
use super::{LONG, handlers, number, settled, until, waiting};
use postern::{Caller, CommonMemory, FaultKind};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

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
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let waits = waiting(1, |b| {
        b.on_fault(move |fault| {
            let _ = tell.lock().unwrap().send(fault.kind);
        })
    });
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
        waits.domain.sandbox_threads().ended == 16
    });
    assert_eq!(settled(&waits.domain).skipped, 0);
    assert_eq!(told.recv(), Ok(FaultKind::Aborted));
    // The one in the service, and those that waited, are told alike.
    for _ in 0..17 {
        assert_eq!(told.recv_timeout(LONG), Ok(FaultKind::AnotherThread));
    }
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
        assert_eq!((counters.resumed, counters.ended), (2 * round, 4 * round));
        assert_eq!(counters.skipped, 0);
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
    succeeds_in_child("ends::a_forked_child_has_none_until_it_attaches", || {
        let waits = waiting(1, |b| b);
        let attachment = waits.domain.upcall("keeps").unwrap().attach().unwrap();
        for event in 0..3 {
            attachment.send(event, 0);
        }
        waits.begun.recv_timeout(LONG).unwrap();
        // Else the child may have the lock of what tells that, which nobody there gives back.
        until("it waits", || waits.permits.is_waited_for());
        let status = fork(|| {
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
