//! Upcalls: handlers of domains interrupt threads anywhere, and the threads go on as they were.
#![allow(clippy::undocumented_unsafe_blocks)]
mod ends;
mod interrupted;
mod services;
#[path = "../support/mod.rs"]
mod support;

use postern::{AttachError, Attachment, Caller, Domain, Image, Posted, UpcallSender};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use support::{code, cold, succeeds_in_child};

/// All registers that a handler may write, and what it is for.
fn handlers() -> Image {
    let mut dirty = String::new();
    for n in 0..16 {
        dirty += &format!("vpcmpeqd %ymm{n},%ymm{n},%ymm{n}\n");
    }
    let source = format!(
        ".data
         .balign 8
         count: .quad 0
         last: .quad 0
         .text
         on: incq %gs:count(,%eiz,1)
             shlq $32,%rdi
             orq %rsi,%rdi
             movq %rdi,%gs:last(,%eiz,1)
             {dirty}
             cvtsi2sd %rsi,%xmm3
             divsd %xmm4,%xmm3
             movq $-1,%rax
             movq %rax,%rbx
             movq %rax,%rcx
             movq %rax,%rdx
             movq %rax,%rbp
             movq %rax,%r8
             movq %rax,%r12
             movq %rax,%r13
             movq %rax,%r14
             ret
         sum: movl $10000000,%eax
         1: incq %gs:count(,%eiz,1)
             decl %eax
             jne 1b
             ret
         empty: ret
         loops: jmp loops
         traps: ud2
         deep: call deep
             ret
         serves: call s
             movl %eax,%eax
             movq %rax,%gs:last(,%eiz,1)
             ret
         counted: movq %gs:count(,%eiz,1),%rax
             ret
         latest: movq %gs:last(,%eiz,1),%rax
             ret"
    );
    let exports = [
        ("on", "v(IL)"),
        ("sum", "v(IL)"),
        ("empty", "v(IL)"),
        ("loops", "v(IL)"),
        ("traps", "v(IL)"),
        ("deep", "v(IL)"),
        ("serves", "v(IL)"),
        ("counted", "L()"),
        ("latest", "L()"),
    ];
    code(&[("s", "i(i)")], &exports, &source).image()
}

/// Where the handlers are, with a service that is the given one.
fn with_service(s: impl Fn(&Caller<'_>, i32) -> i32 + Send + Sync + 'static) -> Domain {
    let builder = cold(&handlers()).service("s", s);
    builder
        .deadline(Some(Duration::from_secs(60)))
        .build()
        .unwrap()
}

fn domain() -> Domain {
    with_service(|_, x| x + 1)
}

fn number(domain: &Domain, name: &str) -> u64 {
    domain.func::<fn() -> u64>(name).unwrap().call().unwrap()
}

/// What is called while upcalls come.
fn victim() -> Domain {
    let image = code(
        &[("s", "i(i)"), ("half", "d(d)")],
        &[
            ("add", "i(ii)"),
            ("mix", "d(dddd)"),
            ("many", "l(llllllll)"),
            ("serve", "i(i)"),
            ("halved", "d(d)"),
            ("spin", "v()"),
            ("trap", "v()"),
            ("sum", "l(l)"),
        ],
        "add: leal (%rdi,%rsi),%eax
            ret
         mix: mulsd %xmm1,%xmm0
            addsd %xmm2,%xmm0
            divsd %xmm3,%xmm0
            ret
         many: movq %gs:(%r15d),%rax
            addq %gs:8(%r15d),%rax
            addq %rdi,%rax
            subq %r9,%rax
            ret
         serve: call s
            incl %eax
            ret
         halved: call half
            addsd %xmm0,%xmm0
            ret
         spin: jmp spin
         trap: ud2
         sum: xorl %eax,%eax
         1: addq %rdi,%rax
            decq %rdi
            jne 1b
            ret",
    )
    .image();
    let builder = cold(&image).deadline(Some(Duration::from_secs(60)));
    let builder = builder.service("s", |_: &Caller<'_>, x: i32| {
        // The allocator, and vectors, in a service.
        let text = format!("{x} {}", f64::from(x) / 3.0);
        text.split(' ').next().unwrap().parse::<i32>().unwrap() * 2
    });
    let builder = builder.service("half", |_: &Caller<'_>, x: f64| x / 2.0);
    builder.build().unwrap()
}

/// Another thread sends events while there is one of these.
struct Flood(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Flood {
    fn of(sender: UpcallSender) -> Flood {
        let ends = Arc::new(AtomicBool::new(false));
        let told = ends.clone();
        let thread = std::thread::spawn(move || {
            let mut n = 0;
            while !told.load(SeqCst) {
                sender.send(n % 5, u64::from(n));
                n += 1;
                for _ in 0..n * 7919 % 3000 {
                    std::hint::spin_loop();
                }
            }
        });
        Flood(ends, Some(thread))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
        self.1.take().unwrap().join().unwrap();
    }
}

/// Does something again and again until that many upcalls have come meanwhile.
fn while_flooded(attachment: &Attachment, upcalls: u64, mut what: impl FnMut(u32)) {
    let flood = Flood::of(attachment.sender());
    let (before, begun) = (attachment.counters().delivered, Instant::now());
    let mut round = 0;
    while attachment.counters().delivered - before < upcalls {
        what(round);
        round += 1;
        assert!(
            begun.elapsed() < Duration::from_secs(100),
            "no upcalls come: {attachment:?}"
        );
    }
    drop(flood);
    let counters = attachment.counters();
    assert_eq!((counters.ended, counters.skipped), (0, 0), "{counters:?}");
}

#[test]
fn an_event_is_told_at_once_to_the_thread_itself() {
    let domain = domain();
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    for n in 1..200u64 {
        assert_eq!(attachment.send(n as u32, 3 * n), Posted::Sent);
        assert_eq!(number(&domain, "counted"), n);
        assert_eq!(number(&domain, "latest"), (n << 32) | (3 * n));
    }
    assert_eq!(attachment.counters().delivered, 199);
    let sender = attachment.sender();
    drop(attachment);
    assert_eq!(sender.send(1, 1), Posted::Detached);
    // Again, with the same stack.
    let again = domain.upcall("on").unwrap().attach().unwrap();
    assert_eq!(again.send(1, 1), Posted::Sent);
    assert_eq!(number(&domain, "counted"), 200);
}

#[test]
fn what_cannot_be_attached_says_why() {
    let domain = domain();
    assert!(domain.upcall("nothing").is_err() && domain.upcall("counted").is_err());
    let upcall = domain.upcall("on").unwrap();
    let attachment = upcall.attach().unwrap();
    assert_eq!(upcall.attach().unwrap_err(), AttachError::Attached);
    drop(attachment);
    domain.close();
    let attachment = upcall.attach().unwrap();
    assert_eq!(attachment.send(1, 1), Posted::Sent);
    let counters = attachment.counters();
    assert_eq!((counters.delivered, counters.skipped), (0, 1));
}

/// Not a test of how fast it is, but the figure.
#[test]
fn what_one_costs() {
    succeeds_in_child("what_one_costs", || {
        extern "C" fn nothing(_: i32) {}
        let domain = domain();
        let attachment = domain.upcall("empty").unwrap().attach().unwrap();
        let cycles = |what: &mut dyn FnMut()| {
            let one = |_| unsafe {
                let begun = std::arch::x86_64::_rdtsc();
                what();
                std::arch::x86_64::_rdtsc() - begun
            };
            let mut all: Vec<u64> = (0..4000).map(one).collect();
            all.sort_unstable();
            (all[0], all[all.len() / 2])
        };
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
        }
        let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
        let plain = cycles(&mut || unsafe {
            libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1);
        });
        let upcall = cycles(&mut || {
            attachment.send(1, 1);
        });
        assert_eq!(attachment.counters().delivered, 4000);
        println!(
            "cycles, least and median: signal {plain:?}, upcall {upcall:?}, ratio {:.2}",
            upcall.1 as f64 / plain.1 as f64
        );
    });
}
