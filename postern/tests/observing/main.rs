//! What can be seen of domains from outside: counters, their text form, spans, symbols for
//! profilers and debuggers.
mod metrics;
mod spans;
#[path = "../support/mod.rs"]
mod support;
mod symbols;

use postern::{Caller, Image};
use support::code;

/// Calls of a service, faults, and work to be seen in.
pub fn extension() -> Image {
    code(
        &[("s", "v()")],
        &[
            ("next", "l()"),
            ("serve", "v()"),
            ("fill", "v(pl)"),
            ("trap", "v()"),
            ("null", "v()"),
        ],
        "
        .data
        .balign 8
        n: .quad 0
        .text
        next: movl $1,%eax
            lock xaddq %rax,%gs:n(,%eiz,1)
            ret
        serve: call s
            ret
        fill: movq %rsi,%gs:(%edi)
            addl $4096,%edi
            subq $1,%rsi
            jne fill
            ret
        trap: ud2
        null: movl %gs:(,%eiz,1),%eax
            ret
        ",
    )
    .image()
}

/// The service.
pub fn nothing(_: &Caller<'_>) {}
