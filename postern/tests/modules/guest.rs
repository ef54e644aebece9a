//! The versions of these tests, and what is asked of them.

use crate::support::code;
use postern::{Caller, DomainBuilder, FaultKind, Image, Module, Placement};

/// An image that says its number, counts, and faults when it is told to.
pub fn version(number: i32) -> Image {
    code(
        &[("s", "i()")],
        &[
            ("which", "i()"),
            ("count", "l()"),
            ("narrow", "b(b)"),
            ("sum", "d(idi)"),
            ("trap", "v()"),
            ("spin", "v()"),
            ("serve", "i()"),
            ("save", "l(pL)"),
            ("load", "i(pL)"),
        ],
        &format!(
            ".data
             .balign 8
             n: .quad 0
             .text
             which: movl ${number},%eax
                ret
             count: movl $1,%eax
                lock xaddq %rax,%gs:n(,%eiz,1)
                ret
             narrow: leal {number}(%rdi),%eax
                ret
             sum: cvtsi2sd %edi,%xmm1
                addsd %xmm1,%xmm0
                cvtsi2sd %esi,%xmm1
                addsd %xmm1,%xmm0
                ret
             trap: ud2
             spin: jmp spin
             serve: call s
                addl ${number},%eax
                ret
             save: movq %gs:n(,%eiz,1),%rax
                movq %rax,%gs:(%edi)
                movl $8,%eax
                ret
             load: movq %gs:(%edi),%rax
                movq %rax,%gs:n(,%eiz,1)
                xorl %eax,%eax
                ret"
        ),
    )
    .image()
}

pub fn configure(builder: DomainBuilder) -> DomainBuilder {
    builder
        .placement(Placement::Cold)
        .service("s", |_: &Caller<'_>| 0)
}

pub fn module() -> Module {
    Module::new(&version(1), configure).unwrap()
}

pub fn which(m: &Module) -> i32 {
    m.func::<fn() -> i32>("which").unwrap().call().unwrap()
}

pub fn trap(m: &Module) {
    let e = m.func::<fn()>("trap").unwrap().call().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Trap);
}
