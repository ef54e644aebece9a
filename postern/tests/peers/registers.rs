//! What crosses in registers, and what does not.

use crate::support::{code, cold};
use postern::Limits;

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

/// Results and arguments are cut to their types; nothing else of either side's registers reaches
/// the other, for every pair of vector classes, with and without call-depth limits (which take the
/// slow path).
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
                // The callee: 1 if it sees anything besides its 8-bit argument; else the argument,
                // with dirt above it.
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
