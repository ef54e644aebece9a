//! Where calls go while versions come, and what is handed over.

use crate::guest::{module, version, which};
use crate::support::code;
use postern::{
    CallError, Caller, Domain, InstantiateError, Module, Placement, ReplaceError, SymbolError,
};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

#[test]
fn functions_follow_the_version() {
    let m = module();
    let held = m.func::<fn() -> i32>("which").unwrap();
    let sum = m.func::<fn(i32, f64, i32) -> f64>("sum").unwrap();
    // SAFETY: exports of these types.
    let (c, narrow) = unsafe {
        let p = |name, types: &str| m.function_pointer(name, &types.parse().unwrap()).unwrap();
        (
            std::mem::transmute::<*const (), extern "C" fn() -> i32>(p("which", "i()")),
            std::mem::transmute::<*const (), extern "C" fn(i8) -> i8>(p("narrow", "b(b)")),
        )
    };
    assert_eq!(
        m.function_pointer("which", &"i()".parse().unwrap())
            .unwrap(),
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
        matches!(&e, ReplaceError::Make(e) if matches!(e.cause(), InstantiateError::Unresolved(name) if name == "nobody")),
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
    // The new version may fault while it takes the state over: that is no reason to give up the old
    // one.
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
            let pointer = m
                .function_pointer("count", &"l()".parse().unwrap())
                .unwrap();
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

/// A service may replace the module whose call it serves; that call ends in the version in which it
/// began.
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
