//! Upcalls: handlers of domains interrupt threads anywhere, and the threads go on as they were.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{
    AttachError, Attachment, CallError, Caller, Domain, FaultKind, Image, Posted, UpcallSender,
};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
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

fn fault_kind(error: Option<CallError>) -> Option<FaultKind> {
    error.and_then(|error| error.fault().map(|fault| fault.kind))
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

#[test]
fn the_hosts_registers_stay() {
    let domain = domain();
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let values: [[u64; 4]; 16] =
        std::array::from_fn(|i| std::array::from_fn(|k| (i * 4 + k) as u64 * 0x0101_0101_0101));
    while_flooded(&attachment, 300, |round| {
        let mut after = [[0u64; 4]; 16];
        let sum: u64;
        unsafe {
            std::arch::asm!(
                "vmovdqu ymm0, [{v}]", "vmovdqu ymm1, [{v} + 32]", "vmovdqu ymm2, [{v} + 64]",
                "vmovdqu ymm3, [{v} + 96]", "vmovdqu ymm4, [{v} + 128]", "vmovdqu ymm5, [{v} + 160]",
                "vmovdqu ymm6, [{v} + 192]", "vmovdqu ymm7, [{v} + 224]", "vmovdqu ymm8, [{v} + 256]",
                "vmovdqu ymm9, [{v} + 288]", "vmovdqu ymm10, [{v} + 320]", "vmovdqu ymm11, [{v} + 352]",
                "vmovdqu ymm12, [{v} + 384]", "vmovdqu ymm13, [{v} + 416]", "vmovdqu ymm14, [{v} + 448]",
                "vmovdqu ymm15, [{v} + 480]",
                "xor rax, rax", "mov rcx, 300000",
                // The red zone is the interrupted function's, too.
                "2:", "mov [rsp - 64], rcx", "add rax, rcx", "add rax, [rsp - 64]",
                "dec rcx", "jnz 2b",
                "vmovdqu [{a}], ymm0", "vmovdqu [{a} + 32], ymm1", "vmovdqu [{a} + 64], ymm2",
                "vmovdqu [{a} + 96], ymm3", "vmovdqu [{a} + 128], ymm4", "vmovdqu [{a} + 160], ymm5",
                "vmovdqu [{a} + 192], ymm6", "vmovdqu [{a} + 224], ymm7", "vmovdqu [{a} + 256], ymm8",
                "vmovdqu [{a} + 288], ymm9", "vmovdqu [{a} + 320], ymm10", "vmovdqu [{a} + 352], ymm11",
                "vmovdqu [{a} + 384], ymm12", "vmovdqu [{a} + 416], ymm13", "vmovdqu [{a} + 448], ymm14",
                "vmovdqu [{a} + 480], ymm15", "vzeroupper",
                v = in(reg) values.as_ptr(), a = in(reg) after.as_mut_ptr(),
                out("rax") sum, out("rcx") _, clobber_abi("C"),
            );
        }
        assert_eq!((after, sum), (values, 300_000 * 300_001), "round {round}");
    });
}

#[test]
fn calls_and_services_have_their_results() {
    let (domain, victim) = (domain(), victim());
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let add = victim.func::<fn(i32, i32) -> i32>("add").unwrap();
    let mix = victim.func::<fn(f64, f64, f64, f64) -> f64>("mix").unwrap();
    let many = victim
        .func::<fn(i64, i64, i64, i64, i64, i64, i64, i64) -> i64>("many")
        .unwrap();
    let serve = victim.func::<fn(i32) -> i32>("serve").unwrap();
    let halved = victim.func::<fn(f64) -> f64>("halved").unwrap();
    while_flooded(&attachment, 3000, |round| {
        for i in 0..200 {
            let n = i64::from(round);
            assert_eq!(add.call(i, 7).unwrap(), i + 7);
            let x = f64::from(i);
            assert_eq!(mix.call(x, 3.0, 1.0, 7.0).unwrap(), (x * 3.0 + 1.0) / 7.0);
            assert_eq!(many.call(n, 2, 3, 4, 5, 6, 70, 8).unwrap(), n + 72);
            assert_eq!(serve.call(i).unwrap(), 2 * i + 1);
            assert_eq!(halved.call(x).unwrap(), x);
        }
    });
}

/// The domain's own calls, while its handler interrupts them.
#[test]
fn a_domain_interrupts_itself() {
    let domain = domain();
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let counted = domain.func::<fn() -> u64>("counted").unwrap();
    let mut last = 0;
    while_flooded(&attachment, 2000, |_| {
        for _ in 0..1000 {
            let now = counted.call().unwrap();
            assert!(now >= last);
            last = now;
        }
    });
}

#[test]
fn faults_and_deadlines_are_as_ever() {
    let (domain, victim) = (domain(), victim());
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let trap = victim.func::<fn()>("trap").unwrap();
    let brief = cold(&victim.image()).deadline(Some(Duration::from_millis(2)));
    let brief = brief.service("s", |_: &Caller<'_>, x: i32| x);
    let brief = brief
        .service("half", |_: &Caller<'_>, x: f64| x)
        .build()
        .unwrap();
    let spin = brief.func::<fn()>("spin").unwrap();
    while_flooded(&attachment, 1000, |round| {
        let error = trap.call().unwrap_err();
        assert_eq!(error.fault().unwrap().kind, FaultKind::Trap);
        assert!(victim.is_poisoned());
        victim.reset().unwrap();
        if round % 16 == 0 {
            let error = spin.call().unwrap_err();
            assert_eq!(error.fault().unwrap().kind, FaultKind::Deadline);
            brief.reset().unwrap();
        }
    });
    assert!(!domain.is_poisoned());
}

#[test]
fn the_allocator_and_system_calls_do_not_notice() {
    let domain = domain();
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let writer = std::thread::spawn(move || {
        for byte in 0..200u8 {
            std::thread::sleep(Duration::from_micros(300));
            assert_eq!(
                unsafe { libc::write(ends[1], (&raw const byte).cast(), 1) },
                1
            );
        }
    });
    let mut read = 0u8;
    while_flooded(&attachment, 1000, |round| {
        let all: Vec<String> = (0..64).map(|i| format!("{}", round + i)).collect();
        assert_eq!(all[63], format!("{}", round + 63));
        unsafe {
            *libc::__errno_location() = 0;
            assert_eq!(libc::close(-1), -1);
            for _ in 0..1000 {
                assert_eq!(*libc::__errno_location(), libc::EBADF);
            }
            if read < 200 {
                // Interrupted while it waits, and begun again.
                let mut byte = 0u8;
                assert_eq!(libc::read(ends[0], (&raw mut byte).cast(), 1), 1);
                assert_eq!(byte, read);
                read += 1;
            }
        }
    });
    while read < 200 {
        let mut byte = 0u8;
        assert_eq!(unsafe { libc::read(ends[0], (&raw mut byte).cast(), 1) }, 1);
        read += 1;
    }
    writer.join().unwrap();
}

/// The domains of the handler and of the interrupted calls, by another thread.
#[test]
fn resets_and_closes_by_others() {
    let (domain, victim) = (domain(), victim());
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(SeqCst) {
                let _ = domain.reset();
                let _ = victim.reset();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let attachment = domain.upcall("on").unwrap().attach().unwrap();
        let add = victim.func::<fn(i32, i32) -> i32>("add").unwrap();
        let flood = Flood::of(attachment.sender());
        let (begun, mut good) = (Instant::now(), 0);
        while attachment.counters().delivered < 1000 || good < 1000 {
            match add.call(1, 2) {
                Ok(sum) => good += i32::from(sum == 3),
                Err(error) => assert!(matches!(error, CallError::Busy), "{error}"),
            }
            assert!(begun.elapsed() < Duration::from_secs(100), "{attachment:?}");
        }
        ends.store(true, SeqCst);
        domain.close();
        let closed = attachment.counters();
        while attachment.counters().skipped < closed.skipped + 10 {
            std::hint::spin_loop();
        }
        drop(flood);
        assert_eq!(attachment.counters().delivered, closed.delivered);
        assert_eq!(attachment.counters().ended, 0);
    });
}

#[test]
fn a_handler_that_loops_is_ended_and_poisons_its_domain_only() {
    let (domain, victim) = (domain(), victim());
    let upcall = domain.upcall("loops").unwrap();
    let attachment = upcall.longest(Duration::from_millis(5)).attach().unwrap();
    let begun = Instant::now();
    assert_eq!(attachment.send(1, 1), Posted::Sent);
    assert!(begun.elapsed() >= Duration::from_millis(5));
    assert_eq!(attachment.counters().ended, 1);
    assert!(domain.is_poisoned());
    assert_eq!(
        fault_kind(attachment.take_fault()),
        Some(FaultKind::Deadline)
    );
    assert!(attachment.take_fault().is_none());
    // Skipped, until the domain begins anew.
    attachment.send(1, 1);
    assert_eq!(attachment.counters().skipped, 1);
    domain.reset().unwrap();
    // In a call, too.
    let sum = victim.func::<fn(i64) -> i64>("sum").unwrap();
    let sender = attachment.sender();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        sender.send(2, 2);
    });
    let n = 40_000_000;
    assert_eq!(sum.call(n).unwrap(), n * (n + 1) / 2);
    thread.join().unwrap();
    assert_eq!(attachment.counters().ended, 2);
    assert!(domain.is_poisoned() && !victim.is_poisoned());
}

#[test]
fn a_handler_that_faults_poisons_its_domain_only() {
    for (name, kind) in [
        ("traps", FaultKind::Trap),
        ("deep", FaultKind::ControlStackOverflow),
    ] {
        let victim = victim();
        let told = Arc::new(AtomicU32::new(0));
        let count = told.clone();
        let builder = cold(&handlers()).service("s", |_: &Caller<'_>, x: i32| x);
        let builder = builder.on_fault(move |_| {
            count.fetch_add(1, SeqCst);
        });
        let domain = builder.build().unwrap();
        let attachment = domain.upcall(name).unwrap().attach().unwrap();
        let serve = victim.func::<fn(i32) -> i32>("serve").unwrap();
        for round in 1..50 {
            attachment.send(1, 1);
            assert_eq!(serve.call(20).unwrap(), 41);
            assert!(domain.is_poisoned());
            assert_eq!(attachment.counters().ended, round);
            let fault = attachment.take_fault();
            assert_eq!(fault_kind(fault), Some(kind), "{name}");
            assert_eq!(u64::from(told.load(SeqCst)), round);
            domain.reset().unwrap();
        }
        assert!(!victim.is_poisoned());
    }
}

#[test]
fn handlers_call_what_they_are_allowed() {
    let domain = domain();
    let upcall = domain.upcall("serves").unwrap();
    {
        let attachment = upcall.attach().unwrap();
        attachment.send(41, 0);
        assert_eq!(attachment.counters().ended, 1);
        let error = attachment.take_fault().unwrap();
        assert!(error.to_string().contains("Upcall::allow"), "{error}");
        domain.reset().unwrap();
    }
    let attachment = unsafe { upcall.allow("s") }.attach().unwrap();
    attachment.send(41, 0);
    assert_eq!(number(&domain, "latest"), 42);
    while_flooded(&attachment, 500, |_| {
        std::hint::black_box(vec![1; 100]);
    });
}

#[test]
fn services_of_handlers_enter_no_domain() {
    static REFUSED: AtomicU64 = AtomicU64::new(0);
    let victim = victim();
    let add = victim.func::<fn(i32, i32) -> i32>("add").unwrap();
    let domain = with_service(move |_, x| {
        match add.call(x, 1) {
            Err(CallError::InsideExtension) => REFUSED.fetch_add(1, SeqCst),
            _ => 0,
        };
        assert!(!unsafe { postern::unwind(0) });
        7
    });
    let attachment = unsafe { domain.upcall("serves").unwrap().allow("s") }
        .attach()
        .unwrap();
    for n in 1..20 {
        attachment.send(1, 1);
        assert_eq!(REFUSED.load(SeqCst), n);
        assert_eq!(number(&domain, "latest"), 7);
    }
}

/// A wish that comes while the call waits for an upcall is not lost.
#[test]
fn interrupts_of_the_interrupted_call() {
    let (domain, victim) = (domain(), victim());
    let attachment = domain.upcall("sum").unwrap().attach().unwrap();
    let spin = victim.func::<fn()>("spin").unwrap();
    for round in 0..20 {
        let (sender, other) = (attachment.sender(), victim.clone());
        let calls = victim.counters().calls;
        let thread = std::thread::spawn(move || {
            while other.counters().calls == calls {
                std::hint::spin_loop();
            }
            sender.send(1, 1);
            std::thread::sleep(Duration::from_micros(500 * round));
            other.interrupt();
        });
        let error = spin.call().unwrap_err();
        assert_eq!(error.fault().unwrap().kind, FaultKind::Interrupted);
        thread.join().unwrap();
    }
    assert!(attachment.counters().delivered > 10, "{attachment:?}");
}

/// Upcalls, and faults of upcalls, while the host's own handler is on the signal stack.
#[test]
fn on_the_signal_stack() {
    succeeds_in_child("on_the_signal_stack", || {
        static DONE: AtomicU32 = AtomicU32::new(0);
        extern "C" fn busy(_: i32) {
            let mut words: [u64; 512] = std::array::from_fn(|i| i as u64);
            for round in 0..200 {
                std::hint::black_box(&mut words);
                assert!(
                    words.iter().enumerate().all(|(i, &w)| w == i as u64),
                    "{round}"
                );
            }
            DONE.fetch_add(1, SeqCst);
        }
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = busy as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
        }
        let domain = domain();
        let victim = victim();
        let add = victim.func::<fn(i32, i32) -> i32>("add").unwrap();
        let attachment = domain.upcall("on").unwrap().attach().unwrap();
        while_flooded(&attachment, 1000, |_| {
            unsafe { libc::raise(libc::SIGUSR1) };
            assert_eq!(add.call(1, 2).unwrap(), 3);
        });
        drop(attachment);
        let attachment = domain.upcall("traps").unwrap().attach().unwrap();
        let flood = Flood::of(attachment.sender());
        let mut ended = 0;
        while ended < 300 {
            unsafe { libc::raise(libc::SIGUSR1) };
            assert_eq!(add.call(1, 2).unwrap(), 3);
            if let Some(error) = attachment.take_fault() {
                assert_eq!(error.fault().unwrap().kind, FaultKind::Trap);
                ended += 1;
                domain.reset().unwrap();
            }
        }
        drop(flood);
    });
}

/// A thread that ends while it is attached, and one that forks.
/// The timer that looks at the time of handlers runs out at any instruction of a detachment.
#[test]
fn a_timer_that_runs_out_while_a_thread_detaches() {
    succeeds_in_child("a_timer_that_runs_out_while_a_thread_detaches", || {
        let domain = domain();
        for n in 0..10_000u64 {
            let longest = Duration::from_nanos(200 * (n % 200 + 1));
            let upcall = domain.upcall("empty").unwrap().longest(longest);
            let attachment = upcall.attach().unwrap();
            attachment.send(1, 1);
            drop(attachment);
            if domain.is_poisoned() {
                domain.reset().unwrap();
            }
        }
    });
}

#[test]
fn ends_and_forks_while_attached() {
    succeeds_in_child("ends_and_forks_while_attached", || {
        let domain = domain();
        for _ in 0..20 {
            let domain = domain.clone();
            std::thread::spawn(move || {
                let attachment = domain.upcall("on").unwrap().attach().unwrap();
                let flood = Flood::of(attachment.sender());
                while attachment.counters().delivered < 10 {}
                // It is never dropped.
                std::mem::forget((attachment, flood));
            });
        }
        let attachment = domain.upcall("on").unwrap().attach().unwrap();
        let before = attachment.counters().delivered;
        let status = support::fork(|| {
            attachment.send(1, 1);
            attachment.counters().delivered == before
        });
        assert_eq!(status, 0);
        assert_eq!(attachment.send(1, 1), Posted::Sent);
        assert!(attachment.counters().delivered > before);
    });
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
