//! What of the processor's state is the host's and what an extension's: MXCSR, the x87 environment,
//! the gs base.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{Caller, Domain, FaultKind, Func};
use std::arch::asm;
use support::{code, cold, succeeds_in_child};

/// Rounding up, denormals are zero, flush to zero, division by zero not masked, no flag raised.
const STRANGE: u32 = 0x5d80 | 0x8040;
const FLAGS: u32 = 0x3f;

fn mxcsr() -> u32 {
    let mut word = 0u32;
    unsafe { asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack)) };
    word
}

fn set_mxcsr(word: u32) {
    unsafe { asm!("ldmxcsr [{}]", in(reg) &word, options(nostack)) };
}

/// Runs `body` with this MXCSR, which must be the same afterwards to the bit.
fn with<R>(word: u32, body: impl FnOnce() -> R) -> R {
    let before = mxcsr();
    set_mxcsr(word);
    let result = body();
    let after = mxcsr();
    set_mxcsr(before);
    assert_eq!(after, word, "{after:#x} instead of {word:#x}");
    result
}

/// Bits that tell the rounding mode, and whether denormal numbers are numbers: 1/3 and a denormal
/// times one.
const PROBE: &str = "movl $1,%eax
    cvtsi2sd %eax,%xmm0
    movl $3,%eax
    cvtsi2sd %eax,%xmm1
    divsd %xmm1,%xmm0
    movq %xmm0,%rax
    movl $1,%ecx
    movq %rcx,%xmm2
    addsd %xmm2,%xmm2
    movq %xmm2,%rcx
    shlq $60,%rcx
    xorq %rcx,%rax
    xorpd %xmm3,%xmm3
    divsd %xmm3,%xmm0
    ret";
const THIRD: i64 = 0x3fd5_5555_5555_5555 ^ (2 << 60);

fn source() -> String {
    let avx = PROBE.replace(
        "cvtsi2sd %eax,%xmm0",
        "vxorps %ymm0,%ymm0,%ymm0\ncvtsi2sd %eax,%xmm0",
    );
    format!(
        "probe: {PROBE}
         wide: {avx}
         trap: movl $3,%eax
            cvtsi2sd %eax,%xmm0
            divsd %xmm0,%xmm0
            ud2
         spin: movl $3,%eax
            cvtsi2sd %eax,%xmm0
            sqrtsd %xmm0,%xmm0
            jmp spin
         serve: call s
            jmp probe"
    )
}

const EXPORTS: &[(&str, &str)] = &[
    ("probe", "l()"),
    ("trap", "v()"),
    ("spin", "v()"),
    ("serve", "l()"),
];

fn domain(wide: bool, depth: Option<u32>, service: impl Fn() + Send + Sync + 'static) -> Domain {
    let text = source();
    let text = match wide {
        true => text,
        // Without the wide instruction the image is of the narrower class.
        false => text.replace("vxorps %ymm0,%ymm0,%ymm0\n", ""),
    };
    let image = code(&[("s", "v()")], EXPORTS, &text).image();
    let mut limits = postern::Limits::default();
    limits.deadline = Some(std::time::Duration::from_millis(30));
    limits.call_depth = depth;
    cold(&image)
        .limits(limits)
        .service("s", move |_: &Caller<'_>| service())
        .build()
        .unwrap()
}

fn func(d: &Domain, name: &str) -> Func<fn() -> i64> {
    d.func_unchecked(name).unwrap()
}

#[test]
fn the_hosts_mode_is_not_the_extensions_and_comes_back() {
    for (wide, depth) in [
        (false, None),
        (true, None),
        (false, Some(9)),
        (true, Some(9)),
    ] {
        let d = domain(wide, depth, || {});
        for word in [0x1f80, 0x1f80 | FLAGS, STRANGE, STRANGE | 0x20, 0x7f80] {
            for name in ["probe", "serve"] {
                let f = func(&d, name);
                f.call().unwrap();
                let seen = with(word, || f.call().unwrap());
                assert_eq!(seen, THIRD, "{name} with {word:#x}, wide {wide}: {seen:#x}");
            }
            for (name, kind) in [("trap", FaultKind::Trap), ("spin", FaultKind::Deadline)] {
                let f = func(&d, name);
                let end = with(word, || f.call());
                assert_eq!(end.unwrap_err().fault().unwrap().kind, kind);
                d.reset().unwrap();
            }
        }
    }
}

/// A service runs in the host's mode, and what it changes is the host's from then on: not the
/// extension's.
#[test]
fn services_have_the_hosts_mode() {
    for depth in [None, Some(9)] {
        let d = domain(false, depth, || {
            assert_eq!(mxcsr(), STRANGE);
            set_mxcsr(0x3f80);
        });
        let serve = func(&d, "serve");
        set_mxcsr(STRANGE);
        let seen = serve.call();
        let after = mxcsr();
        set_mxcsr(0x1f80);
        assert_eq!((seen.unwrap(), after), (THIRD, 0x3f80));
        // Also when the service ends the call.
        let image = code(&[("s", "v()")], EXPORTS, &source()).image();
        let d = cold(&image)
            .service("s", |caller: &Caller<'_>| {
                set_mxcsr(0x3f80);
                caller.exit(3);
            })
            .build()
            .unwrap();
        let end = func(&d, "serve").call();
        let after = mxcsr();
        set_mxcsr(0x1f80);
        assert!(end.is_err());
        assert_eq!(after, 0x3f80);
    }
}

/// Code that only moves vectors runs in the host's mode, which it cannot tell from any other, and
/// leaves the host's flags alone.
#[test]
fn moving_vectors_has_nothing_to_do_with_the_mode() {
    let moves = "copy: movl $1,%eax
            movq %rax,%xmm0
            pshufd $0x44,%xmm0,%xmm0
            paddq %xmm0,%xmm0
            WIDE
            call s
            movl $2,%eax
            movq %rax,%xmm0
            movq %xmm0,%rax
            ret";
    for wide in ["", "vpaddq %ymm0,%ymm0,%ymm0"] {
        let text = moves.replace("WIDE", wide);
        let image = code(&[("s", "v()")], &[("copy", "l()")], &text).image();
        assert!(image.facts().xmm && !image.facts().float);
        assert_eq!(image.facts().ymm, !wide.is_empty());
        for depth in [None, Some(9)] {
            let mut limits = postern::Limits::default();
            limits.call_depth = depth;
            let d = cold(&image)
                .limits(limits)
                .service("s", |_: &Caller<'_>| assert_eq!(mxcsr(), STRANGE))
                .build()
                .unwrap();
            let copy = func(&d, "copy");
            for _ in 0..3 {
                assert_eq!(with(STRANGE, || copy.call().unwrap()), 2);
            }
        }
    }
}

/// A nested call, of the same and of other classes.
#[test]
fn nested_calls() {
    for (outer, inner) in [(false, false), (false, true), (true, false)] {
        let within = domain(inner, None, || {});
        let f = func(&within, "probe");
        let d = domain(outer, None, move || {
            assert_eq!(mxcsr(), STRANGE);
            assert_eq!(f.call().unwrap(), THIRD);
            assert_eq!(mxcsr(), STRANGE);
        });
        let serve = func(&d, "serve");
        assert_eq!(with(STRANGE, || serve.call().unwrap()), THIRD);
    }
}

/// Peers that compute with floating-point numbers, that only move vectors, and that cannot even
/// reach them, in each direction: each has what it must have, and so has the host.
#[test]
fn peers_of_all_kinds() {
    let integer = "hop: call next\nret";
    let moving = "hop: call next\nmovq %rax,%xmm5\npaddq %xmm4,%xmm5\nmovq %xmm5,%rax\nret";
    let vectors =
        format!("hop: call next\nmovq %rax,%rdi\npushed: {PROBE}").replace("pushed: ", "");
    let last = format!("hop: {PROBE}");
    let make = |text: &str, next: Option<&Domain>, service: bool| {
        let imports: &[(&str, &str)] = if next.is_some() || service {
            &[("next", "l()")]
        } else {
            &[]
        };
        let image = code(imports, &[("hop", "l()")], text).image();
        let mut builder = cold(&image);
        if let Some(next) = next {
            builder = builder.peer("next", &next.peer_export("hop").unwrap());
        } else if service {
            builder = builder.service("next", |_: &Caller<'_>| -> i64 {
                assert_eq!(mxcsr(), STRANGE);
                7
            });
        }
        builder.build().unwrap()
    };
    for end in [true, false] {
        let d = match end {
            true => make(&last, None, false),
            false => make(integer, None, true),
        };
        for third in [integer, moving, &vectors] {
            let c = make(third, Some(&d), false);
            for second in [integer, moving, &vectors] {
                let b = make(second, Some(&c), false);
                for first in [integer, moving, &vectors] {
                    let a = make(first, Some(&b), false);
                    let hop = func(&a, "hop");
                    let computes = [first, second, third].contains(&vectors.as_str());
                    let expected = if end || computes { THIRD } else { 7 };
                    for _ in 0..3 {
                        assert_eq!(with(STRANGE, || hop.call().unwrap()), expected);
                    }
                }
            }
        }
    }
    // A peer that faults leaves its caller, and the host, what is theirs.
    let divides = "hop: xorps %xmm0,%xmm0\ndivsd %xmm0,%xmm0\nud2";
    for first in [integer, moving, &vectors] {
        for bad in ["hop: xorps %xmm0,%xmm0\nud2", divides] {
            let bad = make(bad, None, false);
            let a = make(first, Some(&bad), false);
            let hop = func(&a, "hop");
            for _ in 0..2 {
                let seen = with(STRANGE, || hop.call().unwrap());
                assert_eq!(seen, if first == vectors { THIRD } else { 0 });
            }
        }
    }
}

/// The x87 control word and its flags.
#[test]
fn the_x87_environment_comes_back() {
    let environment = || {
        let mut words = [0u16; 14];
        unsafe { asm!("fnstenv [{0}]", "fldenv [{0}]", in(reg) &mut words, options(nostack)) };
        (words[0], words[2] & 0xbf)
    };
    let image = code(
        &[("s", "v()")],
        &[("f", "v()"), ("g", "v()")],
        "f: fld1\nfldz\nfdivrp\nfstp %st(0)\nret\ng: fld1\nfldz\nfdivrp\nfstp %st(0)\ncall s\nfld1\nret",
    );
    let mut image = image;
    image.builder.x87(true);
    let image = image.image();
    let d = cold(&image)
        .service("s", move |_: &Caller<'_>| {
            assert_eq!(environment(), (0x0f7f, 0x20))
        })
        .build()
        .unwrap();
    for name in ["f", "g"] {
        let f = d.func::<fn()>(name).unwrap();
        // Rounding towards zero; a third is inexact, so its flag is raised.
        let control = 0x0f7fu16;
        unsafe {
            asm!("fninit", "fldcw [{0}]", "fld1", "fldpi", "fdivp", "fstp st(0)", in(reg) &control, options(nostack));
        }
        assert_eq!(environment(), (0x0f7f, 0x20));
        let result = f.call();
        let after = environment();
        unsafe { asm!("fninit", options(nostack)) };
        result.unwrap();
        assert_eq!(after, (0x0f7f, 0x20), "{name}");
    }
}

fn gs() -> u64 {
    let base: u64;
    unsafe { asm!("rdgsbase {}", out(reg) base, options(nostack)) };
    base
}

#[test]
fn the_gs_base_comes_back_where_a_host_asks_for_it() {
    succeeds_in_child("the_gs_base_comes_back_where_a_host_asks_for_it", || {
        let mut config = postern::Config::default();
        config.restore_gs = true;
        postern::init(config).unwrap();
        let theirs = 0x7000_0000u64;
        unsafe { asm!("wrgsbase {}", in(reg) theirs, options(nostack)) };
        let inner = domain(false, None, || {});
        let f = func(&inner, "probe");
        let d = domain(true, None, move || {
            assert!(matches!(gs(), 0x7000_0000 | 0x7100_0000));
            f.call().unwrap();
            unsafe { asm!("wrgsbase {}", in(reg) 0x7100_0000u64, options(nostack)) };
        });
        func(&d, "probe").call().unwrap();
        assert_eq!(gs(), theirs);
        func(&d, "serve").call().unwrap();
        assert_eq!(gs(), 0x7100_0000);
        for name in ["trap", "spin"] {
            func(&d, name).call().unwrap_err();
            assert_eq!(gs(), 0x7100_0000);
            d.reset().unwrap();
        }
        let p = inner
            .function_pointer("probe", &inner.signature("probe").unwrap())
            .unwrap();
        let p: extern "C" fn() -> i64 = unsafe { std::mem::transmute(p) };
        assert_eq!((p(), gs()), (THIRD, 0x7100_0000));
    });
}
