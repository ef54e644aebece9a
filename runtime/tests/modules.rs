//! Hot reload: where calls go while a module's version is replaced, what is handed over, what comes back, and what is left.
mod support;
use postern::{
    CallError, Caller, Domain, DomainBuilder, FaultKind, Image, InstantiateError, Module,
    ModuleEvent, Placement, ReplaceError, RestartPolicy, SymbolError,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;
use support::{code, fork};

/// An image that says its number, counts, and faults when it is told to.
fn version(number: i32) -> Image {
    code(
        &[("s", "i()")],
        &[
            ("which", "i()"),
            ("count", "l()"),
            ("narrow", "b(b)"),
            ("sum", "d(idi)"),
            ("trap", "v()"),
            ("spin", "v()"),
            ("serve", "i()"),
            ("save", "l(pL)"),
            ("load", "i(pL)"),
        ],
        &format!(
            ".data
             .balign 8
             n: .quad 0
             .text
             which: movl ${number},%eax
                ret
             count: movl $1,%eax
                lock xaddq %rax,%gs:n(,%eiz,1)
                ret
             narrow: leal {number}(%rdi),%eax
                ret
             sum: cvtsi2sd %edi,%xmm1
                addsd %xmm1,%xmm0
                cvtsi2sd %esi,%xmm1
                addsd %xmm1,%xmm0
                ret
             trap: ud2
             spin: jmp spin
             serve: call s
                addl ${number},%eax
                ret
             save: movq %gs:n(,%eiz,1),%rax
                movq %rax,%gs:(%edi)
                movl $8,%eax
                ret
             load: movq %gs:(%edi),%rax
                movq %rax,%gs:n(,%eiz,1)
                xorl %eax,%eax
                ret"
        ),
    )
    .image()
}

fn configure(builder: DomainBuilder) -> DomainBuilder {
    builder
        .placement(Placement::Cold)
        .service("s", |_: &Caller<'_>| 0)
}

fn module() -> Module {
    Module::new(&version(1), configure).unwrap()
}

fn which(m: &Module) -> i32 {
    m.func::<fn() -> i32>("which").unwrap().call().unwrap()
}

fn trap(m: &Module) {
    let e = m.func::<fn()>("trap").unwrap().call().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Trap);
}

#[test]
fn functions_follow_the_version() {
    let m = module();
    let held = m.func::<fn() -> i32>("which").unwrap();
    let sum = m.func::<fn(i32, f64, i32) -> f64>("sum").unwrap();
    // SAFETY: exports of these types.
    let (c, narrow) = unsafe {
        let p = |name| m.function_pointer(name, None).unwrap();
        (
            std::mem::transmute::<*const (), extern "C" fn() -> i32>(p("which")),
            std::mem::transmute::<*const (), extern "C" fn(i8) -> i8>(p("narrow")),
        )
    };
    assert_eq!(
        m.function_pointer("which", None).unwrap(),
        c as *const (),
        "the same pointer"
    );
    for number in 1..6 {
        if number > 1 {
            let probation = if number % 2 == 0 { 0 } else { 3 };
            let image = version(number);
            let replaced = m.replacement(&image).probation(probation).apply();
            let replaced = replaced.unwrap();
            assert_eq!(replaced.version, number as u64);
            assert_eq!(replaced.drained, probation == 0);
        }
        for _ in 0..5 {
            assert_eq!(
                (held.call().unwrap(), c(), which(&m)),
                (number, number, number)
            );
            assert_eq!(narrow(-3), number as i8 - 3);
            assert_eq!(sum.call(1, 0.5, 2).unwrap(), 3.5);
        }
        let counters = m.counters();
        assert_eq!((counters.version, counters.draining), (number as u64, 0));
        assert_eq!(counters.on_probation, 0, "25 calls are over");
    }
    assert_eq!(m.counters().replaced, 4);
    // The module goes when nobody holds it or a function of it; C gets 0.
    drop((m, sum));
    assert_eq!(c(), 5);
    drop(held);
    postern::clear_last_error();
    assert_eq!(c(), 0);
    assert!(matches!(postern::last_error(), Some(CallError::Closed)));
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let m = module();
    let held = m.func::<fn() -> i32>("which").unwrap();
    let count = m.func::<fn() -> i64>("count").unwrap();
    assert_eq!(count.call().unwrap(), 0);
    let lacks = code(&[], &[("count", "l()")], "count: ret").image();
    let e = m.replace(&lacks).unwrap_err();
    assert!(
        matches!(&e, ReplaceError::Function(SymbolError::Missing { name, .. }) if name == "which"),
        "{e}"
    );
    assert!(e.to_string().contains("exports no `which`"), "{e}");
    let other = code(
        &[],
        &[("which", "d()"), ("count", "l()")],
        "which: ret\ncount: ret",
    );
    let e = m.replace(&other.image()).unwrap_err();
    assert!(
        matches!(e, ReplaceError::Function(SymbolError::Signature { .. })),
        "{e}"
    );
    let wants = code(&[("nobody", "v()")], &[("which", "i()")], "which: ret");
    let e = m.replace(&wants.image()).unwrap_err();
    assert!(
        matches!(&e, ReplaceError::Make(InstantiateError::Unresolved(name)) if name == "nobody"),
        "{e}"
    );
    let e = m
        .replacement(&version(2))
        .hand_over(|_, _| Err("not today"))
        .apply()
        .unwrap_err();
    assert!(e.to_string().contains("not today"), "{e}");
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        m.replacement(&version(2))
            .hand_over(|_, _| -> Result<(), String> { std::panic::resume_unwind(Box::new(7)) })
            .apply()
            .is_ok()
    }));
    assert!(panics.is_err());
    // The new version may fault while it takes the state over: that is no reason to give up the old one.
    let e = m
        .replacement(&version(2))
        .hand_over(|_, new| {
            let _ = new.func::<fn()>("trap").unwrap().call();
            Ok::<_, String>(())
        })
        .apply()
        .unwrap_err();
    assert!(matches!(e, ReplaceError::HandOver(_)), "{e}");
    // The state is there, and everything goes on; a replacement that fits is made.
    assert_eq!((held.call().unwrap(), count.call().unwrap()), (1, 1));
    let c = m.counters();
    assert_eq!((c.version, c.replaced, c.refused), (1, 0, 5));
    m.replace(&version(2)).unwrap();
    assert_eq!((held.call().unwrap(), count.call().unwrap()), (2, 0));
}

#[test]
fn state_is_handed_over() {
    let m = module();
    let count = m.func::<fn() -> i64>("count").unwrap();
    for i in 0..10 {
        assert_eq!(count.call().unwrap(), i);
    }
    // By the extension's own functions.
    m.replacement(&version(2))
        .carry("save", "load", 64)
        .apply()
        .unwrap();
    assert_eq!(count.call().unwrap(), 10);
    // By the host, which may call both, and the module itself.
    m.replacement(&version(3))
        .hand_over(|old: &Domain, new: &Domain| -> Result<(), CallError> {
            assert_eq!(which(&m), 2);
            let count = |d: &Domain| d.func::<fn() -> i64>("count").unwrap().call();
            for _ in 0..count(old)? {
                count(new)?;
            }
            Ok(())
        })
        .apply()
        .unwrap();
    assert_eq!((count.call().unwrap(), which(&m)), (11, 3));
    for (save, room, says) in [
        ("absent", 64, "exports no `absent`"),
        ("which", 64, "not `l(pL)`"),
        ("save", 0, "0 bytes"),
    ] {
        let e = m.replacement(&version(4)).carry(save, "load", room).apply();
        let e = e.unwrap_err().to_string();
        assert!(e.contains(says), "{e}");
    }
    m.confirm();
    // Whoever faults while it saves its state is closed, and its version stays.
    let e = m
        .replacement(&version(4))
        .hand_over(|old, _| old.func::<fn()>("trap").unwrap().call())
        .apply();
    assert!(e.is_err());
    assert!(m.domain().is_poisoned());
    m.domain().reset().unwrap();
    assert_eq!((count.call().unwrap(), which(&m)), (0, 3));
}

/// No count is lost or made twice while threads count and versions come and go with their state.
#[test]
fn hand_over_under_load_loses_nothing() {
    let m = module();
    let stop = Arc::new(AtomicBool::new(false));
    let begin = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..3)
        .map(|i| {
            let (m, stop, begin) = (m.clone(), stop.clone(), begin.clone());
            let count = m.func::<fn() -> i64>("count").unwrap();
            let pointer = m.function_pointer("count", None).unwrap();
            // SAFETY: an export of this type.
            let c: extern "C" fn() -> i64 = unsafe { std::mem::transmute(pointer) };
            std::thread::spawn(move || {
                begin.wait();
                let mut seen = Vec::new();
                while !stop.load(SeqCst) {
                    seen.push(match i {
                        0 => c(),
                        _ => count.call().unwrap(),
                    });
                }
                seen
            })
        })
        .collect();
    begin.wait();
    for number in 2..14 {
        let image = version(number % 3);
        m.replacement(&image)
            .carry("save", "load", 8)
            .probation(number as u32 % 3 * 20)
            .drain(Duration::from_secs(60))
            .apply()
            .unwrap();
    }
    stop.store(true, SeqCst);
    let mut all: Vec<i64> = threads
        .into_iter()
        .flat_map(|t| t.join().unwrap())
        .collect();
    all.sort_unstable();
    let count = all.len() as i64;
    assert!(all.into_iter().eq(0..count), "each number once");
    assert!(m.counters().held > 0);
}

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

/// Threads call while a version comes that faults now and then: whoever does not make it fault never notices.
#[test]
fn rollbacks_under_load() {
    let m = module();
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..3)
        .map(|i| {
            let (m, stop) = (m.clone(), stop.clone());
            let which = m.func::<fn() -> i32>("which").unwrap();
            let pointer = m.function_pointer("which", None).unwrap();
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

/// A service may replace the module whose call it serves; that call ends in the version in which it began.
#[test]
fn a_service_replaces_its_own_module() {
    let slot: Arc<Mutex<Option<Module>>> = Arc::default();
    let s = slot.clone();
    let two = version(2);
    let m = Module::new(&version(1), move |builder| {
        let (s, two) = (s.clone(), two.clone());
        builder
            .placement(Placement::Cold)
            .service("s", move |_: &Caller<'_>| -> i32 {
                let Some(m) = s.lock().unwrap().take() else {
                    return 100;
                };
                m.replacement(&two)
                    .probation(0)
                    .drain(Duration::ZERO)
                    .apply()
                    .unwrap();
                let nested = m.func::<fn() -> i32>("serve").unwrap();
                nested.call().unwrap()
            })
    })
    .unwrap();
    *slot.lock().unwrap() = Some(m.clone());
    let serve = m.func::<fn() -> i32>("serve").unwrap();
    assert_eq!(serve.call().unwrap(), 103);
    assert_eq!(serve.call().unwrap(), 102);
    assert_eq!(m.counters().draining, 0);
}

#[test]
fn one_replacement_at_a_time() {
    let m = module();
    let (two, three) = (version(2), version(3));
    m.replacement(&two)
        .hand_over(|_, _| {
            let e = m.replace(&three).unwrap_err();
            assert!(matches!(e, ReplaceError::InProgress), "{e}");
            Ok::<_, String>(())
        })
        .apply()
        .unwrap();
    m.replace(&three).unwrap();
    assert_eq!(which(&m), 3);
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

#[test]
fn modules_in_the_child() {
    support::succeeds_in_child("modules_in_the_child", || {
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
            // The old version was closed for the hand-over, so it is poisoned in the child, and says so.
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
    support::succeeds_in_child("nothing_is_left_over", || {
        let images: Vec<Image> = (0..3).map(version).collect();
        let round = || {
            let m = Module::new(&images[0], configure).unwrap();
            let pointer = m.function_pointer("which", None).unwrap();
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
