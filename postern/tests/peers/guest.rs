//! The extensions of these tests, and how they are asked.

use crate::support::{code, cold};
use postern::{CallError, Caller, Domain, Image, PeerError, PeerExport};

pub type Entry = postern::Func<fn(i64) -> i64>;

/// `call` passes its argument to the peer; `why` says what became of the last call of a peer within
/// it, when that returned 0; `raw` calls and passes the result on.
pub fn caller() -> Image {
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
pub fn callee() -> Image {
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

pub fn serving(service: impl Fn(&Caller<'_>, i64) -> i64 + Send + Sync + 'static) -> Domain {
    cold(&callee())
        .service("s", service)
        .deadline(None)
        .build()
        .unwrap()
}

pub fn plain() -> Domain {
    serving(|_, x| x)
}

pub fn calling(export: &PeerExport) -> Domain {
    cold(&caller())
        .peer("peer", export)
        .deadline(None)
        .build()
        .unwrap()
}

pub fn ask(d: &Domain, x: i64) -> Result<i64, CallError> {
    d.func::<fn(i64) -> i64>("call").unwrap().call(x)
}

pub fn error(e: PeerError) -> i64 {
    -(e as i64)
}

/// Where the domain's data begins with this word.
pub fn data_with(d: &Domain, word: u64) -> postern::Offset {
    let found = (0x1_0000..0x20_0000u32)
        .step_by(8)
        .map(postern::Offset)
        .find(|&o| d.read_vec(o, 8).is_ok_and(|b| b == word.to_le_bytes()));
    found.unwrap()
}
