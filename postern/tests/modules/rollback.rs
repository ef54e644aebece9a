//! New versions that fault.

use crate::guest::{configure, module, trap, version, which};
use postern::{CallError, FaultKind, Module, ModuleEvent, RestartPolicy};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

#[test]
fn a_new_version_that_faults_is_rolled_back() {
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let e = events.clone();
    let m = Module::builder(&version(1), configure)
        .on_event(move |event| {
            e.lock().unwrap().push(match event {
                ModuleEvent::RolledBack { from, to, fault } => {
                    let kind = fault.as_ref().map_or("asked", |f| f.kind.name());
                    format!("{from} back to {to}: {kind}")
                }
                ModuleEvent::Replaced { version } => format!("replaced by {version}"),
                ModuleEvent::Confirmed { version } => format!("{version} stays"),
                ModuleEvent::Drained { version } => format!("{version} drained"),
                other => format!("{other:?}"),
            });
        })
        .build()
        .unwrap();
    let count = m.func::<fn() -> i64>("count").unwrap();
    assert_eq!((count.call().unwrap(), count.call().unwrap()), (0, 1));
    // In its third call.
    m.replacement(&version(2)).probation(3).apply().unwrap();
    assert_eq!((which(&m), count.call().unwrap()), (2, 0));
    assert_eq!(m.counters().on_probation, 1);
    trap(&m);
    assert_eq!((which(&m), count.call().unwrap()), (1, 2), "as it was left");
    // After its third call it stays, fault or not.
    m.replacement(&version(3)).probation(3).apply().unwrap();
    for _ in 0..3 {
        assert_eq!(which(&m), 3);
    }
    assert_eq!(m.counters().version, 3);
    trap(&m);
    assert!(matches!(count.call(), Err(CallError::Poisoned)));
    m.domain().reset().unwrap();
    // The host decides, too.
    m.replace(&version(4)).unwrap();
    assert!(m.roll_back() && !m.roll_back());
    assert_eq!(which(&m), 3);
    m.replace(&version(5)).unwrap();
    m.confirm();
    assert!(!m.roll_back());
    // A version on probation that is replaced is the one that comes back.
    m.replace(&version(6)).unwrap();
    m.replace(&version(7)).unwrap();
    trap(&m);
    assert_eq!(which(&m), 6);
    let c = m.counters();
    assert_eq!((c.version, c.rolled_back, c.draining), (6, 3, 0));
    drop(m);
    assert_eq!(
        *events.lock().unwrap(),
        [
            "replaced by 2",
            "2 back to 1: trap",
            "2 drained",
            "replaced by 3",
            "3 stays",
            "1 drained",
            "replaced by 4",
            "4 back to 3: asked",
            "replaced by 5",
            "4 drained",
            "5 stays",
            "3 drained",
            "replaced by 6",
            "replaced by 7",
            "5 drained",
            "7 back to 6: trap",
            "7 drained",
        ]
    );
}

/// Threads call while a version comes that faults now and then: whoever does not make it fault
/// never notices.
#[test]
fn rollbacks_under_load() {
    let m = module();
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..3)
        .map(|i| {
            let (m, stop) = (m.clone(), stop.clone());
            let which = m.func::<fn() -> i32>("which").unwrap();
            let pointer = m
                .function_pointer("which", &"i()".parse().unwrap())
                .unwrap();
            // SAFETY: an export of this type.
            let c: extern "C" fn() -> i32 = unsafe { std::mem::transmute(pointer) };
            std::thread::spawn(move || {
                let mut calls = 0u64;
                while !stop.load(SeqCst) {
                    calls += 1;
                    if i == 0 {
                        postern::clear_last_error();
                        // Thrown out by the fault of the other thread: the only way not to return.
                        if c() == 0 {
                            let error = postern::last_error();
                            let kind = error.as_ref().and_then(|e| e.fault()).map(|f| f.kind);
                            assert_eq!(kind, Some(FaultKind::AnotherThread), "{error:?}");
                        }
                        continue;
                    }
                    match which.call() {
                        Ok(1 | 2) => {}
                        Err(CallError::Fault(f)) if f.kind == FaultKind::AnotherThread => {}
                        other => panic!("{other:?}"),
                    }
                }
                calls
            })
        })
        .collect();
    let two = version(2);
    let mut rolled_back = 0;
    for _ in 0..100 {
        m.replacement(&two).probation(1_000_000).apply().unwrap();
        trap(&m);
        rolled_back += 1;
        assert_eq!(m.counters().rolled_back, rolled_back);
    }
    stop.store(true, SeqCst);
    let calls: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    assert!(calls > 100);
    assert_eq!((which(&m), m.counters().draining), (1, 0));
}

/// The restart policy of the domain still counts, once a version stays.
#[test]
fn modules_restart() {
    let m = Module::new(&version(1), |b| {
        configure(b).restart(RestartPolicy::Immediate)
    })
    .unwrap();
    for number in [1, 2] {
        if number == 2 {
            m.replacement(&version(2)).probation(0).apply().unwrap();
        }
        trap(&m);
        assert_eq!(which(&m), number);
        assert_eq!(m.domain().counters().restarts, 1);
    }
}
