//! Fork: domains work in both processes, in whatever the parent's threads were engaged.
mod support;
use postern::{CallError, Caller, Domain, FaultKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use support::{code, cold, fork, succeeds_in_child};

fn domain(service: impl Fn(&Caller<'_>) -> i32 + Send + Sync + 'static) -> Domain {
    let image = code(
        &[("s", "i()")],
        &[
            ("next", "i()"),
            ("spin", "v()"),
            ("serve", "i()"),
            ("trap", "v()"),
        ],
        ".data
         n: .long 0
         .text
         next: incl %gs:n(,%eiz,1)
            movl %gs:n(,%eiz,1),%eax
            ret
         spin: jmp spin
         trap: ud2
         serve: call s
            ret",
    )
    .image();
    cold(&image)
        .deadline(Some(Duration::from_millis(50)))
        .service("s", service)
        .build()
        .unwrap()
}

fn next(d: &Domain) -> i32 {
    d.func::<fn() -> i32>("next").unwrap().call().unwrap()
}

fn kind(d: &Domain, name: &str) -> FaultKind {
    let e = d.func_unchecked::<fn()>(name).unwrap().call().unwrap_err();
    e.fault().unwrap_or_else(|| panic!("{e}")).kind
}

#[test]
fn both_processes_go_on() {
    let d = domain(|_| 7);
    assert_eq!(next(&d), 1);
    for _ in 0..4 {
        let status = fork(|| {
            assert_eq!(next(&d), 2);
            assert_eq!(next(&d), 3);
            // The watchdog is back, faults are values, threads can be made.
            assert_eq!(kind(&d, "spin"), FaultKind::Deadline);
            d.reset().unwrap();
            assert_eq!(kind(&d, "trap"), FaultKind::Trap);
            d.reset().unwrap();
            let other = d.clone();
            std::thread::spawn(move || assert_eq!(next(&other), 1))
                .join()
                .unwrap();
            assert_eq!(
                domain(|_| 8)
                    .func::<fn() -> i32>("serve")
                    .unwrap()
                    .call()
                    .unwrap(),
                8
            );
            // Grandchildren, too.
            fork(|| kind(&d, "spin") == FaultKind::Deadline) == 0
        });
        assert_eq!(status, 0);
        assert!(!d.is_poisoned());
    }
    assert_eq!(next(&d), 2, "what the children wrote is theirs");
}

#[test]
fn domains_that_others_were_inside_are_poisoned_in_the_child() {
    succeeds_in_child(
        "domains_that_others_were_inside_are_poisoned_in_the_child",
        || {
            let (inside, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
            let (i, l) = (inside.clone(), leave.clone());
            let waiting = domain(move |_| {
                i.wait();
                l.wait();
                5
            });
            let quiet = domain(|_| 6);
            next(&quiet);
            let call = std::thread::spawn({
                let d = waiting.clone();
                move || d.func::<fn() -> i32>("serve").unwrap().call()
            });
            inside.wait();
            let status = fork(|| {
                assert!(waiting.is_poisoned());
                assert!(matches!(
                    waiting.func::<fn() -> i32>("next").unwrap().call(),
                    Err(CallError::Poisoned)
                ));
                waiting.reset().unwrap();
                assert_eq!(next(&waiting), 1);
                let d = waiting.clone();
                std::thread::spawn(move || assert_eq!(next(&d), 2))
                    .join()
                    .unwrap();
                waiting.reset().unwrap();
                next(&quiet) == 2
            });
            assert_eq!(status, 0);
            assert!(!waiting.is_poisoned());
            leave.wait();
            // The deadline may have passed meanwhile; the call ends one way or the other, in the
            // parent only.
            let _ = call.join().unwrap();
            assert_eq!(next(&quiet), 2);
        },
    );
}

#[test]
fn fork_inside_a_service() {
    // SAFETY: the child returns through the gate, and leaves below.
    let d = domain(|_| unsafe { libc::fork() });
    let result = d.func::<fn() -> i32>("serve").unwrap().call();
    if matches!(result, Ok(0)) {
        let good = catch_unwind(AssertUnwindSafe(|| {
            assert_eq!(next(&d), 1);
            assert_eq!(kind(&d, "spin"), FaultKind::Deadline);
            d.reset().unwrap();
            assert_eq!(next(&d), 1);
        }));
        // SAFETY: leaves the child.
        unsafe { libc::_exit(if good.is_ok() { 0 } else { 3 }) };
    }
    let child = result.unwrap();
    let mut status = 0;
    // SAFETY: waits for the child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(next(&d), 1);
}

/// Forks at random moments of what other threads do: no table or lock is left half done in the
/// child.
#[test]
fn fork_while_others_make_and_drop_domains() {
    succeeds_in_child("fork_while_others_make_and_drop_domains", || {
        let stop = Arc::new(AtomicBool::new(false));
        let shared = domain(|_| 1);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (stop, shared) = (stop.clone(), shared.clone());
                std::thread::spawn(move || {
                    while !stop.load(SeqCst) {
                        let d = cold(&shared.image())
                            .service("s", |_: &Caller<'_>| 2)
                            .build()
                            .unwrap();
                        next(&d);
                        d.function_pointer("next", &"i()".parse().unwrap()).unwrap();
                        let _ = shared.func::<fn() -> i32>("next").unwrap().call();
                        let other = d.clone();
                        std::thread::spawn(move || next(&other)).join().unwrap();
                        let _ = shared.reset();
                    }
                })
            })
            .collect();
        for _ in 0..150 {
            let status = fork(|| {
                // A child that hangs is ended by this alarm, and the parent sees it.
                // SAFETY: sets an alarm.
                unsafe { libc::alarm(20) };
                let d = cold(&shared.image())
                    .service("s", |_: &Caller<'_>| 3)
                    .build()
                    .unwrap();
                assert_eq!(next(&d), 1);
                assert_eq!(d.func::<fn() -> i32>("serve").unwrap().call().unwrap(), 3);
                d.function_pointer("next", &"i()".parse().unwrap()).unwrap();
                shared.reset().unwrap();
                assert_eq!(next(&shared), 1);
                drop(d);
                true
            });
            assert_eq!(status, 0);
        }
        stop.store(true, SeqCst);
        for t in threads {
            t.join().unwrap();
        }
    });
}
