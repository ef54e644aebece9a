//! Services: every type through the service gate, ends of calls from inside a service, nesting.
mod support;
use postern::{CallError, Caller, Domain, FaultKind, Func, InstantiateError, Limits, Offset};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use support::{code, cold};

/// A function `f` that passes its own arguments on to the service `s`.
fn forwarder(signature: &str) -> postern::Image {
    code(&[("s", signature)], &[("f", signature)], "f: jmp s").image()
}

#[test]
fn every_type_crosses_the_service_gate() {
    macro_rules! same {
        ($s:literal, $t:ty, $($v:expr),*) => {{
            let d = cold(&forwarder($s)).service("s", |_: &Caller<'_>, x: $t| x).build().unwrap();
            let f = d.func::<fn($t) -> $t>("f").unwrap();
            $( assert_eq!(f.call($v).unwrap().to_le_bytes(), ($v).to_le_bytes()); )*
        }};
    }
    same!("b(b)", i8, i8::MIN, -1i8, i8::MAX);
    same!("B(B)", u8, 0u8, u8::MAX);
    same!("h(h)", i16, i16::MIN, i16::MAX);
    same!("H(H)", u16, 0u16, u16::MAX);
    same!("i(i)", i32, i32::MIN, -1i32, i32::MAX);
    same!("I(I)", u32, 0u32, u32::MAX);
    same!("l(l)", i64, i64::MIN, -1i64, i64::MAX);
    same!("L(L)", u64, 0u64, u64::MAX);
    same!("f(f)", f32, -0f32, f32::NAN, 1.5f32);
    same!("d(d)", f64, -0f64, f64::NAN, 1e300f64);
    let d = cold(&forwarder("p(p)"))
        .service("s", |_: &Caller<'_>, x: Offset| x)
        .build()
        .unwrap();
    assert_eq!(
        d.func::<fn(Offset) -> Offset>("f")
            .unwrap()
            .call(Offset(77))
            .unwrap(),
        Offset(77)
    );
}

#[test]
fn six_parameters_of_both_classes_and_their_counter() {
    let d = cold(&forwarder("d(idlfid)"))
        .service(
            "s",
            |_: &Caller<'_>, a: i32, b: f64, c: i64, d: f32, e: i32, f: f64| {
                f64::from(a)
                    + b * 10.
                    + c as f64 * 100.
                    + f64::from(d) * 1000.
                    + f64::from(e) * 1e4
                    + f * 1e5
            },
        )
        .build()
        .unwrap();
    let f = d
        .func::<fn(i32, f64, i64, f32, i32, f64) -> f64>("f")
        .unwrap();
    for _ in 0..5 {
        assert_eq!(f.call(1, 2., 3, 4., 5, 6.).unwrap(), 654_321.);
    }
    assert_eq!(d.counters().services["s"], 5);
    assert_eq!(d.counters().calls, 5);
}

/// What a service leaves in registers does not reach the extension, and its callee-saved registers
/// come back.
#[test]
fn nothing_of_the_host_comes_back_with_the_result() {
    for (name, vectors) in [
        ("none", ""),
        ("sse", "orps %xmm1,%xmm15\norps %xmm15,%xmm1\n"),
        (
            "avx",
            "vorps %ymm1,%ymm15,%ymm15\nvorps %ymm15,%ymm2,%ymm1\n",
        ),
    ] {
        let store = match name {
            "none" => "",
            "sse" => "movups %xmm1,%gs:room(,%eiz,1)\n",
            _ => "vmovups %ymm1,%gs:room(,%eiz,1)\n",
        };
        let source = format!(
            ".bss\nroom: .skip 32\n.text
             f: movl $11,%ebx
                movl $12,%ebp
                movl $13,%r12d
                movl $14,%r13d
                movl $15,%r14d
                call s
                cmpl $-1,%eax
                jne wrong
                orq %rdx,%rcx
                orq %rsi,%rcx
                orq %rdi,%rcx
                orq %r8,%rcx
                orq %r9,%rcx
                orq %r10,%rcx
                orq %r11,%rcx
                shrq $32,%rax
                orq %rax,%rcx
                {vectors}{store}
                xorq $11,%rbx
                xorq $12,%rbp
                xorq $13,%r12
                xorq $14,%r13
                xorq $15,%r14
                orq %rbx,%rcx
                orq %rbp,%rcx
                orq %r12,%rcx
                orq %r13,%rcx
                orq %r14,%rcx
                orq %gs:room(,%eiz,1),%rcx
                orq %gs:room+8(,%eiz,1),%rcx
                orq %gs:room+16(,%eiz,1),%rcx
                orq %gs:room+24(,%eiz,1),%rcx
                movq %rcx,%rax
                ret
             wrong: movl $99,%eax
                ret"
        );
        let image = code(&[("s", "i()")], &[("f", "L()")], &source).image();
        for depth in [None, Some(50)] {
            let mut limits = Limits::default();
            limits.call_depth = depth;
            let d = cold(&image)
                .limits(limits)
                .service("s", |_: &Caller<'_>| std::hint::black_box(-1i32))
                .build()
                .unwrap();
            assert_eq!(
                d.func::<fn() -> u64>("f").unwrap().call().unwrap(),
                0,
                "{name} {depth:?}"
            );
        }
    }
}

#[test]
fn linking_is_eager_and_names_the_symbol() {
    let image = code(
        &[("host_log", "v(p)"), ("host_time", "l()")],
        &[("f", "v()")],
        "f: ret",
    )
    .image();
    let e = cold(&image)
        .service("host_log", |_: &Caller<'_>, _: Offset| {})
        .build()
        .unwrap_err();
    assert!(
        matches!(e.cause(), InstantiateError::Unresolved(n) if n == "host_time"),
        "{e}"
    );
    assert!(e.to_string().contains("host_time"));
    let e = cold(&image)
        .service("host_log", |_: &Caller<'_>, _: f64| {})
        .service("host_time", |_: &Caller<'_>| 0i64)
        .build()
        .unwrap_err();
    assert!(
        matches!(e.cause(), InstantiateError::Signature { name, .. } if name == "host_log"),
        "{e}"
    );
    assert!(
        e.to_string().contains("v(p)") && e.to_string().contains("v(d)"),
        "{e}"
    );
    // A service nobody imports does no harm.
    cold(&image)
        .service("host_log", |_: &Caller<'_>, _: Offset| {})
        .service("host_time", |_: &Caller<'_>| 0i64)
        .service("other", |_: &Caller<'_>| {})
        .build()
        .unwrap();
}

#[test]
fn panics_go_around_the_extension() {
    let d = cold(&forwarder("i(i)"))
        .service(
            "s",
            |_: &Caller<'_>, x: i32| if x < 0 { panic!("negative {x}") } else { x },
        )
        .build()
        .unwrap();
    let f = d.func::<fn(i32) -> i32>("f").unwrap();
    for x in [-5, 7, -9, 11] {
        let r = catch_unwind(AssertUnwindSafe(|| f.call(x)));
        match r {
            Ok(r) => assert_eq!(r.unwrap(), x),
            Err(p) => assert_eq!(*p.downcast::<String>().unwrap(), format!("negative {x}")),
        }
    }
    assert!(!d.is_poisoned());
    assert!(d.counters().faults.is_empty());
    // A payload that is no string.
    let d = cold(&forwarder("i(i)"))
        .service("s", |_: &Caller<'_>, x: i32| -> i32 {
            std::panic::panic_any(x)
        })
        .build()
        .unwrap();
    let f = d.func::<fn(i32) -> i32>("f").unwrap();
    let p = catch_unwind(AssertUnwindSafe(|| f.call(3))).unwrap_err();
    assert_eq!(*p.downcast::<i32>().unwrap(), 3);
}

#[test]
fn exit_and_abort() {
    let c = code(
        &[
            ("__postern_exit", "v(i)"),
            ("__postern_abort", "v(p)"),
            ("end", "i(i)"),
        ],
        &[("leave", "v(i)"), ("abort", "v(p)"), ("f", "i(i)")],
        ".section .rodata
         .globl text
         text: .asciz \"out of cheese\"
         .text
         leave: call __postern_exit
         1: jmp 1b
         abort: jmp __postern_abort
         f: jmp end",
    );
    let d = cold(&c.image())
        .service("end", |c: &Caller<'_>, x: i32| {
            if x > 0 {
                c.exit(x);
            } else {
                c.abort(format!("no {x}"));
            }
            x
        })
        .build()
        .unwrap();
    let leave = d.func::<fn(i32)>("leave").unwrap();
    for status in [0, 1, -1, i32::MIN] {
        assert!(matches!(leave.call(status), Err(CallError::Exited(s)) if s == status));
    }
    assert!(!d.is_poisoned());
    let f = d.func::<fn(i32) -> i32>("f").unwrap();
    assert!(matches!(f.call(5), Err(CallError::Exited(5))));
    let e = f.call(-5).unwrap_err();
    let fault = e.fault().unwrap();
    assert_eq!(
        (fault.kind, fault.message.as_deref()),
        (FaultKind::Aborted, Some("no -5"))
    );
    assert!(d.is_poisoned());
    d.reset().unwrap();
    let abort = d.func::<fn(Offset)>("abort").unwrap();
    let e = abort.call(Offset(c.at("text"))).unwrap_err();
    assert_eq!(e.fault().unwrap().message.as_deref(), Some("out of cheese"));
    d.reset().unwrap();
    let e = abort.call(Offset(3)).unwrap_err();
    assert!(
        e.fault()
            .unwrap()
            .message
            .as_deref()
            .unwrap()
            .contains("cannot be read"),
        "{e}"
    );
    d.reset().unwrap();
    // The message is not kept for the next fault, whoever causes it.
    let e = d
        .func_at::<fn()>(Offset(c.at("bad_jump")))
        .unwrap()
        .call()
        .unwrap_err();
    assert_eq!(e.fault().unwrap().message, None);
}

/// A service that asks for an end and then does something else that ends it: the first reason
/// holds, and nothing of it is left over.
#[test]
fn the_first_end_wins() {
    let trap = Arc::new(OnceLock::<Func<fn()>>::new());
    let d = cold(
        &code(
            &[("s", "v(i)")],
            &[("f", "v(i)"), ("trap", "v()")],
            "f: jmp s\ntrap: ud2",
        )
        .image(),
    );
    let inner = trap.clone();
    let d = d
        .service("s", move |c: &Caller<'_>, x: i32| match x {
            0 => {
                c.exit(7);
                assert!(inner.get().unwrap().call().is_err());
            }
            1 => {
                c.abort("outer");
                let e = inner.get().unwrap().call().unwrap_err();
                assert_eq!(e.fault().unwrap().message, None);
            }
            _ => {
                c.abort("lost");
                panic!("after abort");
            }
        })
        .build()
        .unwrap();
    let other = support::domain(&[("trap", "v()")], "trap: ud2");
    trap.set(other.func("trap").unwrap()).unwrap();
    let f = d.func::<fn(i32)>("f").unwrap();
    assert!(matches!(f.call(0), Err(CallError::Exited(7))));
    other.reset().unwrap();
    let e = f.call(1).unwrap_err();
    assert_eq!(e.fault().unwrap().message.as_deref(), Some("outer"));
    other.reset().unwrap();
    d.reset().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| f.call(2))).is_err());
    let e = other.func::<fn()>("trap").unwrap().call().unwrap_err();
    assert_eq!(e.fault().unwrap().message, None);
}

/// Bytes of stack below the caller. (A new thread may get the larger stack of one that has ended.)
fn stack_below() -> i32 {
    let here = 0u8;
    // SAFETY: the attributes are initialised by pthread_getattr_np before they are read, and
    // destroyed once.
    let start = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        assert_eq!(
            libc::pthread_getattr_np(libc::pthread_self(), &mut attributes),
            0
        );
        let (mut start, mut size) = (std::ptr::null_mut(), 0);
        assert_eq!(
            libc::pthread_attr_getstack(&attributes, &mut start, &mut size),
            0
        );
        libc::pthread_attr_destroy(&mut attributes);
        start as usize
    };
    i32::try_from(&raw const here as usize - start).unwrap()
}

/// A service runs on the thread's stack: without enough of it the extension's call ends.
#[test]
fn too_little_control_stack_for_a_service() {
    let image = code(
        &[("s", "v()")],
        &[("f", "v(i)")],
        "f: testl %edi,%edi
            je s
            decl %edi
            call f
            ret",
    )
    .image();
    let d = cold(&image)
        .service("s", |_: &Caller<'_>| {})
        .build()
        .unwrap();
    let f = d.func::<fn(i32)>("f").unwrap();
    on_a_stack_of_8_mib(&|| {
        f.call(100).unwrap();
        // All of the stack but 48 KiB: less is left than the 64 KiB that a service has by default.
        let e = f.call((stack_below() - (48 << 10)) / 8).unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::ServiceStack, "{e}");
        f.domain().reset().unwrap();
        f.call(100).unwrap();
        let e = f.call(20_000_000).unwrap_err();
        assert_eq!(
            e.fault().unwrap().kind,
            FaultKind::ControlStackOverflow,
            "{e}"
        );
        f.domain().reset().unwrap();
        f.call(100).unwrap();
    });
}

/// Runs a test on a thread whose stack is no larger than it asks for: libc gives the stacks of
/// threads that ended, which may be larger, and then extensions run on one of the runtime's. While
/// one such thread lives, the next gets another stack.
fn on_a_stack_of_8_mib(test: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(8 << 20);
        let run = || match stack_below() <= 8 << 20 {
            true => test(),
            false => on_a_stack_of_8_mib(test),
        };
        thread.spawn_scoped(scope, run).unwrap().join().unwrap();
    });
}

/// With a limit of call depth the extension runs on a stack of the runtime's own, and services on
/// the host's: they need room there, too.
#[test]
fn too_little_host_stack_for_a_service_of_a_limited_domain() {
    extern "C" fn service() {}
    let image = code(&[("s", "v()")], &[("f", "v()")], "f: jmp s").image();
    let mut limits = Limits::default();
    limits.call_depth = Some(100);
    let domains = [Limits::default(), limits].map(|limits| {
        let builder = cold(&image).limits(limits);
        // SAFETY: the function has this signature and does nothing.
        unsafe { builder.service_c("s", service as *const (), "v()".parse().unwrap(), 16 << 20) }
            .build()
            .unwrap()
    });
    // The small stack first: libc gives used stacks out again.
    for (size, enough) in [(1 << 20, false), (32 << 20, true)] {
        for d in &domains {
            let f = d.func::<fn()>("f").unwrap();
            let thread = std::thread::Builder::new().stack_size(size);
            let result = thread.spawn(move || f.call()).unwrap().join().unwrap();
            match result {
                Ok(()) => assert!(enough),
                Err(e) => {
                    assert!(!enough);
                    assert_eq!(e.fault().unwrap().kind, FaultKind::ServiceStack, "{e}");
                    d.reset().unwrap();
                }
            }
        }
    }
}

/// The deadline passes while the host's service runs: the call ends when the service returns.
#[test]
fn a_deadline_in_a_service_ends_the_call_when_it_returns() {
    let finished = Arc::new(AtomicU32::new(0));
    let done = finished.clone();
    let d = cold(&forwarder("i(i)"))
        .deadline(Some(Duration::from_millis(5)))
        .service("s", move |caller: &Caller<'_>, x: i32| {
            support::watched(&caller.domain(), Duration::from_millis(5));
            done.fetch_add(1, SeqCst);
            x
        })
        .build()
        .unwrap();
    let e = d.func::<fn(i32) -> i32>("f").unwrap().call(1).unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline);
    assert_eq!(finished.load(SeqCst), 1);
}

#[test]
fn close_and_drop_from_inside_a_service() {
    let image = forwarder("i(i)");
    let slot: Arc<Mutex<Option<Domain>>> = Arc::default();
    let s = slot.clone();
    let d = cold(&image)
        .service("s", move |_: &Caller<'_>, x: i32| {
            s.lock().unwrap().take().unwrap().close();
            x
        })
        .build()
        .unwrap();
    *slot.lock().unwrap() = Some(d.clone());
    let f = d.func::<fn(i32) -> i32>("f").unwrap();
    let e = f.call(1).unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::AnotherThread, "{e}");
    assert!(matches!(f.call(1), Err(CallError::Closed)));
    // The last handle goes while a C function pointer's call is in a service.
    let s = slot.clone();
    let d = cold(&image)
        .service("s", move |_: &Caller<'_>, x: i32| {
            drop(s.lock().unwrap().take());
            x
        })
        .build()
        .unwrap();
    let p = d.function_pointer("f", &"i(i)".parse().unwrap()).unwrap();
    // SAFETY: it was made for this type.
    let p: extern "C" fn(i32) -> i32 = unsafe { std::mem::transmute(p) };
    *slot.lock().unwrap() = Some(d);
    assert_eq!(p(5), 0);
    assert!(matches!(postern::last_error(), Some(CallError::Closed)));
}

#[test]
fn a_fault_handler_sees_every_fault_and_may_panic_or_call() {
    let seen: Arc<Mutex<Vec<FaultKind>>> = Arc::default();
    let s = seen.clone();
    let image = support::image(
        &[("trap", "v()"), ("null", "v()")],
        "trap: ud2\nnull: movl %gs:8(,%eiz,1),%eax\nret",
    );
    let d = cold(&image)
        .on_fault(move |f| s.lock().unwrap().push(f.kind))
        .build()
        .unwrap();
    assert!(d.func::<fn()>("trap").unwrap().call().is_err());
    d.reset().unwrap();
    assert!(d.func::<fn()>("null").unwrap().call().is_err());
    assert_eq!(
        *seen.lock().unwrap(),
        [FaultKind::Trap, FaultKind::NullPointer]
    );
    assert_eq!(d.counters().faults["trap"], 1);
    let d = cold(&image)
        .on_fault(|f| panic!("saw {}", f.kind.name()))
        .build()
        .unwrap();
    let f = d.func::<fn()>("trap").unwrap();
    let p = catch_unwind(AssertUnwindSafe(|| f.call())).unwrap_err();
    assert_eq!(*p.downcast::<String>().unwrap(), "saw trap");
    assert!(d.is_poisoned());
}

/// C functions with narrow parameters get them extended, whatever the extension left in the rest of
/// the registers.
#[test]
fn narrow_parameters_of_c_services() {
    #[inline(never)]
    extern "C" fn seen(a: i8, b: u8, c: i16, d: u16, e: i32, f: u64) -> i64 {
        // Widened as the compiler does it, which trusts the upper bits.
        let parts = [
            i64::from(a),
            i64::from(b),
            i64::from(c),
            i64::from(d),
            i64::from(e),
        ];
        assert_eq!(f, u64::MAX - 5);
        std::hint::black_box(parts).iter().fold(0i64, |sum, part| {
            sum.wrapping_mul(1_000_003).wrapping_add(*part)
        })
    }
    let image = code(
        &[("s", "l(bBhHiL)")],
        &[("f", "l(L)")],
        "f: movabsq $0xa5a5a5a5a5a5a500,%rcx
            leaq 0xfe(%rcx),%rdi
            leaq 0x01(%rcx),%rsi
            movabsq $0xa5a5a5a5a5a50000,%rcx
            leaq 0x7ffd(%rcx),%rdx
            leaq 2(%rcx),%rcx
            leaq -4(%rdx),%r8
            movq $-6,%r9
            jmp s",
    )
    .image();
    // SAFETY: the function has this signature.
    let d = unsafe {
        cold(&image).service_c("s", seen as *const (), "l(bBhHiL)".parse().unwrap(), 65536)
    }
    .build()
    .unwrap();
    let result = d.func::<fn(u64) -> i64>("f").unwrap().call(0).unwrap();
    let e = i64::from(0xa5a5_7ff9_u32 as i32);
    let expected = [-2, 1, 0x7ffd, 2, e].iter().fold(0i64, |sum, part| {
        sum.wrapping_mul(1_000_003).wrapping_add(*part)
    });
    assert_eq!(result, expected);
    assert_eq!(d.counters().services["s"], 1);
}
