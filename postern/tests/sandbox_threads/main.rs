//! Sandbox threads: a handler that must wait goes on on a thread of its domain's, and the thread
//! that it interrupted goes on at once; and functions that extensions spawn.
#![allow(clippy::undocumented_unsafe_blocks)]
mod ends;
mod spawned;
#[path = "../support/mod.rs"]
mod support;
mod suspended;

use postern::{Caller, Domain, DomainBuilder, Image, SandboxCounters};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use support::{code, cold};

/// Handlers that wait, in assembly: what they have in registers is told afterwards.
fn handlers() -> Image {
    let source = "
        .data
        .balign 8
        sum: .quad 0
        count: .quad 0
        .text
        /* All registers that a call of a service keeps, and what is on the data stack. */
        keeps: PUSH %rsi
            movq $1,%rbx
            movq $2,%rbp
            movq $3,%r12
            movq $4,%r13
            movq $5,%r14
            call waits
            POP %rcx
            addq %rcx,%rax
            addq %rbx,%rax
            addq %rbp,%rax
            addq %r12,%rax
            addq %r13,%rax
            addq %r14,%rax
            movq %rax,%gs:sum(,%eiz,1)
            movl $0,%edi
            call tells
            ret
        /* Six integers and eight numbers. */
        many: movl $7,%edi
            movq %rsi,%rsi
            movl $3,%edx
            movl $4,%ecx
            movl $5,%r8d
            movl $6,%r9d
            cvtsi2sd %rdi,%xmm0
            movapd %xmm0,%xmm1
            addsd %xmm0,%xmm1
            call numbers
            movq %rax,%gs:sum(,%eiz,1)
            addsd %xmm0,%xmm0
            cvttsd2si %xmm0,%rax
            movq %rax,%gs:count(,%eiz,1)
            movl $0,%edi
            call tells
            ret
        /* So deep as the event says; back at each depth it counts. */
        deep: testl %edi,%edi
            je 1f
            decl %edi
            call deep
            incq %gs:count(,%eiz,1)
            ret
        1:  xorl %esi,%esi
            call waits
            ret
        deeper: movq $0,%gs:count(,%eiz,1)
            call deep
            movl $0,%edi
            call tells
            ret
        traps: xorl %esi,%esi
            call waits
            ud2
        loops: xorl %esi,%esi
            call waits
        1:  jmp 1b
        /* The service returns to whom the handler would: none of its own calls is left. */
        leaps: jmp waits
        summed: movq %gs:sum(,%eiz,1),%rax
            ret
        counted: movq %gs:count(,%eiz,1),%rax
            ret";
    let imports = [
        ("waits", "l(il)"),
        ("numbers", "d(ilidd)"),
        ("tells", "v(i)"),
    ];
    let exports = [
        ("keeps", "v(IL)"),
        ("many", "v(IL)"),
        ("deeper", "v(IL)"),
        ("traps", "v(IL)"),
        ("loops", "v(IL)"),
        ("leaps", "v(IL)"),
        ("summed", "L()"),
        ("counted", "L()"),
    ];
    code(&imports, &exports, source).image()
}

/// How many calls of a service may return.
#[derive(Default)]
struct Permits(Mutex<Wanted>, Condvar);

#[derive(Default)]
struct Wanted {
    left: u32,
    /// Who has begun to wait.
    waits: u32,
}

impl Permits {
    fn give(&self, n: u32) {
        self.0.lock().unwrap().left += n;
        self.1.notify_all();
    }

    fn take(&self) {
        let mut wanted = self.0.lock().unwrap();
        wanted.waits += 1;
        let mut wanted = self.1.wait_while(wanted, |w| w.left == 0).unwrap();
        wanted.left -= 1;
    }

    /// Whoever wants one holds none of the host's locks from there on.
    fn is_waited_for(&self) -> bool {
        self.0.lock().unwrap().waits > 0
    }
}

/// A domain of the handlers, with a service that waits for a permit, and one that says when a
/// handler is at its end.
struct Waits {
    domain: Domain,
    permits: Arc<Permits>,
    begun: Receiver<()>,
    told: Receiver<i32>,
}

fn waiting(threads: u32, more: impl FnOnce(DomainBuilder) -> DomainBuilder) -> Waits {
    let permits = Arc::<Permits>::default();
    let taken = permits.clone();
    let (begins, begun) = channel();
    let (tell, told) = channel();
    let (begins, tell) = (Mutex::new(begins), Mutex::new(tell));
    let builder = cold(&handlers())
        .deadline(Some(LONG))
        .service("waits", move |_: &Caller<'_>, event: i32, data: i64| {
            let _ = begins.lock().unwrap().send(());
            taken.take();
            i64::from(event) + data
        })
        .service(
            "numbers",
            |_: &Caller<'_>, a: i32, b: i64, c: i32, x: f64, y: f64| {
                f64::from(a) + b as f64 + f64::from(c) + x * 100.0 + y * 1000.0
            },
        )
        .service("tells", move |_: &Caller<'_>, what: i32| {
            let _ = tell.lock().unwrap().send(what);
        });
    Waits {
        domain: more(builder.sandbox_threads(threads)).build().unwrap(),
        permits,
        begun,
        told,
    }
}

fn number(domain: &Domain, name: &str) -> u64 {
    domain.func::<fn() -> u64>(name).unwrap().call().unwrap()
}

const LONG: Duration = Duration::from_secs(60);

/// Waits until it is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn settled(domain: &Domain) -> SandboxCounters {
    until("threads are busy", || domain.sandbox_threads().busy == 0);
    domain.sandbox_threads()
}
