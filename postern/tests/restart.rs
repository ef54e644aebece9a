//! Restart policies: when a domain begins anew after a fault, and who notices. Time is the test's
//! own.
mod support;
use postern::{BackOff, CallError, Caller, Domain, DomainBuilder, FaultKind, RestartPolicy};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use support::{code, cold, fork};

fn builder(service: impl Fn(&Caller<'_>) -> i32 + Send + Sync + 'static) -> DomainBuilder {
    let image = code(
        &[("s", "i()")],
        &[
            ("next", "i()"),
            ("trap", "v()"),
            ("spin", "v()"),
            ("serve", "i()"),
        ],
        ".data
         n: .long 0
         .text
         next: movl $1,%eax
            lock xaddl %eax,%gs:n(,%eiz,1)
            ret
         trap: ud2
         spin: jmp spin
         serve: call s
            ret",
    )
    .image();
    cold(&image).service("s", service)
}

fn next(d: &Domain) -> Result<i32, CallError> {
    d.func::<fn() -> i32>("next").unwrap().call()
}

fn trap(d: &Domain) {
    let e = d.func::<fn()>("trap").unwrap().call().unwrap_err();
    assert!(e.fault().is_some(), "{e}");
}

#[test]
fn never_is_the_default() {
    let d = builder(|_| 0).build().unwrap();
    trap(&d);
    for _ in 0..3 {
        assert!(matches!(next(&d), Err(CallError::Poisoned)));
    }
    assert_eq!(d.counters().restarts, 0);
    d.reset().unwrap();
    assert_eq!(next(&d).unwrap(), 0);
}

#[test]
fn immediate_begins_anew_at_the_next_call() {
    let d = builder(|_| 0)
        .restart(RestartPolicy::Immediate)
        .build()
        .unwrap();
    for round in 1..=5 {
        assert_eq!((next(&d).unwrap(), next(&d).unwrap()), (0, 1));
        trap(&d);
        assert!(d.is_poisoned(), "until somebody calls");
        assert_eq!(next(&d).unwrap(), 0);
        d.reset().unwrap();
        assert_eq!(d.counters().restarts, round);
    }
    // C function pointers, too: they only see a result.
    let pointer = d.function_pointer("next", &"i()".parse().unwrap()).unwrap();
    // SAFETY: an export of this type.
    let next: extern "C" fn() -> i32 = unsafe { std::mem::transmute(pointer) };
    assert_eq!((next(), next()), (0, 1));
    trap(&d);
    assert_eq!((next(), next()), (0, 1));
}

#[test]
fn back_off_rests_longer_and_gives_up() {
    let now = Arc::new(AtomicU64::new(5_000_000));
    let clock = now.clone();
    let ms = Duration::from_millis;
    let back_off = BackOff::new(ms(10), ms(100)).factor(4).give_up_after(4);
    let d = builder(|_| 0)
        .restart(RestartPolicy::BackOff(back_off))
        .clock(move || Duration::from_millis(clock.load(SeqCst)))
        .build()
        .unwrap();
    for rest in [10, 40, 100] {
        trap(&d);
        for left in [rest, 1] {
            match next(&d) {
                Err(CallError::Resting(l)) => assert_eq!(l, Duration::from_millis(left)),
                other => panic!("{other:?}"),
            }
            now.fetch_add(left.max(2) - 1, SeqCst);
            if left == 1 {
                break;
            }
        }
        assert_eq!(next(&d).unwrap(), 0);
    }
    trap(&d);
    now.fetch_add(1 << 40, SeqCst);
    assert!(matches!(next(&d), Err(CallError::Poisoned)), "given up");
    d.reset().unwrap();
    assert_eq!(next(&d).unwrap(), 0);
    trap(&d);
    let e = next(&d).unwrap_err();
    assert!(matches!(e, CallError::Resting(l) if l == Duration::from_millis(10)));
    assert!(e.to_string().contains("10ms"), "{e}");
    assert_eq!(d.counters().restarts, 3);
}

/// One fault ends all that are inside; then one restart serves all that call.
#[test]
fn threads_that_race_restart_once() {
    let d = builder(|_| 0)
        .restart(RestartPolicy::Immediate)
        .deadline(None)
        .build()
        .unwrap();
    for round in 1..=20u64 {
        let calls = d.counters().calls;
        let begin = Arc::new(Barrier::new(4));
        let faulted = Arc::new(AtomicBool::new(false));
        let spinners: Vec<_> = (0..3)
            .map(|_| {
                let spin = d.func::<fn()>("spin").unwrap();
                std::thread::spawn(move || spin.call().unwrap_err())
            })
            .collect();
        while d.counters().calls < calls + 3 {
            std::thread::yield_now();
        }
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let (d, begin, faulted) = (d.clone(), begin.clone(), faulted.clone());
                std::thread::spawn(move || {
                    begin.wait();
                    while !faulted.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                    loop {
                        match next(&d) {
                            Err(CallError::Busy) => {}
                            other => return other.unwrap(),
                        }
                    }
                })
            })
            .collect();
        begin.wait();
        trap(&d);
        faulted.store(true, SeqCst);
        for s in spinners {
            let e = s.join().unwrap();
            assert_eq!(e.fault().unwrap().kind, FaultKind::AnotherThread);
        }
        let mut seen: Vec<i32> = callers.into_iter().map(|c| c.join().unwrap()).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2], "one image, begun once");
        assert_eq!(d.counters().restarts, round);
        trap(&d);
        d.reset().unwrap();
    }
}

/// A service of the faulted domain's own call cannot restart what it is inside of.
#[test]
fn nobody_restarts_a_domain_from_inside() {
    let (to, from) = std::sync::mpsc::channel::<Domain>();
    let from = std::sync::Mutex::new(from);
    let d = builder(move |_| {
        let d = from.lock().unwrap().recv().unwrap();
        trap(&d);
        let refused = matches!(next(&d), Err(CallError::Poisoned));
        assert!(d.reset().is_err());
        i32::from(refused)
    })
    .restart(RestartPolicy::Immediate)
    .build()
    .unwrap();
    to.send(d.clone()).unwrap();
    let e = d.func::<fn() -> i32>("serve").unwrap().call().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::AnotherThread);
    assert_eq!(next(&d).unwrap(), 0);
    assert_eq!(d.counters().restarts, 1);
}

/// Constructors run before anybody else gets in, and one that fails leaves the domain closed.
#[test]
fn constructors_come_first() {
    let image = code(
        &[("s", "i()")],
        &[
            ("__postern_init", "v()"),
            ("read", "i()"),
            ("trap", "v()"),
            ("set", "v(i)"),
        ],
        ".data
         n: .long 0
         .text
         __postern_init: call s
            testl %eax,%eax
            jnz trap
            movl $7,%gs:n(,%eiz,1)
            ret
         read: movl %gs:n(,%eiz,1),%eax
            ret
         set: movl %edi,%gs:n(,%eiz,1)
            ret
         trap: ud2",
    )
    .image();
    let fail = Arc::new(AtomicBool::new(false));
    let slow = Arc::new(AtomicBool::new(false));
    let (f, s) = (fail.clone(), slow.clone());
    let d = cold(&image)
        .service("s", move |caller: &Caller<'_>| -> i32 {
            if s.load(SeqCst) {
                // Calls of the domain's own, from its constructor's service.
                let set = caller.domain().func::<fn(i32)>("set").unwrap();
                set.call(3).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            i32::from(f.load(SeqCst))
        })
        .restart(RestartPolicy::Immediate)
        .build()
        .unwrap();
    slow.store(true, SeqCst);
    let read = |d: &Domain| d.func::<fn() -> i32>("read").unwrap().call();
    for _ in 0..20 {
        trap(&d);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let d = d.clone();
                std::thread::spawn(move || read(&d))
            })
            .collect();
        for t in threads {
            match t.join().unwrap() {
                Ok(n) => assert_eq!(n, 7),
                Err(e) => assert!(matches!(e, CallError::Busy), "{e}"),
            }
        }
    }
    fail.store(true, SeqCst);
    trap(&d);
    assert!(matches!(read(&d), Err(CallError::Poisoned)));
    assert!(d.reset().is_ok() && d.is_poisoned());
    fail.store(false, SeqCst);
    assert_eq!(read(&d).unwrap(), 7);
}

/// A panic of a constructor's service does not get stuck in the gate, and the domain is not left
/// half open.
#[test]
fn panics_of_constructors_services() {
    let image = code(
        &[("s", "i()")],
        &[("__postern_init", "v()"), ("trap", "v()")],
        "__postern_init: call s
            ret
         trap: ud2",
    )
    .image();
    let panics = Arc::new(AtomicBool::new(false));
    let p = panics.clone();
    let d = cold(&image)
        .service("s", move |_: &Caller<'_>| -> i32 {
            if p.load(SeqCst) {
                std::panic::resume_unwind(Box::new("a service's"));
            }
            0
        })
        .restart(RestartPolicy::Immediate)
        .build()
        .unwrap();
    panics.store(true, SeqCst);
    trap(&d);
    let call = d.func::<fn()>("trap").unwrap();
    assert!(matches!(call.call(), Err(CallError::Poisoned)));
    let other = d.clone();
    let reset = std::thread::spawn(move || other.reset());
    assert!(reset.join().is_err(), "reset() goes on with the panic");
    assert!(d.is_poisoned());
    panics.store(false, SeqCst);
    trap(&d);
}

#[test]
fn restarts_in_the_child() {
    let (inside, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (i, l) = (inside.clone(), leave.clone());
    let d = builder(move |_| {
        i.wait();
        l.wait();
        5
    })
    .restart(RestartPolicy::Immediate)
    .deadline(None)
    .build()
    .unwrap();
    next(&d).unwrap();
    let serve = d.func::<fn() -> i32>("serve").unwrap();
    let caller = std::thread::spawn(move || serve.call());
    inside.wait();
    // The thread that was inside does not exist in the child: its domain is poisoned there, and
    // begins anew.
    let status = fork(|| {
        let begun = next(&d).unwrap() == 0 && d.counters().restarts == 1;
        trap(&d);
        begun && next(&d).unwrap() == 0
    });
    assert_eq!(status, 0);
    leave.wait();
    assert_eq!(caller.join().unwrap().unwrap(), 5);
    assert_eq!((next(&d).unwrap(), d.counters().restarts), (1, 0));
}
