//! setjmp, longjmp and unwinding: which depths are accepted, and what each does, on every kind of
//! stack and in nested calls.
mod support;
use postern::{CallError, Caller, Domain, FaultKind, Limits};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Code, code, cold, on_stack};

/// `f(n, depth)` calls itself n times, jumps to `depth`, and returns the number of frames that were
/// still there; `trap` traps there. `return_at` asks where the frame at a depth returns to. `other`
/// makes a call of another domain first. `mark(n)` is what setjmp would keep, n calls deep.
fn jumps() -> Code {
    code(
        &[
            ("__postern_longjmp", "v(i)"),
            ("__postern_setjmp", "l()"),
            ("other", "v()"),
            ("__postern_return", "l(i)"),
        ],
        &[
            ("f", "i(ii)"),
            ("trap", "i(ii)"),
            ("after_other", "i(ii)"),
            ("spin", "v()"),
            ("mark", "l(i)"),
            ("mark_outermost", "l()"),
            ("mark_slot", "l()"),
            ("mark_tail", "l()"),
            ("jump_slot", "v(i)"),
            ("return_at", "l(ii)"),
            ("return_slot", "l(i)"),
        ],
        "f:  testl %edi,%edi
            je 1f
            decl %edi
            call f
            incl %eax
            ret
         1: movl %esi,%edi
            call __postern_longjmp
            xorl %eax,%eax
            ret
         trap: testl %edi,%edi
            je 1f
            decl %edi
            call trap
            ret
         1: movl %esi,%edi
            call __postern_longjmp
            ud2
         after_other: movl %edi,%ebx
            movl %esi,%ebp
            call other
            movl %ebx,%edi
            movl %ebp,%esi
            jmp f
         spin: movl $8,%edi
            call __postern_longjmp
            jmp spin
         mark: testl %edi,%edi
            je 1f
            decl %edi
            call mark
            ret
         1: call setjmp
         back: ret
         setjmp: call __postern_setjmp
            ret
         mark_outermost: call __postern_setjmp
            ret
         mark_slot: jmp __postern_setjmp
         mark_tail: call mark_slot
            ret
         jump_slot: jmp __postern_longjmp
         return_at: testl %edi,%edi
            je 1f
            decl %edi
            call return_at
         behind: ret
         1: movl %esi,%edi
            call __postern_return
            ret
         return_slot: jmp __postern_return",
    )
}

fn domain(depth: Option<u32>, other: impl Fn(&Caller<'_>) + Send + Sync + 'static) -> Domain {
    let mut limits = Limits::default();
    limits.call_depth = depth;
    limits.deadline = Some(Duration::from_secs(20));
    cold(&jumps().image())
        .limits(limits)
        .service("other", other)
        .build()
        .unwrap()
}

/// Every depth that could be wrong by a little, and some that are wrong by far.
fn depths(levels: i32) -> Vec<i32> {
    let mut depths: Vec<i32> = (-64..8 * levels + 200).collect();
    depths.extend([
        i32::MIN,
        i32::MIN + 8,
        i32::MAX,
        0x7fff_fff8,
        1 << 20,
        1 << 30,
    ]);
    depths
}

/// Jumps to each depth from `levels` calls below `name`, and compares with what must come of it.
fn every_depth(d: &Domain, name: &str, levels: i32) {
    let f = d.func::<fn(i32, i32) -> i32>(name).unwrap();
    let in_use = 8 * (levels + 1);
    for depth in depths(levels) {
        let result = f.call(levels, depth);
        if depth % 8 == 0 && (8..=in_use).contains(&depth) {
            assert_eq!(result.unwrap(), depth / 8 - 1, "{name}: depth {depth}");
            continue;
        }
        let error = result.expect_err("a wrong depth");
        let fault = error.fault().unwrap_or_else(|| panic!("{depth}: {error}"));
        assert_eq!(fault.kind, FaultKind::Aborted, "{depth}: {error}");
        assert!(error.to_string().contains("longjmp: "), "{depth}: {error}");
        d.reset().unwrap();
    }
}

#[test]
fn every_depth_on_a_threads_own_stack() {
    for depth in [None, Some(1000)] {
        let d = domain(depth, |_| {});
        for levels in [0, 1, 2, 20] {
            every_depth(&d, "f", levels);
        }
    }
}

#[test]
fn every_depth_on_a_coroutines_stack() {
    let mut stack = vec![0u8; 256 << 10];
    let d = domain(None, |_| {});
    on_stack(&mut stack, || every_depth(&d, "f", 3));
}

/// A call that a service makes has a base of its own, and the waiting call finds its base again.
#[test]
fn every_depth_within_and_after_nested_calls() {
    for depths in [
        [None, None],
        [Some(100), None],
        [None, Some(100)],
        [Some(100), Some(100)],
    ] {
        let inner = domain(depths[0], |_| {});
        let outer = domain(depths[1], move |_| {
            let f = inner.func::<fn(i32, i32) -> i32>("f").unwrap();
            assert_eq!(f.call(5, 24).unwrap(), 2);
            // A depth of the outer call's.
            let error = f.call(5, 8 * 10).unwrap_err();
            assert_eq!(error.fault().unwrap().kind, FaultKind::Aborted);
            inner.reset().unwrap();
        });
        let mut stack = vec![0u8; 512 << 10];
        every_depth(&outer, "after_other", 4);
        on_stack(&mut stack, || every_depth(&outer, "after_other", 2));
    }
}

/// The words that setjmp keeps: depth, and the place behind the call.
#[test]
fn marks() {
    let code = jumps();
    for depth in [None, Some(100)] {
        let mut limits = Limits::default();
        limits.call_depth = depth;
        let d = cold(&code.image())
            .limits(limits)
            .service("other", |_: &Caller<'_>| {})
            .build()
            .unwrap();
        let mark = d.func::<fn(i32) -> i64>("mark").unwrap();
        for levels in 0..10 {
            let kept = mark.call(levels).unwrap();
            assert_eq!(kept >> 32, i64::from(8 * (levels + 1)), "depth");
            assert_eq!(kept as u32, code.at("back"), "place");
        }
        // Whoever has no caller in the extension learns nothing of the gate's return address.
        for name in ["mark_outermost", "mark_slot", "mark_tail"] {
            let error = d.func::<fn() -> i64>(name).unwrap().call().unwrap_err();
            assert!(
                error.to_string().contains("setjmp was called by the host"),
                "{name}: {error}"
            );
            d.reset().unwrap();
        }
        let slot = d.func::<fn(i32)>("jump_slot").unwrap();
        for depth in depths(2) {
            assert!(slot.call(depth).is_err());
            d.reset().unwrap();
        }
    }
}

/// What an unwinder may ask: where a live frame of the same call returns to, if that is in the
/// extension.
#[test]
fn return_addresses() {
    let code = jumps();
    let mut stack = vec![0u8; 256 << 10];
    for depth in [None, Some(100)] {
        let d = domain(depth, |_| {});
        let return_at = d.func::<fn(i32, i32) -> i64>("return_at").unwrap();
        let slot = d.func::<fn(i32) -> i64>("return_slot").unwrap();
        let check = || {
            for levels in [0, 1, 7] {
                for depth in depths(levels) {
                    let expected = match depth {
                        8 => Some(-1),
                        16.. if depth % 8 == 0 && depth <= 8 * (levels + 1) => {
                            Some(i64::from(code.at("behind")))
                        }
                        _ => None,
                    };
                    let result = return_at.call(levels, depth);
                    if let Some(expected) = expected {
                        assert_eq!(result.unwrap(), expected, "{levels}: {depth}");
                        continue;
                    }
                    let error = result.expect_err("a wrong depth");
                    assert!(error.to_string().contains("unwinding: "), "{error}");
                    d.reset().unwrap();
                }
            }
            for depth in depths(2) {
                assert!(slot.call(depth).is_err());
                d.reset().unwrap();
            }
        };
        check();
        on_stack(&mut stack, check);
    }
}

/// A fault after a jump shows the frames that are left.
#[test]
fn backtraces_after_a_jump() {
    let d = domain(None, |_| {});
    let trap = d.func::<fn(i32, i32) -> i32>("trap").unwrap();
    for (levels, depth) in [(10, 8), (10, 40), (10, 88), (0, 8)] {
        let error = trap.call(levels, depth).unwrap_err();
        let fault = error.fault().unwrap();
        assert_eq!(fault.kind, FaultKind::Trap);
        assert_eq!(fault.backtrace.len() as i32, depth / 8 - 1, "{error}");
        d.reset().unwrap();
    }
}

#[test]
fn a_deadline_ends_a_call_that_jumps_for_ever() {
    let seen = Arc::new(Mutex::new(0));
    let s = seen.clone();
    for depth in [None, Some(10)] {
        let mut limits = Limits::default();
        limits.call_depth = depth;
        limits.deadline = Some(Duration::from_millis(20));
        let s = s.clone();
        let d = cold(&jumps().image())
            .limits(limits)
            .service("other", move |_: &Caller<'_>| *s.lock().unwrap() += 1)
            .build()
            .unwrap();
        for _ in 0..3 {
            let spin = d.func::<fn()>("spin").unwrap();
            let error = spin.call().unwrap_err();
            assert_eq!(error.fault().unwrap().kind, FaultKind::Deadline);
            assert!(matches!(spin.call(), Err(CallError::Poisoned)));
            d.reset().unwrap();
            let f = d.func::<fn(i32, i32) -> i32>("after_other").unwrap();
            assert_eq!(f.call(7, 16).unwrap(), 1);
        }
    }
    assert_eq!(*seen.lock().unwrap(), 6);
}
