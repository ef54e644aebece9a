//! Peers: one extension calls another. Results, rings, faults as values, deadlines, stacks, authority, registers.
mod support;
use postern::{
    Asked, BindError, CallError, Caller, Decider, Domain, FaultKind, Image, InstantiateError,
    Limits, PeerError, PeerExport, Question, SymbolError, Verdict,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::Duration;
use support::{code, cold};

type Entry = postern::Func<fn(i64) -> i64>;

/// `call` passes its argument to the peer; `why` says what became of the last call of a peer within it, when that returned 0;
/// `raw` calls and passes the result on.
fn caller() -> Image {
    code(
        &[("peer", "l(l)"), ("__postern_peer_error", "i()")],
        &[("call", "l(l)"), ("raw", "l(l)"), ("twice", "l(l)")],
        "call: call peer
            testq %rax,%rax
            jne 1f
            call __postern_peer_error
            movslq %eax,%rax
            negq %rax
         1: ret
         raw: jmp peer
         twice: PUSH %rdi
            call peer
            POP %rdi
            PUSH %rax
            call peer
            POP %rcx
            addq %rcx,%rax
            ret",
    )
    .image()
}

/// What a peer can do, well or badly.
fn callee() -> Image {
    code(
        &[("s", "l(l)"), ("__postern_exit", "v(i)")],
        &[
            ("add", "l(l)"),
            ("null", "l(l)"),
            ("trap", "l(l)"),
            ("recurse", "l(l)"),
            ("overflow", "l(l)"),
            ("spin", "l(l)"),
            ("jump", "l(l)"),
            ("divide", "l(l)"),
            ("service", "l(l)"),
            ("leave", "l(l)"),
            ("add_float", "d(dd)"),
            ("seven", "l(lllllll)"),
            ("nine", "d(ddddddddd)"),
        ],
        "add: leaq 1(%rdi),%rax
            ret
         null: movq %gs:16(,%eiz,1),%rax
            ret
         trap: ud2
         recurse: call recurse
            ret
         overflow: leaq -256(%r15),%r15
            movq %rdi,%gs:(%r15d)
            jmp overflow
         spin: jmp spin
         jump: GUARDED %edi, jmp
         divide: xorl %ecx,%ecx
            xorl %edx,%edx
            divq %rcx
            ret
         service: call s
            ret
         leave: call __postern_exit
            ret
         add_float: addsd %xmm1,%xmm0
            ret
         seven: movq %gs:(%r15d),%rax
            ret
         nine: ret",
    )
    .image()
}

fn serving(service: impl Fn(&Caller<'_>, i64) -> i64 + Send + Sync + 'static) -> Domain {
    cold(&callee()).service("s", service).build().unwrap()
}

fn plain() -> Domain {
    serving(|_, x| x)
}

fn calling(export: &PeerExport) -> Domain {
    cold(&caller()).peer("peer", export).build().unwrap()
}

fn ask(d: &Domain, x: i64) -> Result<i64, CallError> {
    d.func::<fn(i64) -> i64>("call").unwrap().call(x)
}

fn error(e: PeerError) -> i64 {
    -(e as i64)
}

#[test]
fn a_peer_is_called_and_returns() {
    let b = plain();
    let a = calling(&b.peer_export("add").unwrap());
    let entry = a.func::<fn(i64) -> i64>("call").unwrap();
    for x in 0..1000 {
        assert_eq!(entry.call(x).unwrap(), x + 1);
    }
    assert_eq!(
        a.func::<fn(i64) -> i64>("twice").unwrap().call(4).unwrap(),
        10
    );
    // A jump to the slot: the peer returns to the host's gate.
    let raw = a.func::<fn(i64) -> i64>("raw").unwrap();
    for x in 0..100 {
        assert_eq!(raw.call(x).unwrap() + entry.call(x).unwrap(), 2 * x + 2);
    }
    assert_eq!(b.counters().calls, 1202);
    assert_eq!(a.counters().calls, 1201);
    assert_eq!(a.counters().services["peer"], 1202);
    // The called domain stays alive without its host's handle.
    drop(b);
    assert_eq!(entry.call(1).unwrap(), 2);
    assert_eq!(postern::nesting(), 0);
}

#[test]
fn every_fault_of_a_peer_is_a_value() {
    let kinds: Arc<Mutex<Vec<FaultKind>>> = Arc::default();
    let seen = kinds.clone();
    let b = cold(&callee())
        .deadline(Some(Duration::from_millis(20)))
        .service("s", |c: &Caller<'_>, _: i64| {
            c.abort("no");
            1i64
        })
        .on_fault(move |f| seen.lock().unwrap().push(f.kind))
        .build()
        .unwrap();
    let a = cold(&caller())
        .deadline(None)
        .peer_open("peer")
        .build()
        .unwrap();
    assert_eq!(ask(&a, 1).unwrap(), error(PeerError::Unbound));
    for (name, kind) in [
        ("null", FaultKind::NullPointer),
        ("trap", FaultKind::Trap),
        ("recurse", FaultKind::ControlStackOverflow),
        ("overflow", FaultKind::DataStackOverflow),
        ("jump", FaultKind::BadJump),
        ("divide", FaultKind::Arithmetic),
        ("spin", FaultKind::Deadline),
        ("service", FaultKind::Aborted),
    ] {
        a.bind_peer("peer", &b.peer_export(name).unwrap()).unwrap();
        let expected = match kind {
            FaultKind::Deadline => PeerError::Time,
            _ => PeerError::Fault,
        };
        for _ in 0..3 {
            assert_eq!(ask(&a, 12).unwrap(), error(expected), "{name}");
            assert_eq!(kinds.lock().unwrap().pop(), Some(kind));
            assert!(b.is_poisoned() && !a.is_poisoned());
            // From now on it is refused, in the same call and in others.
            let refused = error(PeerError::Poisoned);
            assert_eq!(ask(&a, 12).unwrap(), refused, "{name}");
            assert_eq!(
                a.func::<fn(i64) -> i64>("twice").unwrap().call(1).unwrap(),
                0
            );
            b.reset().unwrap();
        }
    }
    a.bind_peer("peer", &b.peer_export("add").unwrap()).unwrap();
    assert_eq!(ask(&a, 12).unwrap(), 13);
    a.bind_peer("peer", &b.peer_export("leave").unwrap())
        .unwrap();
    assert_eq!(ask(&a, 12).unwrap(), error(PeerError::Exited));
    assert!(!b.is_poisoned());
    // A success forgets the failure before it.
    a.bind_peer("peer", &b.peer_export("add").unwrap()).unwrap();
    assert_eq!(ask(&a, -1).unwrap(), 0);
    assert_eq!(a.counters().faults.len(), 0);
    assert_eq!(postern::nesting(), 0);
}

/// Two domains whose `f(n)` asks the other one for `n - 1`, and says the reason of a refusal.
fn ring(depths: [Option<u32>; 2]) -> [Domain; 2] {
    let image = code(
        &[
            ("next", "l(l)"),
            ("__postern_peer_error", "i()"),
            ("seen", "v(i)"),
        ],
        &[("f", "l(l)")],
        "f: testq %rdi,%rdi
            je 1f
            PUSH %rdi
            decq %rdi
            call next
            PUSH %rax
            call __postern_peer_error
            movl %eax,%edi
            call seen
            POP %rax
            POP %rdi
            addq %rdi,%rax
            ret
         1: xorl %eax,%eax
            ret",
    )
    .image();
    let domains = depths.map(|depth| {
        let mut limits = Limits::default();
        limits.call_depth = depth;
        cold(&image)
            .limits(limits)
            .peer_open("next")
            .service("seen", |_: &Caller<'_>, e: i32| {
                SEEN.with(|s| s.set(s.get() | 1 << e));
            })
            .build()
            .unwrap()
    });
    for i in [0, 1] {
        let export = domains[1 - i].peer_export("f").unwrap();
        domains[i].bind_peer("next", &export).unwrap();
    }
    domains
}

thread_local! {
    static SEEN: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

#[test]
fn peers_in_a_ring_up_to_the_limit() {
    for depths in [[None, None], [Some(1000), None], [Some(1000), Some(1000)]] {
        let [a, b] = ring(depths);
        let f = a.func::<fn(i64) -> i64>("f").unwrap();
        for n in [0, 1, 2, 3, 10, 64] {
            SEEN.set(0);
            assert_eq!(f.call(n).unwrap(), n * (n + 1) / 2, "{depths:?}");
            assert_eq!(SEEN.get(), u32::from(n != 0), "{depths:?} {n}");
        }
        // The 65th call from a call is refused; nobody is poisoned, and all others get their answers.
        SEEN.set(0);
        assert_eq!(f.call(100).unwrap(), (36..=100).sum::<i64>(), "{depths:?}");
        assert_eq!(SEEN.get(), 1 | 1 << PeerError::TooDeep as u32);
        assert!(!a.is_poisoned() && !b.is_poisoned());
        assert_eq!(f.call(10).unwrap(), 55);
        a.reset().unwrap();
        b.reset().unwrap();
        drop(b);
        SEEN.set(0);
        assert_eq!(f.call(1).unwrap(), 1);
        assert_eq!(SEEN.get(), 1 << PeerError::Closed as u32);
    }
}

/// A ring whose host's services take part, with a domain that calls itself.
#[test]
fn peers_services_and_a_domain_that_calls_itself() {
    let entry: Arc<OnceLock<Entry>> = Arc::default();
    let image = code(
        &[("next", "l(l)"), ("host", "l(l)")],
        &[("f", "l(l)")],
        "f: testq %rdi,%rdi
            je 1f
            PUSH %rdi
            decq %rdi
            testl $1,%edi
            je 2f
            call next
            jmp 3f
         2: call host
         3: POP %rdi
            addq %rdi,%rax
            ret
         1: xorl %eax,%eax
            ret",
    )
    .image();
    let e = entry.clone();
    let d = cold(&image)
        .peer_open("next")
        .service("host", move |c: &Caller<'_>, n: i64| {
            assert!(c.domain().base() != 0);
            e.get().unwrap().call(n).unwrap()
        })
        .build()
        .unwrap();
    d.bind_peer("next", &d.peer_export("f").unwrap()).unwrap();
    let f = d.func::<fn(i64) -> i64>("f").unwrap();
    assert!(entry.set(f.clone()).is_ok());
    for n in [1, 2, 3, 30, 60] {
        assert_eq!(f.call(n).unwrap(), n * (n + 1) / 2);
    }
}

#[test]
fn types_are_compared_when_a_peer_is_bound() {
    let b = plain();
    assert!(matches!(
        b.peer_export("none"),
        Err(SymbolError::Missing { .. })
    ));
    for name in ["seven", "nine"] {
        assert!(matches!(
            b.peer_export(name),
            Err(SymbolError::Parameters(_))
        ));
    }
    let floats = b.peer_export("add_float").unwrap();
    assert!(matches!(
        cold(&caller()).peer("peer", &floats).build(),
        Err(InstantiateError::Signature { .. })
    ));
    assert!(matches!(
        cold(&caller()).build(),
        Err(InstantiateError::Unresolved(_))
    ));
    let a = cold(&caller()).peer_open("peer").build().unwrap();
    assert!(matches!(
        a.bind_peer("peer", &floats),
        Err(BindError::Signature { .. })
    ));
    let add = b.peer_export("add").unwrap();
    for name in ["__postern_peer_error", "call", "other"] {
        assert!(matches!(
            a.bind_peer(name, &add),
            Err(BindError::NotOpen(_))
        ));
    }
    // Bound anew, calls go there.
    a.bind_peer("peer", &add).unwrap();
    assert_eq!(ask(&a, 1).unwrap(), 2);
    let other = serving(|_, x| x * 7);
    a.bind_peer("peer", &other.peer_export("service").unwrap())
        .unwrap();
    assert_eq!(ask(&a, 2).unwrap(), 14);
    // That does not keep it alive.
    drop(other);
    assert_eq!(ask(&a, 2).unwrap(), error(PeerError::Closed));
}

#[test]
fn floats_cross_in_all_classes() {
    for (touch, x87) in [
        ("", false),
        ("vxorps %ymm15,%ymm15,%ymm15\n", false),
        ("fld1\nfstp %st(0)\n", true),
    ] {
        for (other, y87) in [
            ("", false),
            ("vxorps %ymm15,%ymm15,%ymm15\n", false),
            ("fld1\nfstp %st(0)\n", true),
        ] {
            let mut b = code(
                &[],
                &[("f", "d(ldddddddd)")],
                &format!(
                    "f: {touch} addsd %xmm7,%xmm0\naddsd %xmm2,%xmm0\ncvtsi2sdq %rdi,%xmm1\naddsd %xmm1,%xmm0\nret"
                ),
            );
            b.builder.x87(x87);
            let b = cold(&b.image()).build().unwrap();
            let mut a = code(
                &[("f", "d(ldddddddd)")],
                &[("g", "d(ld)")],
                &format!(
                    "g: {other} movaps %xmm0,%xmm7\nmovaps %xmm0,%xmm2\ncall f\naddsd %xmm1,%xmm0\nret"
                ),
            );
            a.builder.x87(y87);
            let a = cold(&a.image())
                .peer("f", &b.peer_export("f").unwrap())
                .build()
                .unwrap();
            let g = a.func::<fn(i64, f64) -> f64>("g").unwrap();
            for _ in 0..3 {
                assert_eq!(g.call(7, 2.5).unwrap(), 14.5, "{touch:?} {other:?}");
            }
        }
    }
}

/// Results and arguments are cut to their types; nothing else of either side's registers reaches the other, for every pair of
/// vector classes, with and without call-depth limits (which take the slow path).
#[test]
fn no_register_crosses() {
    // Fills every register that is not an argument or a result with -1.
    let fill = |class: &str, saved: bool| {
        let mut text = String::new();
        for r in ["rax", "rcx", "rdx", "rsi", "r8", "r9", "r10"] {
            text += &format!("movq $-1,%{r}\n");
        }
        if saved {
            for r in ["rbx", "rbp", "r12", "r13", "r14"] {
                text += &format!("movq $-1,%{r}\n");
            }
        }
        for i in 0..16 {
            match class {
                "sse" => text += &format!("pcmpeqd %xmm{i},%xmm{i}\n"),
                "avx" => {
                    text += &format!(
                        "vxorps %ymm{i},%ymm{i},%ymm{i}\nvcmptrueps %ymm{i},%ymm{i},%ymm{i}\n"
                    )
                }
                _ => {}
            }
        }
        text
    };
    // Ors all registers but those named into rax, by way of memory for vectors.
    let gather = |class: &str, but: &[&str]| {
        let mut text = String::new();
        for r in [
            "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "rbx", "rbp", "r12", "r13", "r14",
        ] {
            if !but.contains(&r) {
                text += &format!("orq %{r},%rax\n");
            }
        }
        for i in 0..16 {
            match class {
                "sse" => text += &format!("movups %xmm{i},%gs:room(,%eiz,1)\n"),
                "avx" => text += &format!("vmovups %ymm{i},%gs:room(,%eiz,1)\n"),
                _ => {}
            }
            if !class.is_empty() {
                for k in 0..4 {
                    text += &format!("orq %gs:room+{}(,%eiz,1),%rax\n", 8 * k);
                }
            }
        }
        text
    };
    let mut limits = Limits::default();
    limits.call_depth = Some(50);
    for a_class in ["", "sse", "avx"] {
        for b_class in ["", "sse", "avx"] {
            for slow in [None, Some("a"), Some("b")] {
                // The callee: 1 if it sees anything besides its 8-bit argument; else the argument, with dirt above it.
                let b = code(
                    &[],
                    &[("f", "i(B)")],
                    &format!(
                        ".bss\nroom: .skip 32\n.text\nf: {}
                            cmpq $0x5a,%rdi
                            jne 1f
                            testq %rax,%rax
                            jne 1f
                            {}
                            movabsq $0x7777777700000042,%rax
                            ret
                         1: movl $1,%eax
                            ret",
                        gather(b_class, &["rdi", "r11"]),
                        fill(b_class, true),
                    ),
                );
                let mut b = cold(&b.image());
                if slow == Some("b") {
                    b = b.limits(limits.clone());
                }
                let b = b.build().unwrap();
                let a = code(
                    &[("f", "i(B)")],
                    &[("g", "l()")],
                    &format!(
                        ".bss\nroom: .skip 32\n.text
                         g: {}
                            movl $11,%ebx
                            movl $12,%ebp
                            movl $13,%r12d
                            movl $14,%r13d
                            movl $15,%r14d
                            movq $-1,%rdi
                            movb $0x5a,%dil
                            PUSH %rdi
                            call f
                            cmpq $0x42,%rax
                            jne 1f
                            xorl %eax,%eax
                            xorq $11,%rbx
                            xorq $12,%rbp
                            xorq $13,%r12
                            xorq $14,%r13
                            xorq $15,%r14
                            {}
                            POP %rdi
                            incq %rdi
                            addq $0xa5,%rdi
                            orq %rdi,%rax
                            ret
                         1: POP %rdi
                            orq $-16,%rax
                            ret",
                        fill(a_class, false),
                        gather(a_class, &[]),
                    ),
                );
                let mut a = cold(&a.image()).peer("f", &b.peer_export("f").unwrap());
                if slow == Some("a") {
                    a = a.limits(limits.clone());
                }
                let a = a.build().unwrap();
                for _ in 0..3 {
                    assert_eq!(
                        a.func::<fn() -> i64>("g").unwrap().call().unwrap(),
                        0,
                        "{a_class:?} {b_class:?} {slow:?}"
                    );
                }
            }
        }
    }
}

/// Each has its own authority and its own memory.
#[test]
fn a_peer_runs_with_its_own_authority_and_stack() {
    let b = code(
        &[("who", "l()")],
        &[("f", "l(p)")],
        // Its own memory at the offset, and its own service.
        "f: movq %gs:(%edi),%rbx
            call who
            leaq (%rax,%rbx),%rax
            movl %r15d,%ecx
            shrl $18,%ecx
            ret
         .data
         .quad 70",
    );
    let (ours, theirs): (Arc<OnceLock<u64>>, Arc<OnceLock<u64>>) = Default::default();
    let who = |base: &Arc<OnceLock<u64>>, n: i64| {
        let base = base.clone();
        move |c: &Caller<'_>| {
            assert_eq!(c.domain().base(), *base.get().unwrap());
            n
        }
    };
    let b = cold(&b.image())
        .service("who", who(&theirs, 7))
        .build()
        .unwrap();
    theirs.set(b.base()).unwrap();
    let image = code(
        &[("f", "l(p)"), ("who", "l()")],
        &[("g", "l(p)")],
        "g: call f
            PUSH %rax
            call who
            POP %rcx
            leaq (%rax,%rcx),%rax
            ret
         .data
         .quad 500",
    );
    let a = cold(&image.image())
        .peer("f", &b.peer_export("f").unwrap())
        .service("who", who(&ours, 1000))
        .build()
        .unwrap();
    ours.set(a.base()).unwrap();
    let data = data_with(&a, 500);
    assert_eq!(data, data_with(&b, 70));
    for _ in 0..3 {
        let g = a.func::<fn(postern::Offset) -> i64>("g").unwrap();
        assert_eq!(g.call(data).unwrap(), 1077);
    }
}

/// Where the domain's data begins with this word.
fn data_with(d: &Domain, word: u64) -> postern::Offset {
    let found = (0x1_0000..0x20_0000u32)
        .step_by(8)
        .map(postern::Offset)
        .find(|&o| d.read_vec(o, 8).is_ok_and(|b| b == word.to_le_bytes()));
    found.unwrap()
}

/// A deadline of the caller's passes while the peer works: it acts when the peer has returned, and the peer is not harmed.
#[test]
fn the_callers_deadline_waits_for_the_peer() {
    let entered: Arc<AtomicU32> = Arc::default();
    let n = entered.clone();
    // The peer's service returns only after the watchdog has asked for the end of the caller's call.
    let b = cold(&callee())
        .deadline(None)
        .service("s", move |_: &Caller<'_>, x: i64| {
            std::thread::sleep(Duration::from_millis(60));
            n.fetch_add(1, SeqCst);
            x
        })
        .build()
        .unwrap();
    let a = cold(&caller())
        .deadline(Some(Duration::from_millis(5)))
        .peer("peer", &b.peer_export("service").unwrap())
        .build()
        .unwrap();
    for _ in 0..3 {
        let e = ask(&a, 5).unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline);
        assert!(a.is_poisoned() && !b.is_poisoned());
        a.reset().unwrap();
    }
    assert_eq!(entered.load(SeqCst), 3);
    assert_eq!(b.counters().faults.len(), 0);
}

/// The export says how long: a call that takes longer ends, and its end is the peer's fault, not the caller's.
#[test]
fn the_exports_limit_bounds_the_wait() {
    let b = cold(&callee())
        .deadline(None)
        .service("s", |_: &Caller<'_>, x: i64| x)
        .build()
        .unwrap();
    let export = b.peer_export("spin").unwrap();
    let a = cold(&caller())
        .deadline(None)
        .peer("peer", &export.time(Duration::from_millis(5)))
        .build()
        .unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&a, 5).unwrap(), error(PeerError::Time));
        assert!(b.is_poisoned() && !a.is_poisoned());
        b.reset().unwrap();
    }
    // The limit is that call's only: the host's own calls have none, and are ended otherwise.
    let spin = b.func::<fn(i64) -> i64>("spin").unwrap();
    let call = std::thread::spawn(move || spin.call(1));
    std::thread::sleep(Duration::from_millis(40));
    assert!(!call.is_finished());
    while !call.is_finished() {
        b.interrupt();
        std::thread::yield_now();
    }
    let e = call.join().unwrap().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Interrupted);
}

/// Interrupts reach the domain that they are meant for, and only that.
#[test]
fn interrupts_while_a_peer_runs() {
    let (enter, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (e, l) = (enter.clone(), leave.clone());
    let b = serving(move |_, x| {
        e.wait();
        l.wait();
        x
    });
    let a = calling(&b.peer_export("service").unwrap());
    let (mine, theirs) = (a.clone(), b.clone());
    let call = std::thread::spawn(move || {
        let caller = ask(&mine, 3);
        let callee = ask(&mine, 3);
        (caller, callee, ask(&mine, 3))
    });
    // The caller: its peer finishes, then it ends.
    enter.wait();
    a.interrupt();
    leave.wait();
    // The callee: its call ends, the caller gets a value.
    enter.wait();
    theirs.interrupt();
    leave.wait();
    enter.wait();
    leave.wait();
    let (caller, callee, nobody) = call.join().unwrap();
    assert_eq!(
        caller.unwrap_err().fault().unwrap().kind,
        FaultKind::Interrupted
    );
    assert_eq!(callee.unwrap(), error(PeerError::Interrupted));
    assert_eq!(nobody.unwrap(), 3);
    assert!(!a.is_poisoned() && !b.is_poisoned());
}

/// Reset waits for nobody who waits; close and drop end the call, and the caller gets a value.
#[test]
fn reset_close_and_drop_while_the_caller_waits() {
    let gates = || (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    for what in ["reset", "close", "drop", "caller"] {
        let (enter, leave) = gates();
        let (e, l) = (enter.clone(), leave.clone());
        let b = serving(move |c, x| {
            e.wait();
            l.wait();
            if x == 4 {
                // The handle is gone: this ends the service.
                let _ = c.domain();
            }
            x
        });
        let a = cold(&caller()).peer_open("peer").build().unwrap();
        a.bind_peer("peer", &b.peer_export("service").unwrap())
            .unwrap();
        let mine = a.clone();
        let argument = if what == "drop" { 4 } else { 3 };
        let call = std::thread::spawn(move || ask(&mine, argument));
        enter.wait();
        assert!(a.reset().is_err() && b.reset().is_err());
        let result = match what {
            "reset" => {
                leave.wait();
                assert_eq!(call.join().unwrap().unwrap(), 3);
                b.reset().unwrap();
                a.reset().unwrap();
                continue;
            }
            "close" => {
                let closing = std::thread::spawn(move || b.close());
                std::thread::sleep(Duration::from_millis(5));
                leave.wait();
                closing.join().unwrap();
                call.join().unwrap()
            }
            "drop" => {
                let dropping = std::thread::spawn(move || drop(b));
                std::thread::sleep(Duration::from_millis(20));
                leave.wait();
                dropping.join().unwrap();
                call.join().unwrap()
            }
            _ => {
                let closing = std::thread::spawn(move || a.close());
                std::thread::sleep(Duration::from_millis(5));
                leave.wait();
                closing.join().unwrap();
                let e = call.join().unwrap().unwrap_err();
                assert_eq!(e.fault().unwrap().kind, FaultKind::AnotherThread);
                assert!(!b.is_poisoned());
                continue;
            }
        };
        let value = result.unwrap();
        assert!(
            [error(PeerError::Poisoned), error(PeerError::Closed)].contains(&value),
            "{what}: {value}"
        );
        assert!(!a.is_poisoned());
        assert_eq!(ask(&a, 3).unwrap(), error(PeerError::Closed));
    }
}

/// A domain in the middle of a chain is dropped by a service at its end, and its place is taken by another.
#[test]
fn a_domain_that_waits_in_the_chain_is_dropped() {
    let middle: Arc<Mutex<Option<Domain>>> = Arc::default();
    let m = middle.clone();
    let made: Arc<Mutex<Vec<Domain>>> = Arc::default();
    let keep = made.clone();
    let c = serving(move |_, x| {
        drop(m.lock().unwrap().take());
        for _ in 0..3 {
            keep.lock().unwrap().push(plain());
        }
        x
    });
    for direct in [true, false] {
        let (first, second) = (
            cold(&caller()).peer_open("peer").build().unwrap(),
            calling(&c.peer_export("service").unwrap()),
        );
        first
            .bind_peer("peer", &second.peer_export("raw").unwrap())
            .unwrap();
        *middle.lock().unwrap() = Some(second);
        let value = ask(&first, 9).unwrap();
        let ended = [error(PeerError::Poisoned), error(PeerError::Closed)];
        assert!(ended.contains(&value), "{value} {direct}");
        assert!(!first.is_poisoned() && !c.is_poisoned());
        made.lock().unwrap().clear();
    }
}

/// What the caller lacks is the caller's fault, before the peer begins.
#[test]
fn the_stack_is_checked_before_the_peer_begins() {
    let b = plain();
    let a = calling(&b.peer_export("add").unwrap().stack(1 << 40));
    for _ in 0..3 {
        let e = ask(&a, 1).unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::ServiceStack);
        assert!(a.is_poisoned() && !b.is_poisoned());
        a.reset().unwrap();
    }
    assert_eq!(b.counters().calls, 0);
    // A recursion that calls the peer at each level runs out of stack before a gate, never in the peer.
    let deep = code(
        &[("peer", "l(l)")],
        &[("f", "l(l)")],
        "f: call peer
            movq %rax,%rdi
            call f
            ret",
    )
    .image();
    let d = cold(&deep)
        .deadline(None)
        .peer("peer", &b.peer_export("add").unwrap())
        .build()
        .unwrap();
    for _ in 0..3 {
        let f = d.func::<fn(i64) -> i64>("f").unwrap();
        let e = f.call(1).unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::ServiceStack);
        d.reset().unwrap();
    }
    assert!(!b.is_poisoned() && b.counters().faults.is_empty());
    assert!(b.counters().calls > 1000);
}

/// The caller's own data stack pointer does not matter to the peer, and comes back.
#[test]
fn a_forged_data_stack_pointer_harms_nobody() {
    let b = plain();
    let a = code(
        &[("peer", "l(l)")],
        &[("f", "l(l)")],
        "f: movq %r15,%rbx
            movq %rdi,%r15
            call peer
            xorq %r15,%rax
            movq %rbx,%r15
            ret",
    );
    let a = cold(&a.image())
        .peer("peer", &b.peer_export("add").unwrap())
        .build()
        .unwrap();
    let f = a.func::<fn(i64) -> i64>("f").unwrap();
    for forged in [1, 0x1_0000, 0xffff_ffff, -16, i64::MAX] {
        for _ in 0..2 {
            // r15 comes back as it was, whole or cut to the 32 bits that count.
            let x = f.call(forged).unwrap();
            let whole = forged.wrapping_add(1) ^ forged;
            let cut = forged.wrapping_add(1) ^ i64::from(forged as u32);
            assert!(x == whole || x == cut, "{forged:#x}: {x:#x}");
        }
    }
    assert!(!b.is_poisoned());
}

/// A panic of a service of the peer's is the host's own affair: it goes around both.
#[test]
fn a_panic_in_the_peers_service_goes_around_both() {
    let b = serving(|_, x| if x < 0 { panic!("negative {x}") } else { x });
    let a = calling(&b.peer_export("service").unwrap());
    for x in [-5, 7, -9, 11] {
        match catch_unwind(AssertUnwindSafe(|| ask(&a, x))) {
            Ok(r) => assert_eq!(r.unwrap(), x),
            Err(p) => assert_eq!(*p.downcast::<String>().unwrap(), format!("negative {x}")),
        }
        assert_eq!(postern::nesting(), 0);
    }
    assert!(!a.is_poisoned() && !b.is_poisoned());
}

/// A handler of the host's for faults may call extensions while the caller waits.
#[test]
fn the_peers_fault_handler_may_call_extensions() {
    let other = plain();
    let add = other.func::<fn(i64) -> i64>("add").unwrap();
    let seen: Arc<AtomicU32> = Arc::default();
    let n = seen.clone();
    let b = cold(&callee())
        .service("s", |_: &Caller<'_>, x: i64| x)
        .on_fault(move |_| {
            n.fetch_add(add.call(41).unwrap() as u32, SeqCst);
        })
        .build()
        .unwrap();
    let a = calling(&b.peer_export("trap").unwrap());
    for round in 1..4 {
        assert_eq!(ask(&a, 1).unwrap(), error(PeerError::Fault));
        assert_eq!(seen.load(SeqCst), 42 * round);
        b.reset().unwrap();
    }
}

#[test]
fn many_threads_and_new_ones() {
    let b = plain();
    let a = calling(&b.peer_export("add").unwrap());
    for _ in 0..3 {
        let workers: Vec<_> = (0..8)
            .map(|i| {
                let a = a.clone();
                std::thread::spawn(move || {
                    let call = a.func::<fn(i64) -> i64>("call").unwrap();
                    for x in 0..500 {
                        assert_eq!(call.call(i * 1000 + x).unwrap(), i * 1000 + x + 1);
                    }
                })
            })
            .collect();
        for w in workers {
            w.join().unwrap();
        }
    }
    assert_eq!(b.counters().calls, 3 * 8 * 500);
    a.reset().unwrap();
    b.reset().unwrap();
}

/// On a coroutine's stack, where the control stack is the runtime's own.
#[test]
fn on_a_coroutines_stack() {
    let b = plain();
    let a = calling(&b.peer_export("add").unwrap());
    let trap = calling(&b.peer_export("trap").unwrap());
    let mut stack = vec![0u8; 512 << 10];
    support::on_stack(&mut stack, || {
        for x in 0..50 {
            assert_eq!(ask(&a, x).unwrap(), x + 1);
        }
        assert_eq!(ask(&trap, 1).unwrap(), error(PeerError::Fault));
    });
    b.reset().unwrap();
    assert_eq!(ask(&a, 1).unwrap(), 2);
}

/// The child of a fork finds both as the parent left them; who waits in the parent's other threads is poisoned there.
#[test]
fn fork_with_peers() {
    support::succeeds_in_child("fork_with_peers", || {
        let (enter, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (e, l) = (enter.clone(), leave.clone());
        let b = serving(move |_, x| {
            if x == 1 {
                e.wait();
                l.wait();
            }
            x
        });
        let a = calling(&b.peer_export("service").unwrap());
        assert_eq!(ask(&a, 2).unwrap(), 2);
        let mine = a.clone();
        let call = std::thread::spawn(move || ask(&mine, 1));
        enter.wait();
        let status = support::fork(|| {
            let poisoned = a.is_poisoned() && b.is_poisoned();
            let reset = a.reset().is_ok() && b.reset().is_ok();
            poisoned && reset && ask(&a, 7).unwrap() == 7
        });
        assert_eq!(status, 0);
        leave.wait();
        assert_eq!(call.join().unwrap().unwrap(), 1);
        // From within: the child goes on in the call.
        let b = serving(|_, x| {
            let status = support::fork(|| true);
            x + i64::from(status)
        });
        let a = calling(&b.peer_export("service").unwrap());
        assert_eq!(ask(&a, 5).unwrap(), 5);
    });
}

/// The caller's decider is asked about calls of peers as about services, and nothing goes by it.
#[test]
fn deciders_and_peers() {
    let b = plain();
    let asked: Arc<AtomicU32> = Arc::default();
    let n = asked.clone();
    let a = calling(&b.peer_export("add").unwrap());
    for x in 0..3 {
        assert_eq!(ask(&a, x).unwrap(), x + 1);
    }
    let decide = move |_: &Caller<'_>, question: &Question<'_>| {
        n.fetch_add(1, SeqCst);
        match question.call {
            Asked::Service { name, integers, .. } => {
                assert_eq!((name, integers.len()), ("peer", 1));
                match integers[0] {
                    7 => Verdict::Deny(13),
                    8 => Verdict::Emulate(99, Vec::new()),
                    _ => Verdict::Allow,
                }
            }
            _ => panic!("no call of the system"),
        }
    };
    a.set_decider(Some(Decider::closure(decide)));
    for x in 0..3 {
        assert_eq!(ask(&a, x).unwrap(), x + 1);
    }
    let calls = b.counters().calls;
    assert_eq!(ask(&a, 7).unwrap(), error(PeerError::Denied));
    assert_eq!(ask(&a, 8).unwrap(), 99);
    assert_eq!(b.counters().calls, calls);
    assert_eq!(asked.load(SeqCst), 5);
    a.set_decider(None);
    assert_eq!(ask(&a, 7).unwrap(), 8);
    assert_eq!(asked.load(SeqCst), 5);
}

/// The header for extensions has the same numbers.
#[test]
fn the_header_names_every_error() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../toolchain/include/postern/extension.h"
    );
    let header = std::fs::read_to_string(path).unwrap();
    for (name, error) in [
        ("FAULT", PeerError::Fault),
        ("POISONED", PeerError::Poisoned),
        ("BUSY", PeerError::Busy),
        ("CLOSED", PeerError::Closed),
        ("UNBOUND", PeerError::Unbound),
        ("TOO_DEEP", PeerError::TooDeep),
        ("NO_ROOM", PeerError::NoRoom),
        ("TIME", PeerError::Time),
        ("INTERRUPTED", PeerError::Interrupted),
        ("EXITED", PeerError::Exited),
        ("THREAD", PeerError::Thread),
        ("DENIED", PeerError::Denied),
    ] {
        let line = format!("POSTERN_PEER_{name} = {}", error as u32);
        assert_eq!(header.matches(&line).count(), 1, "{line}");
    }
}
