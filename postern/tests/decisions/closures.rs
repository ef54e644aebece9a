//! Deciders that are closures of the host.

use crate::guest::{guest, sum, sys};
use crate::support;
use postern::policy::Call;
use postern::{
    Asked, CallError, Caller, Decider, Domain, FaultKind, Offset, Policy, Question, Verdict,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

fn decider(f: impl Fn(&Asked<'_>) -> Verdict + Send + Sync + 'static) -> Decider {
    Decider::closure(move |_: &Caller<'_>, question: &Question<'_>| f(&question.call))
}

fn always(verdict: Verdict) -> Decider {
    decider(move |_| verdict.clone())
}

fn scaled(domain: &Domain) -> f64 {
    let scaled = domain.func::<fn(f64, f32, i64) -> f64>("scaled").unwrap();
    scaled.call(1.5, 2.0, -4).unwrap()
}

#[test]
fn a_decider_sees_who_calls_what_with_which_arguments() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    let see = Decider::closure(move |caller: &Caller<'_>, question: &Question<'_>| {
        assert_eq!(caller.domain().name(), question.domain);
        if let Asked::Service {
            name,
            number,
            integers,
            floats,
            ..
        } = question.call
        {
            let imports = caller.domain().image();
            assert_eq!(&*imports.tables().imports[number].name, name);
            let line = format!("{} {name} {integers:?} {floats:x?}", question.domain);
            note.lock().unwrap().push(line);
        }
        Verdict::Allow
    });
    let (builder, made) = guest();
    let domain = builder.decider(see).build().unwrap();
    assert_eq!(sum(&domain, 40, -2).unwrap(), 38);
    assert_eq!(scaled(&domain), -1.0);
    let noted = domain.func::<fn(i32, i32) -> i32>("noted").unwrap();
    assert_eq!(noted.call(-1, 0x12345).unwrap(), 7);
    assert_eq!(made.load(Ordering::Relaxed), 3);
    let seen = seen.lock().unwrap();
    // Only as many bits as the types have.
    assert_eq!(
        *seen,
        [
            "guest add [40, 4294967294] []",
            "guest scale [18446744073709551612] [3ff8000000000000, 40000000]",
            "guest note [255, 9029] []",
        ]
    );
    assert!(domain.counters().denied_services.is_empty());
}

#[test]
fn a_denied_call_gives_zero_and_is_counted() {
    let (builder, made) = guest();
    let domain = builder.decider(always(Verdict::Deny(1))).build().unwrap();
    assert_eq!(sum(&domain, 40, 2).unwrap(), 0);
    assert_eq!(sum(&domain, 40, 2).unwrap(), 0);
    assert_eq!(scaled(&domain), 0.0);
    let noted = domain.func::<fn(i32, i32) -> i32>("noted").unwrap();
    assert_eq!(noted.call(1, 2).unwrap(), 7);
    assert_eq!(made.load(Ordering::Relaxed), 0);
    let counters = domain.counters();
    let denied: Vec<_> = counters.denied_services.into_iter().collect();
    let wanted = [("add", 2), ("note", 1), ("scale", 1)];
    assert_eq!(denied, wanted.map(|(name, n)| (name.to_owned(), n)));
    assert_eq!(counters.services["add"], 2);
    assert_eq!(counters.decision_failures, 0);
}

#[test]
fn an_emulated_call_gives_the_deciders_value() {
    let (builder, made) = guest();
    let domain = builder
        .decider(decider(|asked| match asked {
            Asked::Service { name: "add", .. } => Verdict::Emulate(-5, Vec::new()),
            Asked::Service { name: "scale", .. } => {
                Verdict::Emulate(2.25f64.to_bits() as i64, Vec::new())
            }
            _ => Verdict::Allow,
        }))
        .build()
        .unwrap();
    assert_eq!(sum(&domain, 1, 1).unwrap(), -5);
    assert_eq!(scaled(&domain), 2.25);
    assert_eq!(made.load(Ordering::Relaxed), 0);
}

#[test]
fn a_kill_is_a_fault_of_its_own_kind_with_the_reason() {
    let (builder, made) = guest();
    let domain = builder
        .decider(always(Verdict::Kill("no sums on Sundays".into())))
        .build()
        .unwrap();
    let error = sum(&domain, 1, 1).unwrap_err();
    let fault = error.fault().unwrap();
    assert_eq!(fault.kind, FaultKind::Killed);
    assert_eq!(fault.message.as_deref(), Some("no sums on Sundays"));
    assert!(error.to_string().contains("no sums on Sundays"), "{error}");
    assert_eq!(made.load(Ordering::Relaxed), 0);
    assert_eq!(domain.counters().faults["killed"], 1);
    assert!(domain.is_poisoned());
    // The decider stays over a reset.
    domain.reset().unwrap();
    assert_eq!(
        sum(&domain, 1, 1).unwrap_err().fault().unwrap().kind,
        FaultKind::Killed
    );
}

#[test]
fn system_calls_are_decided_about_with_copies_and_before_the_policy() {
    let (builder, _) = guest();
    let paths = Arc::new(Mutex::new(Vec::new()));
    let seen = paths.clone();
    let domain = builder
        .policy(Policy::compute())
        .decider(decider(move |asked| match asked {
            Asked::SystemCall(request) => match &request.call {
                Call::Open { path, .. } => {
                    seen.lock().unwrap().push(path.bytes.clone());
                    Verdict::Deny(libc::EROFS)
                }
                Call::Write { bytes, .. } => Verdict::Emulate(bytes.len() as i64 * 2, Vec::new()),
                Call::Read { .. } => Verdict::Emulate(2, b"hi!".to_vec()),
                _ => Verdict::Allow,
            },
            _ => Verdict::Allow,
        }))
        .build()
        .unwrap();
    let memory = domain.func::<fn() -> Offset>("memory").unwrap();
    let memory = memory.call().unwrap();
    let place = i64::from(memory.0);
    assert_eq!(
        sys(&domain, libc::SYS_open, [place, 0, 0, 0, 0]).unwrap(),
        -i64::from(libc::EROFS)
    );
    assert_eq!(*paths.lock().unwrap(), [b"/etc/passwd".to_vec()]);
    assert_eq!(
        sys(&domain, libc::SYS_write, [1, place, 4, 0, 0]).unwrap(),
        8
    );
    assert_eq!(
        sys(&domain, libc::SYS_read, [0, place, 2, 0, 0]).unwrap(),
        2
    );
    assert_eq!(domain.read_vec(memory, 3).unwrap(), b"hit");
    // What the decider allows still needs the policy.
    assert!(sys(&domain, libc::SYS_getpid, [0; 5]).unwrap() > 0);
    assert_eq!(
        sys(&domain, libc::SYS_mkdir, [place, 0, 0, 0, 0]).unwrap(),
        -i64::from(libc::EACCES)
    );
    // Services are asked about, too, but `sys` is none of them.
    assert_eq!(sum(&domain, 1, 2).unwrap(), 3);
}

#[test]
fn the_end_of_a_program_needs_nobodys_leave() {
    let (builder, _) = guest();
    let domain = builder.decider(always(Verdict::Deny(1))).build().unwrap();
    let ended = sys(&domain, libc::SYS_exit_group, [9, 0, 0, 0, 0]);
    assert!(matches!(ended, Err(CallError::Exited(9))), "{ended:?}");
}

#[test]
fn without_a_policy_a_decider_can_emulate() {
    let (builder, _) = guest();
    let domain = builder
        .decider(always(Verdict::Emulate(77, vec![])))
        .build();
    let domain = domain.unwrap();
    assert_eq!(sys(&domain, libc::SYS_getpid, [0; 5]).unwrap(), 77);
    domain.set_decider(Some(always(Verdict::Allow)));
    let refused = sys(&domain, libc::SYS_getpid, [0; 5]).unwrap();
    assert_eq!(refused, -i64::from(libc::EPERM));
}

#[test]
fn a_panic_denies_and_goes_on_in_the_hosts_call() {
    let (builder, made) = guest();
    let domain = builder
        .decider(decider(|asked| match asked {
            Asked::Service { .. } => panic!("the decider's own bug"),
            _ => Verdict::Allow,
        }))
        .build()
        .unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| sum(&domain, 1, 2))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the decider's own bug"));
    assert_eq!(made.load(Ordering::Relaxed), 0);
    assert_eq!(domain.counters().decision_failures, 1);
    domain.set_decider(None);
    assert_eq!(sum(&domain, 1, 2).unwrap(), 3);
}

#[test]
fn a_decider_that_ends_the_call_is_obeyed_before_the_service() {
    let (builder, made) = guest();
    let domain = builder
        .decider(Decider::closure(|caller: &Caller<'_>, _: &Question<'_>| {
            caller.exit(4);
            Verdict::Allow
        }))
        .build()
        .unwrap();
    assert!(matches!(sum(&domain, 1, 2), Err(CallError::Exited(4))));
    assert_eq!(made.load(Ordering::Relaxed), 0);
}

#[test]
fn a_decider_may_call_extensions() {
    let (other, _) = guest();
    let other = other.build().unwrap();
    let (builder, _) = guest();
    let domain = builder
        .decider(decider(move |_| match sum(&other, 1, 1) {
            Ok(2) => Verdict::Allow,
            _ => Verdict::Deny(1),
        }))
        .build()
        .unwrap();
    assert_eq!(sum(&domain, 20, 3).unwrap(), 23);
    assert_eq!(scaled(&domain), -1.0);
}

#[test]
fn deciders_change_while_threads_are_inside() {
    struct Counted(Arc<AtomicU32>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    const CHANGES: u32 = 300;
    let (builder, _) = guest();
    let domain = builder.build().unwrap();
    let (dropped, stop) = (Arc::new(AtomicU32::new(0)), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let result = sum(&domain, 20, 22).unwrap();
                    assert!(matches!(result, 42 | 0 | 5), "{result}");
                }
            });
        }
        for round in 0..CHANGES {
            let counted = Counted(dropped.clone());
            let new = decider(move |_| {
                assert!(counted.0.load(Ordering::SeqCst) <= CHANGES);
                match round % 3 {
                    0 => Verdict::Allow,
                    1 => Verdict::Deny(1),
                    _ => Verdict::Emulate(5, Vec::new()),
                }
            });
            domain.set_decider(Some(new));
            if round % 7 == 0 {
                domain.set_decider(None);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    domain.set_decider(None);
    assert_eq!(dropped.load(Ordering::SeqCst), CHANGES);
    assert_eq!(sum(&domain, 1, 2).unwrap(), 3);
}

#[test]
fn a_decider_may_replace_itself() {
    let (builder, _) = guest();
    let domain = builder
        .decider(Decider::closure(|caller: &Caller<'_>, _: &Question<'_>| {
            let next = always(Verdict::Emulate(9, Vec::new()));
            caller.domain().set_decider(Some(next));
            Verdict::Allow
        }))
        .build()
        .unwrap();
    assert_eq!(sum(&domain, 1, 2).unwrap(), 3);
    assert_eq!(sum(&domain, 1, 2).unwrap(), 9);
}

#[test]
fn too_little_stack_for_a_decider_is_a_fault() {
    // A C service that needs almost nothing, called where less is left than a decider may expect.
    extern "C" fn small(x: i64) -> i64 {
        x + 1
    }
    let image = support::code(
        &[("small", "l(l)")],
        &[("deep", "l(l)")],
        "deep:\ntest %rdi, %rdi\njz 1f\ndec %rdi\ncall deep\nret\n1: call small\nret\n",
    )
    .image();
    // SAFETY: the function has this signature and does nothing else.
    let builder = unsafe {
        support::cold(&image).service_c("small", small as *const (), "l(l)".parse().unwrap(), 4096)
    };
    let domain = builder.decider(always(Verdict::Allow)).build().unwrap();
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || {
            let deep = domain.func::<fn(i64) -> i64>("deep").unwrap();
            assert_eq!(deep.call(10).unwrap(), 1);
            let mut kinds = Vec::new();
            for depth in (1000..40_000).step_by(500) {
                match deep.call(depth) {
                    Ok(_) => assert!(kinds.is_empty()),
                    Err(error) => {
                        let kind = error.fault().unwrap().kind;
                        if kinds.last() != Some(&kind) {
                            kinds.push(kind);
                        }
                        domain.reset().unwrap();
                    }
                }
            }
            assert_eq!(
                kinds,
                [FaultKind::ServiceStack, FaultKind::ControlStackOverflow]
            );
        })
        .unwrap()
        .join()
        .unwrap();
}
