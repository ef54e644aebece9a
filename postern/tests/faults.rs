//! Every kind of fault: kind, offset, address, place and backtrace, exactly; and the host goes on.
mod support;
use postern::{CallError, Caller, Domain, Fault, FaultKind, Limits, Offset};
use postern_verifier::window::{INFO, LIMIT};
use std::sync::Arc;
use std::time::Duration;
use support::{Code, code, cold};

const SOURCE: &str = r#"
    .section .rodata
    .globl constant
    constant: .quad 77
    .data
    .globl variable
    variable: .quad 5
    .text
    load:   movl %gs:(%edi),%eax
            ret
    store:  movl %esi,%gs:(%edi)
            ret
    wide:   movups %gs:(%edi),%xmm0
            ret
    aligned: movaps %gs:(%edi),%xmm0
            ret
    jump:   GUARDED %edi, jmp
    pointer_call: GUARDED %edi, call
            ret
    target: PAD
            movl $3,%eax
            ret
    trap:   ud2
    divide: movl %edi,%eax
            cltd
            idivl %esi
            ret
    stop:   int3
    spin:   jmp spin
    recurse: call recurse
            ret
    deep:   PUSH %rdi
            call deep
            POP %rdi
            ret
    big:    leaq -0x10000(%r15),%r15
            movl $1,%gs:(%r15d)
            call big
            ret
    chain:  call middle
    after_chain: ret
    middle: call inner
    after_middle: ret
    inner:  nop
    culprit: movl %gs:4(%edi),%eax
            ret
    serve:  jmp s
"#;

fn built() -> Code {
    code(
        &[("s", "v()")],
        &[
            ("load", "i(p)"),
            ("store", "v(pi)"),
            ("wide", "v(p)"),
            ("aligned", "v(p)"),
            ("jump", "i(p)"),
            ("pointer_call", "i(p)"),
            ("trap", "v()"),
            ("divide", "i(ii)"),
            ("stop", "v()"),
            ("spin", "v()"),
            ("recurse", "v()"),
            ("deep", "v(l)"),
            ("big", "v()"),
            ("chain", "i(p)"),
            ("serve", "v()"),
        ],
        SOURCE,
    )
}

struct Bench {
    code: Code,
    domain: Domain,
}

impl Bench {
    fn new(limits: impl FnOnce(&mut Limits)) -> Bench {
        let code = built();
        let mut l = Limits::default();
        l.heap = Some(1 << 20);
        limits(&mut l);
        let domain = cold(&code.image())
            .limits(l)
            .service("s", |_: &Caller<'_>| {})
            .build()
            .unwrap();
        Bench { code, domain }
    }

    /// The fault of `call`, after which the domain is poisoned, reset and works.
    fn fault<R>(&self, call: Result<R, postern::CallError>) -> Fault {
        let error = call.err().expect("the call must not return");
        let fault = error.fault().unwrap_or_else(|| panic!("{error}")).clone();
        assert!(self.domain.is_poisoned());
        self.domain.reset().unwrap();
        let load = self.domain.func::<fn(Offset) -> i32>("load").unwrap();
        assert_eq!(load.call(Offset(self.code.at("variable"))).unwrap(), 5);
        fault
    }

    fn access(&self, name: &str, address: u32) -> Fault {
        let f = self.domain.func_unchecked::<fn(Offset, i32)>(name).unwrap();
        let fault = self.fault(f.call(Offset(address), 1));
        assert_eq!(fault.offset, Some(Offset(self.code.at(name))), "{fault}");
        fault
    }
}

#[test]
fn accesses_by_place() {
    let b = Bench::new(|_| {});
    let layout = b.domain.image().tables().layout;
    let heap_end = layout.heap_start + (1 << 20);
    use FaultKind::*;
    for (name, address, kind) in [
        ("load", 0, NullPointer),
        ("store", 8, NullPointer),
        ("load", 0xffff, NullPointer),
        ("store", INFO, ReadOnly),
        ("store", 0x11000, ReadOnly),
        ("store", layout.text, ReadOnly),
        ("store", b.code.at("constant"), ReadOnly),
        ("load", heap_end, HeapLimit),
        ("store", heap_end + 0xf_0000, HeapLimit),
        ("load", heap_end + 0x20_0000, Read),
        ("store", heap_end + 0x20_0000, Write),
        ("load", 0x8000_0000, Read),
        ("store", LIMIT, Write),
        ("wide", 0xffff_0000, Read),
        ("load", 0xffff_fffc, Read),
    ] {
        let fault = b.access(name, address);
        assert_eq!(
            (fault.kind, fault.address),
            (kind, Some(Offset(address))),
            "{name} {address:#x}: {fault}"
        );
        assert!(fault.backtrace.is_empty(), "{:?}", fault.backtrace);
        assert_eq!(fault.depth, 0);
        assert_eq!(fault.signal, Some(libc::SIGSEGV));
        // rdi is the sixth register.
        assert_eq!(fault.registers.unwrap().0[5] as u32, address);
    }
    // An access that begins in the window's last bytes ends beyond it: never mapped.
    for address in [0xffff_fff1, 0xffff_fff8, 0xffff_ffff] {
        let fault = b.access("wide", address);
        assert!(matches!(fault.kind, Read | NullPointer), "{fault}");
    }
    // Legal neighbours of all of these.
    let load = b.domain.func::<fn(Offset) -> i32>("load").unwrap();
    for good in [
        INFO,
        0x11000,
        layout.text,
        b.code.at("constant"),
        heap_end - 4,
    ] {
        load.call(Offset(good)).unwrap();
    }
}

#[test]
fn every_other_kind() {
    let b = Bench::new(|l| l.deadline = Some(Duration::from_millis(100)));
    let name = |n: &str| b.domain.func_unchecked::<fn(Offset, i32)>(n).unwrap();
    let at = |n: &str| Some(Offset(b.code.at(n)));
    let f = b.access("trap", 0);
    assert_eq!((f.kind, f.signal), (FaultKind::Trap, Some(libc::SIGILL)));
    assert!(
        f.place().is_empty() || f.place().contains("trap"),
        "{}",
        f.place()
    );
    let f = b.access("stop", 0);
    assert_eq!(
        (f.kind, f.signal),
        (FaultKind::BadJump, Some(libc::SIGTRAP))
    );
    // The division is the third instruction.
    let divide = b.domain.func::<fn(i32, i32) -> i32>("divide").unwrap();
    assert_eq!(divide.call(42, 6).unwrap(), 7);
    for (x, y) in [(1, 0), (i32::MIN, -1)] {
        let f = b.fault(divide.call(x, y));
        assert_eq!(
            (f.kind, f.offset),
            (FaultKind::Arithmetic, Some(Offset(b.code.at("divide") + 3)))
        );
    }
    let variable = b.code.at("variable");
    name("aligned").call(Offset(variable & !15), 0).unwrap();
    let f = b.access("aligned", (variable & !15) + 8);
    assert_eq!(f.kind, FaultKind::Misaligned, "{f}");
    // Jumps: to a function, then to what is none.
    let jump = b.domain.func::<fn(Offset) -> i32>("jump").unwrap();
    let call = b.domain.func::<fn(Offset) -> i32>("pointer_call").unwrap();
    for f in [&jump, &call] {
        assert_eq!(f.call(at("target").unwrap()).unwrap(), 3);
        // A gate slot is a function, too.
        f.call(Offset(0x11000)).unwrap();
        for bad in [
            b.code.at("trap"),
            b.code.at("target") + 8,
            variable,
            0x11008,
        ] {
            let fault = b.fault(f.call(Offset(bad)));
            assert_eq!(
                (fault.kind, fault.address, fault.offset),
                (FaultKind::BadJump, Some(Offset(bad)), at("bad_jump")),
                "{bad:#x}: {fault}"
            );
        }
        // Slots of imports that do not exist.
        for number in [1u32, 2, 127] {
            let fault = b.fault(f.call(Offset(0x11000 + number * 32)));
            assert_eq!(fault.kind, FaultKind::BadJump, "{fault}");
        }
        // No memory to look for a pad in.
        for bad in [0, 0x9000_0000] {
            let fault = b.fault(f.call(Offset(bad)));
            assert_eq!(
                (fault.kind, fault.address),
                (FaultKind::BadJump, Some(Offset(bad))),
                "{fault}"
            );
        }
    }
    // A pad that the extension forged in its data.
    let mut pad = [0x90u8; 16];
    pad[..8].copy_from_slice(&postern_verifier::window::PAD);
    let heap = b.domain.image().tables().layout.heap_start;
    for f in [&jump, &call] {
        b.domain.write(Offset(heap), &pad).unwrap();
        let fault = b.fault(f.call(Offset(heap)));
        assert_eq!(
            (fault.kind, fault.address),
            (FaultKind::Execute, Some(Offset(heap))),
            "{fault}"
        );
    }
    let f = b.access("spin", 0);
    assert_eq!((f.kind, f.signal), (FaultKind::Deadline, None));
    // Data stack: small frames, and frames larger than a page.
    for (n, reach) in [("deep", 0), ("big", 0x2_0000)] {
        let f = b.fault(name(n).call(Offset(0), 0));
        assert_eq!(f.kind, FaultKind::DataStackOverflow, "{n}: {f}");
        let stack = b.domain.image().tables().layout.stack;
        let address = f.address.unwrap().0;
        assert!(
            (stack - 16 - reach..stack).contains(&address),
            "{n}: {address:#x}"
        );
    }
    let f = b.fault(name("recurse").call(Offset(0), 0));
    assert_eq!(
        (f.kind, f.offset),
        (FaultKind::ControlStackOverflow, at("recurse")),
        "{f}"
    );
    assert!(f.depth > 1000);
    assert!(f.backtrace.len() == 32 && f.backtrace.iter().all(|o| o.0 == b.code.at("recurse") + 5));
    let counted: u64 = b.domain.counters().faults.values().sum();
    assert!(counted > 20, "{counted}");
}

#[test]
fn backtraces_are_exact() {
    let b = Bench::new(|_| {});
    let chain = b.domain.func::<fn(Offset) -> i32>("chain").unwrap();
    let f = b.fault(chain.call(Offset(0x7000_0000)));
    assert_eq!(f.kind, FaultKind::Read);
    assert_eq!(
        (f.offset, f.address),
        (
            Some(Offset(b.code.at("culprit"))),
            Some(Offset(0x7000_0004))
        )
    );
    assert_eq!(
        f.backtrace,
        [
            Offset(b.code.at("after_middle")),
            Offset(b.code.at("after_chain"))
        ]
    );
    assert_eq!(f.depth, 2);
    assert!(f.report().contains("#2"), "{}", f.report());
    assert!(
        format!("{f}").contains("read of unmapped memory at 0x70000004"),
        "{f}"
    );
}

/// With a limit, depth is exact: the entry itself is the first level.
#[test]
fn call_depth_limits_are_exact() {
    let source = "f: testl %edi,%edi
            je 1f
            decl %edi
            call f
         1: ret";
    let image = support::image(&[("f", "v(i)")], source);
    for limit in [1u32, 2, 3, 7, 8, 9, 100, 1001] {
        let mut limits = Limits::default();
        limits.call_depth = Some(limit);
        let d = cold(&image).limits(limits).build().unwrap();
        let f = d.func::<fn(i32)>("f").unwrap();
        for _ in 0..2 {
            f.call(limit as i32 - 1)
                .unwrap_or_else(|e| panic!("{limit}: {e}"));
            let e = f.call(limit as i32).unwrap_err();
            let fault = e.fault().unwrap_or_else(|| panic!("{limit}: {e}"));
            assert_eq!(
                (fault.kind, fault.depth),
                (FaultKind::ControlStackOverflow, u64::from(limit) - 1),
                "{limit}: {fault}"
            );
            d.reset().unwrap();
        }
    }
    // Absurd limits are bounded by the stack there is.
    let mut limits = Limits::default();
    limits.call_depth = Some(u32::MAX);
    let d = cold(&image).limits(limits).build().unwrap();
    let f = d.func::<fn(i32)>("f").unwrap();
    f.call(100_000).unwrap();
    let e = f.call(i32::MAX).unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::ControlStackOverflow);
}

/// x87: results in range, exceptions pending at the return, a full register stack, a changed
/// control word.
#[test]
fn x87_leaves_nothing_behind() {
    let mut c = code(
        &[("s", "d(d)")],
        &[
            ("pending", "v()"),
            ("full", "v()"),
            ("empty", "i()"),
            ("serve", "d(d)"),
        ],
        ".section .rodata
         word: .word 0x0040
         zero: .float 0
         .text
         pending: fldcw %gs:word(,%eiz,1)
            fld1
            fdivs %gs:zero(,%eiz,1)
            ret
         full: fld1
            fld1
            fld1
            fld1
            fld1
            fld1
            fld1
            fld1
            ret
         empty: fld1
            fld1
            fld1
            fld1
            fld1
            fld1
            fld1
            fld1
            fnstsw %ax
            fstp %st(0)
            ret
         serve: fld1
            fld1
            call s
            ret",
    );
    c.builder.x87(true);
    let d = cold(&c.image())
        .service("s", |_: &Caller<'_>, x: f64| x.sqrt())
        .build()
        .unwrap();
    x87_checks(&d);
}

fn x87_checks(d: &Domain) {
    /// The host's own x87: control word, tag word (from fnstenv), and a computation.
    fn host() -> (u16, u16, f64) {
        let mut environment = [0u32; 7];
        let mut product = 3.0f64;
        // SAFETY: fnstenv masks exceptions, so fldenv brings the state back.
        unsafe {
            std::arch::asm!("fnstenv [{e}]", "fldenv [{e}]", "fld qword ptr [{p}]", "fmul st(0), st(0)", "fstp qword ptr [{p}]",
                e = in(reg) &mut environment, p = in(reg) &mut product);
        }
        (environment[0] as u16, environment[2] as u16, product)
    }
    let before = host();
    assert_eq!(before.1, 0xffff);
    for n in ["pending", "full"] {
        for _ in 0..3 {
            let _ = d.func::<fn()>(n).unwrap().call();
            assert_eq!(host(), before, "{n}");
            if d.is_poisoned() {
                d.reset().unwrap();
            }
        }
    }
    // It starts with an empty register stack each time: eight loads fit (C1 of a stack fault would
    // be set with invalid).
    let status = d.func::<fn() -> i32>("empty").unwrap().call().unwrap();
    assert_eq!(status & 0x41, 0, "{status:#x}");
    assert_eq!(
        d.func::<fn(f64) -> f64>("serve")
            .unwrap()
            .call(9.0)
            .unwrap(),
        3.0
    );
    assert_eq!(host(), before);
}

#[test]
fn heap_limits() {
    let c = built();
    for heap in [0u64, 1, 4096, 4097, 1 << 20] {
        let mut limits = Limits::default();
        limits.heap = Some(heap);
        let d = cold(&c.image())
            .limits(limits)
            .service("s", |_: &Caller<'_>| {})
            .build()
            .unwrap();
        let start = d.image().tables().layout.heap_start;
        let end = start + (heap.div_ceil(4096) * 4096) as u32;
        let load = d.func::<fn(Offset) -> i32>("load").unwrap();
        if heap > 0 {
            load.call(Offset(end - 4)).unwrap();
        }
        let e = load.call(Offset(end)).unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::HeapLimit, "{heap}");
    }
    for heap in [
        u64::MAX,
        u64::MAX - 4095,
        1 << 32,
        (1 << 32) - 0x10000,
        0xfffb_0000,
    ] {
        let mut limits = Limits::default();
        limits.heap = Some(heap);
        let e = cold(&c.image())
            .limits(limits)
            .service("s", |_: &Caller<'_>| {})
            .build()
            .unwrap_err();
        assert!(
            matches!(e.cause(), postern::InstantiateError::Limits(_)),
            "{heap:#x}: {e}"
        );
    }
    // The image's own wish can be as absurd.
    let mut c = built();
    c.builder.heap_wish(u64::MAX);
    if let Ok(image) = c.load() {
        let e = cold(&image)
            .service("s", |_: &Caller<'_>| {})
            .build()
            .unwrap_err();
        let wish = matches!(e.cause(), postern::InstantiateError::Wish { .. });
        assert!(wish, "{e}");
    }
}

/// The same on later threads' data stacks, whose overflow meets a page without access.
#[test]
fn data_stack_overflow_on_later_threads() {
    let b = Arc::new(Bench::new(|_| {}));
    // The first stack goes to this thread.
    let load = b.domain.func::<fn(Offset) -> i32>("load").unwrap();
    load.call(Offset(b.code.at("variable"))).unwrap();
    for _ in 0..4 {
        let held: Vec<_> = (0..3)
            .map(|_| {
                let b = b.clone();
                std::thread::spawn(move || {
                    let load = b.domain.func::<fn(Offset) -> i32>("load").unwrap();
                    let _ = load.call(Offset(b.code.at("variable")));
                    std::thread::sleep(Duration::from_millis(5));
                })
            })
            .collect();
        for t in held {
            t.join().unwrap();
        }
        let c = b.clone();
        std::thread::spawn(move || {
            for n in ["deep", "big"] {
                let f = c.fault(c.domain.func_unchecked::<fn(i64)>(n).unwrap().call(0));
                assert_eq!(f.kind, FaultKind::DataStackOverflow, "{n}: {f}");
            }
            let f = c.fault(c.domain.func::<fn()>("recurse").unwrap().call());
            assert_eq!(f.kind, FaultKind::ControlStackOverflow);
        })
        .join()
        .unwrap();
    }
}

/// A domain's name is in everything that says what happened to it.
#[test]
fn faults_say_whose_they_are() {
    let image = support::image(&[("f", "v()")], "f: ud2");
    let named = support::cold(&image).name("parser").build().unwrap();
    let others = [0; 2].map(|_| support::cold(&image).build().unwrap());
    assert_eq!(named.name(), "parser");
    assert!(others[0].name().starts_with("image#"), "{:?}", others[0]);
    assert_ne!(others[0].name(), others[1].name());
    assert!(format!("{named:?}").contains("parser"));
    for d in [&named, &others[0], &others[1]] {
        let Err(CallError::Fault(fault)) = d.func::<fn()>("f").unwrap().call() else {
            panic!("no fault");
        };
        assert_eq!(&*fault.domain, d.name());
        assert!(fault.report().contains(d.name()), "{}", fault.report());
        assert!(format!("{fault:?}").contains(d.name()));
    }
}
