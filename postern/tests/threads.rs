//! Many threads in one domain: sharing, faults that end all, indices that are reused, limits,
//! states.
mod support;
use postern::{CallError, Caller, Domain, FaultKind, Func, Limits};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;
use support::{code, cold};

const SOURCE: &str = "
    .data
    .balign 8
    n: .quad 0
    .text
    next: movl $1,%eax
        lock xaddq %rax,%gs:n(,%eiz,1)
        ret
    locals: PUSH %rdi
        call s
        POP %rax
        ret
    spin: jmp spin
    trap: ud2
";

fn domain(limits: Limits, service: impl Fn(&Caller<'_>) + Send + Sync + 'static) -> Domain {
    let image = code(
        &[("s", "v()")],
        &[
            ("next", "l()"),
            ("locals", "l(l)"),
            ("spin", "v()"),
            ("trap", "v()"),
        ],
        SOURCE,
    )
    .image();
    cold(&image)
        .limits(limits)
        .service("s", service)
        .build()
        .unwrap()
}

#[test]
fn sixty_four_threads_in_one_domain() {
    let d = domain(Limits::default(), |_| {});
    let start = Arc::new(Barrier::new(64));
    let threads: Vec<_> = (0..64i64)
        .map(|t| {
            let (d, start) = (d.clone(), start.clone());
            std::thread::spawn(move || {
                let next = d.func::<fn() -> i64>("next").unwrap();
                let locals = d.func::<fn(i64) -> i64>("locals").unwrap();
                start.wait();
                for i in 0..2000 {
                    next.call().unwrap();
                    assert_eq!(locals.call(t << 32 | i).unwrap(), t << 32 | i);
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    assert_eq!(
        d.func::<fn() -> i64>("next").unwrap().call().unwrap(),
        64 * 2000
    );
    assert_eq!(d.counters().calls, 64 * 4000 + 1);
}

#[test]
fn one_fault_ends_all_and_reset_opens_again() {
    let mut limits = Limits::default();
    limits.deadline = None;
    let d = domain(limits, |_| {});
    for round in 0..10 {
        let calls = d.counters().calls;
        let threads: Vec<_> = (0..12)
            .map(|_| {
                let spin = d.func::<fn()>("spin").unwrap();
                std::thread::spawn(move || spin.call().unwrap_err())
            })
            .collect();
        if round % 2 == 0 {
            while d.counters().calls == calls {
                std::thread::yield_now();
            }
            assert!(d.reset().is_err(), "threads are inside");
        }
        let e = d.func::<fn()>("trap").unwrap().call().unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::Trap);
        for t in threads {
            match t.join().unwrap() {
                CallError::Fault(f) => assert_eq!(f.kind, FaultKind::AnotherThread),
                CallError::Poisoned | CallError::Busy => {}
                other => panic!("{other}"),
            }
        }
        assert!(d.is_poisoned());
        d.reset().unwrap();
        assert_eq!(d.func::<fn() -> i64>("next").unwrap().call().unwrap(), 0);
    }
}

/// Thread after thread, each with one call: indices and stacks are reused, and no call is taken for
/// the one before.
#[test]
fn a_thread_for_each_call() {
    // Alone, because mappings are counted.
    support::succeeds_in_child("a_thread_for_each_call", || {
        let mut limits = Limits::default();
        limits.threads = 4;
        limits.deadline = Some(Duration::from_secs(1));
        let d = domain(limits, |_| std::thread::sleep(Duration::from_millis(2)));
        let before = support::mappings();
        for i in 0..600 {
            let locals = d.func::<fn(i64) -> i64>("locals").unwrap();
            std::thread::spawn(move || assert_eq!(locals.call(i).unwrap(), i))
                .join()
                .unwrap();
        }
        // The host's own allocator may have made a few; 600 threads that left something behind
        // would show.
        assert!(
            support::mappings() < before + 200,
            "{} mappings, before {}",
            support::mappings(),
            before
        );
        assert_eq!(d.counters().calls, 600);
    });
}

#[test]
fn limits_of_threads() {
    for (most, tried) in [(1, 3), (3, 6)] {
        let mut limits = Limits::default();
        limits.threads = most;
        let gate = Arc::new(Barrier::new(tried));
        let d = domain(limits, |_| {});
        let results: Vec<_> = (0..tried)
            .map(|_| {
                let (next, gate) = (d.func::<fn() -> i64>("next").unwrap(), gate.clone());
                std::thread::spawn(move || {
                    let r = next.call();
                    gate.wait();
                    r
                })
            })
            .collect();
        let refused = results
            .into_iter()
            .map(|t| t.join().unwrap())
            .filter(|r| matches!(r, Err(CallError::TooManyThreads)))
            .count();
        assert_eq!(refused, tried - most as usize);
    }
}

#[test]
fn close_waits_and_is_for_good() {
    let mut limits = Limits::default();
    limits.deadline = None;
    let d = domain(limits, |_| {});
    let left = Arc::new(AtomicU64::new(0));
    let started = Arc::new(Barrier::new(9));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (spin, left, started) = (
                d.func::<fn()>("spin").unwrap(),
                left.clone(),
                started.clone(),
            );
            std::thread::spawn(move || {
                started.wait();
                let e = spin.call().unwrap_err();
                left.fetch_add(1, SeqCst);
                e
            })
        })
        .collect();
    started.wait();
    std::thread::sleep(Duration::from_millis(3));
    d.close();
    for t in threads {
        let e = t.join().unwrap();
        assert!(
            matches!(&e, CallError::Closed) || e.fault().unwrap().kind == FaultKind::AnotherThread,
            "{e}"
        );
    }
    assert!(d.reset().is_err());
    assert!(matches!(
        d.func::<fn()>("spin").unwrap().call(),
        Err(CallError::Closed)
    ));
}

/// Closing and resetting at once: whoever comes first, the domain ends closed.
#[test]
fn close_wins_over_reset() {
    for _ in 0..200 {
        let d = domain(Limits::default(), |_| {});
        let other = d.clone();
        let t = std::thread::spawn(move || {
            for _ in 0..5 {
                let _ = other.reset();
            }
        });
        d.close();
        t.join().unwrap();
        assert!(matches!(
            d.func::<fn() -> i64>("next").unwrap().call(),
            Err(CallError::Closed)
        ));
    }
}

/// Resets race with calls: a call works, is refused as busy, or the reset is.
#[test]
fn resets_race_with_calls() {
    let d = domain(Limits::default(), |_| {});
    let stop = Arc::new(AtomicBool::new(false));
    let begun = Arc::new(std::sync::Barrier::new(4));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (next, stop) = (d.func::<fn() -> i64>("next").unwrap(), stop.clone());
            let begun = begun.clone();
            std::thread::spawn(move || {
                let mut done = u64::from(next.call().is_ok());
                begun.wait();
                while !stop.load(SeqCst) {
                    match next.call() {
                        Ok(_) => done += 1,
                        Err(CallError::Busy) => {}
                        Err(e) => panic!("{e}"),
                    }
                }
                done
            })
        })
        .collect();
    begun.wait();
    for _ in 0..2000 {
        let _ = d.reset();
    }
    stop.store(true, SeqCst);
    let done: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    assert!(done > 0);
    d.reset().unwrap();
    assert_eq!(d.func::<fn() -> i64>("next").unwrap().call().unwrap(), 0);
}

/// Destructors of thread-local values call extensions, after and before the thread has left the
/// registry.
#[test]
fn thread_local_destructors_call_extensions() {
    struct Last(Func<fn() -> i64>, Arc<Mutex<Vec<i64>>>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0.call().unwrap());
            let trap = self.0.domain().func::<fn()>("trap").unwrap();
            assert!(trap.call().unwrap_err().fault().is_some());
            self.0.domain().reset().unwrap();
        }
    }
    thread_local!(static LAST: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) });
    let seen: Arc<Mutex<Vec<i64>>> = Arc::default();
    let d = domain(Limits::default(), |_| {});
    for first in [true, false] {
        let (next, s) = (d.func::<fn() -> i64>("next").unwrap(), seen.clone());
        std::thread::spawn(move || {
            if first {
                next.call().unwrap();
            }
            LAST.set(Some(Last(next.clone(), s)));
            if !first {
                next.call().unwrap();
            }
        })
        .join()
        .unwrap();
    }
    assert_eq!(*seen.lock().unwrap(), [1, 1]);
}
