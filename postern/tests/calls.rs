//! Typed calls: what goes in comes out, whatever the types and however many, and nothing of the
//! host comes along.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{CallError, Caller, Domain, Offset, SymbolError};
use support::{code, cold, domain};

#[test]
fn every_type_returns_as_it_went_in() {
    let d = domain(
        &[
            ("b", "b(b)"),
            ("ub", "B(B)"),
            ("h", "h(h)"),
            ("uh", "H(H)"),
            ("i", "i(i)"),
            ("ui", "I(I)"),
            ("l", "l(l)"),
            ("ul", "L(L)"),
            ("p", "p(p)"),
            ("f", "f(f)"),
            ("d", "d(d)"),
        ],
        "b: ub: h: uh: i: ui: l: ul: p: movq %rdi,%rax
            ret
         f: d: ret",
    );
    macro_rules! same {
        ($name:literal, $t:ty, $($v:expr),*) => {{
            let f = d.func::<fn($t) -> $t>($name).unwrap();
            $( assert_eq!(f.call($v).unwrap().to_le_bytes(), ($v).to_le_bytes()); )*
        }};
    }
    same!("b", i8, i8::MIN, -1i8, 0i8, 1i8, i8::MAX);
    same!("ub", u8, 0u8, 1u8, u8::MAX);
    same!("h", i16, i16::MIN, -1i16, 0i16, i16::MAX);
    same!("uh", u16, 0u16, u16::MAX);
    same!("i", i32, i32::MIN, -1i32, 0i32, i32::MAX);
    same!("ui", u32, 0u32, u32::MAX);
    same!("l", i64, i64::MIN, -1i64, 0i64, i64::MAX);
    same!("ul", u64, 0u64, u64::MAX);
    same!(
        "f",
        f32,
        0f32,
        -0f32,
        f32::NAN,
        f32::INFINITY,
        f32::MIN_POSITIVE / 2.0,
        -1.5f32
    );
    same!(
        "d",
        f64,
        0f64,
        -0f64,
        f64::NAN,
        f64::NEG_INFINITY,
        5e-324f64,
        1e300f64
    );
    let p = d.func::<fn(Offset) -> Offset>("p").unwrap();
    for o in [0, 1, u32::MAX] {
        assert_eq!(p.call(Offset(o)).unwrap(), Offset(o));
    }
}

/// `f<n>` returns the sum of k times the k-th argument.
#[test]
fn none_to_ten_integers() {
    let registers = ["%rdi", "%rsi", "%rdx", "%rcx", "%r8", "%r9"];
    let mut source = String::new();
    let mut exports = Vec::new();
    for n in 0..=10 {
        source += &format!("f{n}: xorl %eax,%eax\n");
        for k in 0..n {
            let from = match registers.get(k) {
                Some(r) => (*r).to_owned(),
                None => format!("%gs:{}(%r15d)", 8 * (k - 6)),
            };
            source += &format!("imulq ${}, {from}, %r10\n addq %r10,%rax\n", k + 1);
        }
        source += "ret\n";
        exports.push((format!("f{n}"), format!("l({})", "l".repeat(n))));
    }
    let exports: Vec<_> = exports.iter().map(|(a, b)| (&**a, &**b)).collect();
    let d = domain(&exports, &source);
    macro_rules! check {
        ($name:literal; $($v:expr),*) => {{
            #[allow(unused_macros)]
            macro_rules! ty { ($e:expr) => { i64 } }
            let f = d.func::<fn($(ty!($v)),*) -> i64>($name).unwrap();
            let all: &[i64] = &[$($v),*];
            let sum: i64 = (1..).zip(all).map(|(k, v)| k * v).sum();
            for _ in 0..3 { assert_eq!(f.call($($v),*).unwrap(), sum); }
        }};
    }
    check!("f0";);
    check!("f1"; -7);
    check!("f2"; 1, -2);
    check!("f3"; 1, 2, 3);
    check!("f4"; 1 << 40, 2, 3, -4);
    check!("f5"; 1, 2, 3, 4, 5);
    check!("f6"; 1, 2, 3, 4, 5, 6 << 50);
    check!("f7"; 1, 2, 3, 4, 5, 6, -(7 << 40));
    check!("f8"; 1, 2, 3, 4, 5, 6, 7, 8);
    check!("f9"; 1, 2, 3, 4, 5, 6, 7, 8, 9);
    check!("f10"; 10, 20, 30, 40, 50, 60, 70, 80, 90, -100);
}

#[test]
fn floats_beyond_eight_and_mixed_with_integers() {
    let d = domain(
        &[
            ("ten", "d(dddddddddd)"),
            ("mixed", "d(fidlfidlfi)"),
            ("narrow", "l(llllllbHif)"),
        ],
        "ten: addsd %xmm1,%xmm0
              addsd %xmm2,%xmm0
              addsd %xmm3,%xmm0
              addsd %xmm4,%xmm0
              addsd %xmm5,%xmm0
              addsd %xmm6,%xmm0
              addsd %xmm7,%xmm0
              addsd %gs:(%r15d),%xmm0
              subsd %gs:8(%r15d),%xmm0
              ret
         mixed: cvtss2sd %xmm0,%xmm0
              addsd %xmm1,%xmm0
              cvtss2sd %xmm2,%xmm2
              addsd %xmm2,%xmm0
              addsd %xmm3,%xmm0
              cvtss2sd %xmm4,%xmm4
              addsd %xmm4,%xmm0
              addl %edi,%edx
              addl %r8d,%edx
              addq %rsi,%rcx
              movslq %edx,%rdx
              addq %rcx,%rdx
              cvtsi2sdq %rdx,%xmm6
              addsd %xmm6,%xmm0
              ret
         narrow: movq %gs:(%r15d),%rax
              movq %gs:8(%r15d),%rcx
              shlq $16,%rcx
              orq %rcx,%rax
              movq %gs:16(%r15d),%rcx
              shlq $32,%rcx
              orq %rcx,%rax
              ret",
    );
    let ten = d
        .func::<fn(f64, f64, f64, f64, f64, f64, f64, f64, f64, f64) -> f64>("ten")
        .unwrap();
    assert_eq!(
        ten.call(1., 2., 3., 4., 5., 6., 7., 8., 9., 10.).unwrap(),
        35.
    );
    let mixed = d
        .func::<fn(f32, i32, f64, i64, f32, i32, f64, i64, f32, i32) -> f64>("mixed")
        .unwrap();
    assert_eq!(
        mixed.call(0.5, 1, 0.25, 2, 8., 3, 16., 4, 32., 5).unwrap(),
        56.75 + 15.
    );
    // Words on the stack are cut to their types, as registers are.
    let narrow = d
        .func::<fn(i64, i64, i64, i64, i64, i64, i8, u16, i32, f32) -> i64>("narrow")
        .unwrap();
    let r = narrow.call(0, 0, 0, 0, 0, 0, -1, 0xffff, -1, 0.0).unwrap();
    assert_eq!(r as u64, 0xffff_ffff_ffff_00ff);
}

#[test]
fn names_and_types_are_checked() {
    let d = domain(
        &[("grayscale", "v(pii)"), ("add", "l(ii)"), ("any", "")],
        "grayscale: add: any: movl %edi,%eax
         ret",
    );
    let e = d.func::<fn()>("greyscale").unwrap_err();
    assert!(
        matches!(&e, SymbolError::Missing { name, nearest: Some(n) } if name == "greyscale" && n == "grayscale"),
        "{e}"
    );
    assert!(e.to_string().contains("did you mean `grayscale`"), "{e}");
    let e = d.func::<fn()>("zzzzzzzzzzzz").unwrap_err();
    assert!(
        matches!(e, SymbolError::Missing { nearest: None, .. }),
        "{e}"
    );
    let e = d.func::<fn(i32) -> i64>("add").unwrap_err();
    assert!(
        e.to_string().contains("l(ii)") && e.to_string().contains("l(i)"),
        "{e}"
    );
    assert!(d.func::<fn(i32, f32) -> i64>("add").is_err());
    assert!(d.func::<fn(i32, i64) -> i64>("add").is_err());
    assert!(d.func::<fn(i32, i32) -> f64>("add").is_err());
    assert!(d.func::<fn(u32, i32) -> u64>("add").is_ok());
    assert!(
        d.func::<fn(i32, i32)>("add").is_ok(),
        "a result may be ignored"
    );
    let e = d.func::<fn(i32) -> i32>("any").unwrap_err();
    assert!(matches!(e, SymbolError::Untyped(_)), "{e}");
    assert_eq!(
        d.func_unchecked::<fn(i32) -> i32>("any")
            .unwrap()
            .call(-3)
            .unwrap(),
        -3
    );
    assert!(d.func_unchecked::<fn()>("none").is_err());
    assert!(matches!(d.signature("any"), Err(SymbolError::Untyped(_))));
    assert_eq!(d.signature("add").unwrap().to_string(), "l(ii)");
    assert!(d.function_pointer("any", &"i(i)".parse().unwrap()).is_ok());
    assert!(d.function_pointer("add", &"i(d)".parse().unwrap()).is_err());
}

#[test]
fn functions_at_offsets() {
    let c = code(
        &[("s", "v()")],
        &[("f", "i(i)")],
        "f: leal 1(%rdi),%eax
         g: ret
         h: PAD
            GUARDED %edi, jmp
         last: ret",
    );
    let d = cold(&c.image())
        .service("s", |_: &Caller<'_>| {})
        .build()
        .unwrap();
    assert_eq!(
        d.func_at::<fn(i32) -> i32>(Offset(c.at("f")))
            .unwrap()
            .call(4)
            .unwrap(),
        5
    );
    d.func_at::<fn()>(Offset(c.at("g")))
        .unwrap()
        .call()
        .unwrap();
    let h = c.at("h");
    // Inside an instruction, inside the guarded sequence, before text, in the slots, after text,
    // anywhere.
    for bad in [
        c.at("f") + 1,
        h + 1,
        h + 11,
        h + 20,
        h + 22,
        h + 32,
        c.at("f") - 1,
        0x11000,
        0x11008,
        0x13000,
        0,
        u32::MAX,
    ] {
        assert!(
            matches!(d.func_at::<fn()>(Offset(bad)), Err(SymbolError::NotAFunction(o)) if o == bad),
            "{bad:#x}"
        );
    }
}

/// No register that is not an argument holds anything of the host, in any gate.
#[test]
fn nothing_leaks_in() {
    let integers = "leaks: orq %rdi,%rax
        orq %rsi,%rax
        orq %rdx,%rax
        orq %rcx,%rax
        orq %r8,%rax
        orq %r9,%rax
        orq %r10,%rax
        orq %rbx,%rax
        orq %rbp,%rax
        orq %r12,%rax
        orq %r13,%rax
        orq %r14,%rax
        ret\n";
    let scratch = ".bss\n.balign 32\nroom: .skip 64\n.text\n";
    let mut sse = "leaks:\n".to_owned();
    for i in 1..16 {
        sse += &format!("orps %xmm{i},%xmm0\n");
    }
    sse += "movups %xmm0,%gs:room(,%eiz,1)\n movq %gs:room(,%eiz,1),%rax\n orq %gs:room+8(,%eiz,1),%rax\n ret\n";
    let mut avx = "leaks:\n".to_owned();
    for i in 1..16 {
        avx += &format!("vorps %ymm{i},%ymm0,%ymm0\n");
    }
    avx += "vmovups %ymm0,%gs:room(,%eiz,1)\n movq %gs:room(,%eiz,1),%rax\n orq %gs:room+8(,%eiz,1),%rax\n orq %gs:room+16(,%eiz,1),%rax\n orq %gs:room+24(,%eiz,1),%rax\n ret\n";
    for (i, source) in [
        integers.to_owned(),
        scratch.to_owned() + &sse,
        scratch.to_owned() + &avx,
    ]
    .iter()
    .enumerate()
    {
        let image = support::image(&[("leaks", "L()")], source);
        for limited in [false, true] {
            let mut limits = postern::Limits::default();
            limits.call_depth = limited.then_some(100);
            let d = cold(&image).limits(limits).build().unwrap();
            let f = d.func::<fn() -> u64>("leaks").unwrap();
            for _ in 0..3 {
                unsafe {
                    // Secrets in all vector registers, as far as the compiler leaves them alone
                    // until the call.
                    if is_x86_feature_detected!("avx2") {
                        std::arch::asm!("vpcmpeqd ymm0,ymm0,ymm0","vmovdqa ymm1,ymm0","vmovdqa ymm5,ymm0","vmovdqa ymm7,ymm0","vmovdqa ymm8,ymm0","vmovdqa ymm12,ymm0","vmovdqa ymm15,ymm0",
                            out("ymm0") _, out("ymm1") _, out("ymm5") _, out("ymm7") _, out("ymm8") _, out("ymm12") _, out("ymm15") _);
                    }
                }
                assert_eq!(f.call().unwrap(), 0, "source {i}, limited {limited}");
            }
        }
    }
}

/// What C leaves in the unused parts of argument registers stays outside.
#[test]
fn masked_arguments_through_a_c_pointer() {
    let d = domain(
        &[("wide", "L(bHIp)"), ("float", "L(f)"), ("none", "L()")],
        ".bss
         room: .skip 16
         .text
         wide: movq %rdi,%rax
               xorq %rsi,%rax
               xorq %rdx,%rax
               xorq %rcx,%rax
               orq %r8,%rax
               orq %r9,%rax
               ret
         float: movups %xmm0,%gs:room(,%eiz,1)
               movq %gs:room(,%eiz,1),%rax
               orq %gs:room+8(,%eiz,1),%rax
               ret
         none: movq %rdi,%rax
               orq %r9,%rax
               ret",
    );
    let call = |p: *const (), integers: u64, float: u64| -> u64 {
        let mut result = p as u64;
        unsafe {
            std::arch::asm!(
                "movq xmm0, {f}", "movlhps xmm0, xmm0", "call rax",
                f = in(reg) float,
                inout("rax") result, inout("rdi") integers => _, inout("rsi") integers => _,
                inout("rdx") integers => _, inout("rcx") integers => _, inout("r8") integers => _, inout("r9") integers => _,
                clobber_abi("C"));
        }
        result
    };
    let wide = d
        .function_pointer("wide", &"L(bHIp)".parse().unwrap())
        .unwrap();
    assert_eq!(
        call(wide, u64::MAX, 0),
        0xff ^ 0xffff ^ 0xffff_ffff ^ 0xffff_ffff
    );
    let float = d
        .function_pointer("float", &"L(f)".parse().unwrap())
        .unwrap();
    assert_eq!(call(float, u64::MAX, 0xffff_ffff_3f80_0000), 0x3f80_0000);
    let none = d.function_pointer("none", &"L()".parse().unwrap()).unwrap();
    assert_eq!(call(none, u64::MAX, u64::MAX), 0);
}

#[test]
fn c_function_pointers_outlive_the_domain() {
    let d = domain(
        &[("add", "i(ii)"), ("ninth", "d(iiiiiiiid)"), ("bad", "i()")],
        "add: leal (%rdi,%rsi),%eax
             ret
         ninth: movl %gs:8(%r15d),%eax
             cvtsi2sdl %eax,%xmm1
             addsd %xmm1,%xmm0
             ret
         bad: ud2",
    );
    let add: extern "C" fn(i32, i32) -> i32 = unsafe {
        std::mem::transmute(
            d.function_pointer("add", &"i(ii)".parse().unwrap())
                .unwrap(),
        )
    };
    let ninth: extern "C" fn(i32, i32, i32, i32, i32, i32, i32, i32, f64) -> f64 = unsafe {
        std::mem::transmute(
            d.function_pointer("ninth", &"d(iiiiiiiid)".parse().unwrap())
                .unwrap(),
        )
    };
    let bad: extern "C" fn() -> i32 =
        unsafe { std::mem::transmute(d.function_pointer("bad", &"i()".parse().unwrap()).unwrap()) };
    postern::clear_last_error();
    assert_eq!(add(-2, 44), 42);
    assert_eq!(ninth(0, 0, 0, 0, 0, 0, 7, -8, 0.5), -7.5);
    assert!(postern::last_error().is_none());
    assert_eq!(bad(), 0);
    assert!(
        matches!(postern::last_error(), Some(CallError::Fault(f)) if f.kind == postern::FaultKind::Trap)
    );
    assert_eq!(add(1, 1), 0);
    assert!(matches!(postern::last_error(), Some(CallError::Poisoned)));
    d.reset().unwrap();
    assert_eq!(add(1, 1), 2);
    drop(d);
    assert_eq!(add(1, 1), 0);
    assert!(matches!(postern::last_error(), Some(CallError::Closed)));
    assert_eq!(ninth(0, 0, 0, 0, 0, 0, 7, -8, 0.5), 0.0);
    // Whoever has its control block now.
    let other = domain(&[("add", "i(ii)")], "add: xorl %eax,%eax\nret");
    assert_eq!(add(1, 1), 0);
    assert!(matches!(postern::last_error(), Some(CallError::Closed)));
    drop(other);
    // 600 stubs take more than two pages of them.
    let d = domain(&[("one", "i()")], "one: movl $1,%eax\nret");
    let many: Vec<extern "C" fn() -> i32> = (0..600)
        .map(|_| unsafe {
            std::mem::transmute(d.function_pointer("one", &"i()".parse().unwrap()).unwrap())
        })
        .collect();
    assert_eq!(many.iter().map(|f| f()).sum::<i32>(), 600);
    d.close();
    assert_eq!(many[0](), 0);
}

#[test]
fn c_function_pointers_do_not_use_domains_up() {
    let i = support::image(&[("one", "i()")], "one: movl $1,%eax\nret");
    let build = || cold(&i).heap(4096).build().unwrap();
    let pointer = |d: &Domain| -> extern "C" fn() -> i32 {
        unsafe { std::mem::transmute(d.function_pointer("one", &"i()".parse().unwrap()).unwrap()) }
    };
    let first = pointer(&build());
    // More than can be alive at once.
    for i in 0..33_000 {
        let d = build();
        assert_eq!(pointer(&d)(), 1);
        // Until its place is used again.
        if i < 1000 {
            assert_eq!(first(), 0);
            assert!(matches!(postern::last_error(), Some(CallError::Closed)));
        }
    }
    assert_eq!(first(), 0);
}

#[test]
fn narrow_results_are_extended_for_c() {
    let d = domain(
        &[
            ("b", "b()"),
            ("ub", "B()"),
            ("h", "h(iiiiiiii)"),
            ("uh", "H(iiiiiiii)"),
        ],
        "b: ub: movl $0x12345680,%eax
            ret
         h: uh: movl $0x1234ff00,%eax
            addl %gs:8(%r15d),%eax
            ret",
    );
    // As a caller sees them that trusts the callee: all 32 bits.
    macro_rules! result {
        ($name:literal, $types:literal, fn($($t:ty),*), $($v:expr),*) => {{
            let f: extern "C" fn($($t),*) -> u32 =
                unsafe { std::mem::transmute(d.function_pointer($name, &$types.parse().unwrap()).unwrap()) };
            f($($v),*)
        }};
    }
    assert_eq!(result!("b", "b()", fn(),), 0xffff_ff80);
    assert_eq!(result!("ub", "B()", fn(),), 0x80);
    type I = i32;
    assert_eq!(
        result!(
            "h",
            "h(iiiiiiii)",
            fn(I, I, I, I, I, I, I, I),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            5
        ),
        0xffff_ff05
    );
    assert_eq!(
        result!(
            "uh",
            "H(iiiiiiii)",
            fn(I, I, I, I, I, I, I, I),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            5
        ),
        0xff05
    );
}

#[test]
fn clones_share_the_domain_and_keep_it() {
    let d = domain(
        &[("next", "i()")],
        ".data\nn: .long 0\n.text\nnext: incl %gs:n(,%eiz,1)\nmovl %gs:n(,%eiz,1),%eax\nret",
    );
    let next = d.func::<fn() -> i32>("next").unwrap();
    let same = next.clone();
    assert_eq!((next.call().unwrap(), same.call().unwrap()), (1, 2));
    let weak: Domain = next.domain().clone();
    drop((d, weak));
    assert_eq!(next.call().unwrap(), 3);
    next.domain().reset().unwrap();
    assert_eq!(same.call().unwrap(), 1);
    assert_eq!(same.domain().counters().calls, 4);
}
