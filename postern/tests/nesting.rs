//! Calls within calls: nesting over several domains, re-entry, and ends that reach calls which
//! wait.
mod support;
use postern::{CallError, Caller, Domain, FaultKind, Func, Limits};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::Duration;
use support::{code, cold};

type Summing = Func<fn(i64) -> i64>;

/// Two domains that call each other through services: `f(n)` asks the host for `n - 1` of the other
/// one.
fn pair(depths: [Option<u32>; 2]) -> [Domain; 2] {
    let image = pair_image();
    let both: Arc<OnceLock<[Summing; 2]>> = Arc::default();
    let make = |me: usize| {
        let both = both.clone();
        let mut limits = Limits::default();
        limits.call_depth = depths[me];
        cold(&image)
            .limits(limits)
            .service("next", move |c: &Caller<'_>, n: i64| {
                match both.get().unwrap()[1 - me].call(n) {
                    Ok(sum) => sum,
                    Err(CallError::TooDeep) => {
                        c.exit(1234);
                        0
                    }
                    Err(_) => {
                        c.exit(-1);
                        0
                    }
                }
            })
            .build()
            .unwrap()
    };
    let domains = [make(0), make(1)];
    let entries = [domains[0].func("f").unwrap(), domains[1].func("f").unwrap()];
    assert!(both.set(entries).is_ok());
    domains
}

#[test]
fn nesting_between_two_domains_up_to_the_limit() {
    for depths in [[None, None], [Some(1000), None], [Some(1000), Some(1000)]] {
        let [a, b] = pair(depths);
        let f = a.func::<fn(i64) -> i64>("f").unwrap();
        for n in [0, 1, 2, 10, 60] {
            assert_eq!(f.call(n).unwrap(), n * (n + 1) / 2, "{depths:?}");
        }
        // Deeper: the innermost is refused, and every level leaves by exit with the reason.
        assert!(
            matches!(f.call(200), Err(CallError::Exited(_))),
            "{depths:?}"
        );
        assert_eq!(f.call(10).unwrap(), 55);
        assert!(!a.is_poisoned() && !b.is_poisoned());
        a.reset().unwrap();
        b.reset().unwrap();
    }
}

/// A nested call into the same domain does not overwrite the frames of the outer one.
#[test]
fn reentry_into_the_same_domain() {
    let entry: Arc<OnceLock<Summing>> = Arc::default();
    let e = entry.clone();
    let d = cold(&pair_image())
        .service("next", move |_: &Caller<'_>, n: i64| {
            e.get().unwrap().call(n).unwrap()
        })
        .build()
        .unwrap();
    let f = d.func::<fn(i64) -> i64>("f").unwrap();
    assert!(entry.set(f.clone()).is_ok());
    for n in [1, 5, 60] {
        assert_eq!(f.call(n).unwrap(), n * (n + 1) / 2);
    }
}

fn pair_image() -> postern::Image {
    code(
        &[("next", "l(l)")],
        &[("f", "l(l)")],
        "f: testq %rdi,%rdi
            je 1f
            PUSH %rdi
            decq %rdi
            call next
            POP %rdi
            addq %rdi,%rax
            ret
         1: xorl %eax,%eax
            ret",
    )
    .image()
}

/// A nested entry trusts nothing that the extension left in r15.
#[test]
fn a_forged_data_stack_pointer_is_refused() {
    let entry: Arc<OnceLock<Summing>> = Arc::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (e, s) = (entry.clone(), seen.clone());
    let d = cold(
        &code(
            &[("next", "v()")],
            &[("f", "l(l)")],
            "f: testq %rdi,%rdi
                je 1f
                movq %r15,%rbx
                movq %rdi,%r15
                call next
                movq %rbx,%r15
             1: ret",
        )
        .image(),
    )
    .service("next", move |_: &Caller<'_>| {
        s.lock().unwrap().push(e.get().unwrap().call(0).err());
    })
    .build()
    .unwrap();
    let f = d.func::<fn(i64) -> i64>("f").unwrap();
    assert!(entry.set(f.clone()).is_ok());
    for forged in [1, 0x1_0000, 0x1_2000, 0xffff_ffff, -16, i64::MAX] {
        f.call(forged).unwrap();
        let refused = seen.lock().unwrap().pop().unwrap();
        assert!(
            matches!(refused, Some(CallError::NoDataStack)),
            "{forged:#x}: {refused:?}"
        );
    }
}

/// Interrupts from another thread: in the extension, in a service, in a nested call of another
/// domain.
#[test]
fn interrupt_wherever_the_call_is() {
    let image = code(
        &[("s", "v()")],
        &[("spin", "v()"), ("service", "v()")],
        "spin: jmp spin
         service: call s
            ret",
    )
    .image();
    // In the extension.
    let d = cold(&image)
        .deadline(None)
        .service("s", |_: &Caller<'_>| {})
        .build()
        .unwrap();
    let spin = d.func::<fn()>("spin").unwrap();
    for _ in 0..20 {
        let call = std::thread::spawn({
            let spin = spin.clone();
            move || spin.call()
        });
        while !call.is_finished() {
            d.interrupt();
            std::thread::yield_now();
        }
        let e = call.join().unwrap().unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::Interrupted);
        assert!(!d.is_poisoned());
    }
    // In a service: once is enough, and it ends when the service returns.
    let (enter, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (e, l) = (enter.clone(), leave.clone());
    let d = cold(&image)
        .deadline(None)
        .service("s", move |_: &Caller<'_>| {
            e.wait();
            l.wait();
        })
        .build()
        .unwrap();
    let service = d.func::<fn()>("service").unwrap();
    let call = std::thread::spawn({
        let service = service.clone();
        move || service.call()
    });
    enter.wait();
    d.interrupt();
    leave.wait();
    let e = call.join().unwrap().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Interrupted);
    // While a nested call of another domain runs: that one goes on, the interrupted one ends
    // afterwards.
    let inner = cold(&image)
        .deadline(None)
        .service("s", {
            let (e, l) = (enter.clone(), leave.clone());
            move |_: &Caller<'_>| {
                e.wait();
                l.wait();
            }
        })
        .build()
        .unwrap();
    let nested = inner.func::<fn()>("service").unwrap();
    let outer = cold(&image)
        .deadline(None)
        .service("s", move |_: &Caller<'_>| nested.call().unwrap())
        .build()
        .unwrap();
    let call = std::thread::spawn({
        let f = outer.func::<fn()>("service").unwrap();
        move || f.call()
    });
    enter.wait();
    outer.interrupt();
    leave.wait();
    let e = call.join().unwrap().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Interrupted);
    assert!(!outer.is_poisoned() && !inner.is_poisoned());
}

/// The outer call's deadline passes while nested calls of another domain take the time.
#[test]
fn a_deadline_passes_during_nested_calls() {
    let image = code(
        &[("s", "v()")],
        &[("loop", "v()"), ("spin", "v(l)")],
        "loop: call s
            jmp loop
         spin: decq %rdi
            jne spin
            ret",
    )
    .image();
    let inner = cold(&image)
        .deadline(None)
        .service("s", |_: &Caller<'_>| {})
        .build()
        .unwrap();
    let spin = inner.func::<fn(i64)>("spin").unwrap();
    let outer = cold(&image)
        .deadline(Some(Duration::from_millis(30)))
        .service("s", move |_: &Caller<'_>| spin.call(20_000_000).unwrap())
        .build()
        .unwrap();
    let e = outer.func::<fn()>("loop").unwrap().call().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline);
    assert!(!inner.is_poisoned());
}

/// A hostile data stack pointer near the low end of a stack, below which a page has no access: the
/// arguments of a nested call that travel in memory find no place, and the host does not touch that
/// page.
#[test]
fn arguments_of_a_nested_call_stay_out_of_the_guard_page() {
    type Eight = Func<fn(i64, i64, i64, i64, i64, i64, i64, i64) -> i64>;
    let image = code(
        &[("back", "l(l)")],
        &[("low", "l(l)"), ("last", "l(llllllll)")],
        // The data stack pointer goes to %rdi bytes above the stack's start, where the service
        // finds it.
        "low:\nmovq %r15, %rbx\nmovl %r15d, %eax\nandl $-(1 << 18), %eax\nleaq (%rax,%rdi), %r15\ncall back\n\
         movq %rbx, %r15\nret\n\
         last:\nmovq %gs:8(%r15d), %rax\nret\n",
    )
    .image();
    let entry: Arc<OnceLock<Eight>> = Arc::default();
    let last = entry.clone();
    let d = cold(&image)
        .service("back", move |_: &Caller<'_>, _: i64| -> i64 {
            match last.get().unwrap().call(1, 2, 3, 4, 5, 6, 7, 8) {
                Ok(value) => value,
                Err(CallError::NoDataStack) => -1,
                Err(error) => panic!("{error}"),
            }
        })
        .build()
        .unwrap();
    assert!(entry.set(d.func("last").unwrap()).is_ok());
    let low = d.func::<fn(i64) -> i64>("low").unwrap();
    let size = 1 << 18;
    assert_eq!(low.call(size / 2).unwrap(), 8);
    // This thread has the image's own stack, others have one with a page without access below.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(low.call(size / 2).unwrap(), 8);
            for above in [0, 1024, 1040, 2048, 4096, 4096 + 1008] {
                assert_eq!(low.call(above).unwrap(), -1, "{above}");
            }
            assert_eq!(low.call(2 * 4096).unwrap(), 8);
        });
    });
}
