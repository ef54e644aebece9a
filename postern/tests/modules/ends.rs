//! Old versions, forks, and what is left.

use crate::guest::{configure, module, trap, version, which};
use crate::support::{self, fork};
use postern::{CallError, Caller, FaultKind, Image, Module, ModuleEvent, Placement, ReplaceError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

#[test]
fn calls_inside_finish_and_the_last_closes_the_old_version() {
    let (inside, leave) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
    let (i, l) = (inside.clone(), leave.clone());
    let wait = Arc::new(AtomicBool::new(true));
    let w = wait.clone();
    let events = Arc::new(AtomicU64::new(0));
    let e = events.clone();
    let m = Module::builder(&version(1), move |builder| {
        let (i, l, w) = (i.clone(), l.clone(), w.clone());
        builder.placement(Placement::Cold).deadline(None).service(
            "s",
            move |_: &Caller<'_>| -> i32 {
                if w.load(SeqCst) {
                    i.wait();
                    l.wait();
                }
                10
            },
        )
    })
    .on_event(move |event| {
        e.fetch_add(
            u64::from(matches!(event, ModuleEvent::Drained { .. })),
            SeqCst,
        );
    })
    .build()
    .unwrap();
    let serve = m.func::<fn() -> i32>("serve").unwrap();
    let callers: Vec<_> = (0..2)
        .map(|_| {
            let serve = serve.clone();
            std::thread::spawn(move || serve.call().unwrap())
        })
        .collect();
    inside.wait();
    wait.store(false, SeqCst);
    let old = m.domain();
    // State cannot be handed over while calls are inside.
    let e = m
        .replacement(&version(2))
        .carry("save", "load", 8)
        .drain(Duration::ZERO)
        .apply()
        .unwrap_err();
    assert!(matches!(e, ReplaceError::Busy(Duration::ZERO)), "{e}");
    let replaced = m
        .replacement(&version(2))
        .probation(0)
        .drain(Duration::ZERO)
        .apply()
        .unwrap();
    assert!(!replaced.drained && !old.is_closed());
    assert_eq!((serve.call().unwrap(), m.counters().draining), (12, 1));
    leave.wait();
    for c in callers {
        assert_eq!(c.join().unwrap(), 11, "it was called in the old version");
    }
    assert!(old.is_closed(), "by the last that left, with no help");
    assert_eq!(events.load(SeqCst), 1);
    assert_eq!(m.counters().draining, 0);
}

#[test]
fn stragglers_can_be_ended() {
    let m = Module::new(&version(1), |b| configure(b).deadline(None)).unwrap();
    let spin = m.func::<fn()>("spin").unwrap();
    let thread = std::thread::spawn(move || spin.call().unwrap_err());
    while m.domain().counters().calls == 0 {
        std::thread::yield_now();
    }
    let replaced = m
        .replacement(&version(2))
        .probation(0)
        .drain(Duration::ZERO)
        .end_stragglers()
        .apply()
        .unwrap();
    assert!(replaced.drained);
    let e = thread.join().unwrap();
    assert_eq!(e.fault().unwrap().kind, FaultKind::AnotherThread);
    assert_eq!(which(&m), 2);
}

#[test]
fn modules_in_the_child() {
    support::succeeds_in_child("ends::modules_in_the_child", || {
        let m = module();
        let count = m.func::<fn() -> i64>("count").unwrap();
        assert_eq!(count.call().unwrap(), 0);
        // While another thread is handing over state, which the child will never see end.
        let (inside, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (n, i, l) = (m.clone(), inside.clone(), leave.clone());
        let replacing = std::thread::spawn(move || {
            n.replacement(&version(2))
                .hand_over(|_, _| {
                    i.wait();
                    l.wait();
                    Ok::<_, String>(())
                })
                .apply()
                .unwrap();
        });
        inside.wait();
        let status = fork(|| {
            // SAFETY: ends a child that hangs.
            unsafe { libc::alarm(30) };
            // The old version was closed for the hand-over, so it is poisoned in the child, and
            // says so.
            assert!(matches!(count.call(), Err(CallError::Poisoned)));
            m.domain().reset().unwrap();
            assert_eq!((count.call().unwrap(), which(&m)), (0, 1));
            m.replace(&version(3)).unwrap();
            assert_eq!((count.call().unwrap(), which(&m)), (0, 3));
            trap(&m);
            assert_eq!((count.call().unwrap(), which(&m)), (1, 1));
            true
        });
        assert_eq!(status, 0);
        leave.wait();
        replacing.join().unwrap();
        assert_eq!((count.call().unwrap(), which(&m)), (0, 2));
        // And on probation.
        let status = fork(|| {
            trap(&m);
            which(&m) == 1
        });
        assert_eq!((status, which(&m)), (0, 2));
    });
}

#[test]
fn nothing_is_left_over() {
    support::succeeds_in_child("ends::nothing_is_left_over", || {
        let images: Vec<Image> = (0..3).map(version).collect();
        let round = || {
            let m = Module::new(&images[0], configure).unwrap();
            let pointer = m
                .function_pointer("which", &"i()".parse().unwrap())
                .unwrap();
            // SAFETY: an export of this type.
            let c: extern "C" fn() -> i32 = unsafe { std::mem::transmute(pointer) };
            for i in 0..30 {
                let image = &images[i % 3];
                m.replacement(image)
                    .probation(i as u32 % 4)
                    .carry("save", "load", 8)
                    .apply()
                    .unwrap();
                assert_eq!((c(), which(&m)), (i as i32 % 3, i as i32 % 3));
                if i % 5 == 0 {
                    trap(&m);
                    let _ = m.domain().reset();
                }
            }
        };
        let count = || {
            (
                support::mappings(),
                support::descriptors(),
                support::threads(),
            )
        };
        round();
        let before = count();
        for _ in 0..10 {
            round();
        }
        let after = count();
        assert!(after.0 <= before.0 + 24, "{before:?} {after:?}");
        assert_eq!((after.1, after.2), (before.1, before.2));
    });
}
