//! The host's own signals: they go on working around, over and under extensions. Each test in a
//! process of its own.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{CallError, Caller, Domain, FaultKind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use support::{code, cold, in_child, succeeds_in_child};

fn domain() -> Domain {
    with_deadline(Duration::from_secs(60))
}

fn with_deadline(deadline: Duration) -> Domain {
    let image = code(
        &[("s", "i(i)")],
        &[
            ("good", "i(i)"),
            ("serve", "i(i)"),
            ("spin", "v()"),
            ("trap", "v()"),
            ("sum", "l(l)"),
        ],
        "good: leal 1(%rdi),%eax
            ret
         serve: call s
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
    cold(&image)
        .deadline(Some(deadline))
        .service("s", |_: &Caller<'_>, x: i32| x * 2)
        .build()
        .unwrap()
}

fn install(signal: i32, handler: usize, flags: i32) {
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

fn timer(which: i32, micros: i64) {
    let every = libc::timeval {
        tv_sec: 0,
        tv_usec: micros,
    };
    let value = libc::itimerval {
        it_interval: every,
        it_value: every,
    };
    assert_eq!(
        unsafe { libc::setitimer(which as _, &value, std::ptr::null_mut()) },
        0
    );
}

static COUNT: AtomicU32 = AtomicU32::new(0);
extern "C" fn count(_: i32) {
    // Long enough that abort signals do arrive while it runs.
    for i in 0..2000u32 {
        std::hint::black_box(i);
    }
    COUNT.fetch_add(1, SeqCst);
}

/// Calls, services, faults and deadlines under a storm of the host's signals.
fn storm(signal: i32, which: i32, flags: i32) {
    let mut config = postern::Config::default();
    config.adopt_handlers = true;
    postern::init(config).unwrap();
    let d = domain();
    let brief = with_deadline(Duration::from_millis(10));
    install(signal, count as *const () as usize, flags);
    timer(which, 300);
    let (good, serve) = (
        d.func::<fn(i32) -> i32>("good").unwrap(),
        d.func::<fn(i32) -> i32>("serve").unwrap(),
    );
    let sum = d.func::<fn(i64) -> i64>("sum").unwrap();
    let mut rounds = 0;
    while COUNT.load(SeqCst) < 400 || rounds < 5 {
        rounds += 1;
        for i in 0..20_000 {
            assert_eq!(good.call(i).unwrap(), i + 1);
            assert_eq!(serve.call(i).unwrap(), i * 2);
        }
        assert_eq!(sum.call(1_000_000).unwrap(), 500_000_500_000);
        let e = brief.func::<fn()>("spin").unwrap().call().unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline);
        brief.reset().unwrap();
        let e = d.func::<fn()>("trap").unwrap().call().unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::Trap);
        d.reset().unwrap();
    }
    timer(which, 0);
}

#[test]
fn alarms_whose_handlers_are_adopted() {
    succeeds_in_child("alarms_whose_handlers_are_adopted", || {
        storm(libc::SIGALRM, 0, libc::SA_RESTART)
    });
}

#[test]
fn alarms_on_the_signal_stack() {
    succeeds_in_child("alarms_on_the_signal_stack", || {
        storm(libc::SIGALRM, 0, libc::SA_ONSTACK | libc::SA_RESTART)
    });
}

#[test]
fn profiling_signals() {
    succeeds_in_child("profiling_signals", || {
        storm(libc::SIGPROF, 2, libc::SA_ONSTACK | libc::SA_RESTART)
    });
}

/// Interrupts that meet a handler of the host are not lost.
#[test]
fn interrupts_during_the_hosts_handlers() {
    succeeds_in_child("interrupts_during_the_hosts_handlers", || {
        extern "C" fn slow(_: i32) {
            COUNT.fetch_add(1, SeqCst);
            std::thread::sleep(Duration::from_millis(5));
        }
        let image = support::image(&[("spin", "v()")], "spin: jmp spin");
        let d = cold(&image).deadline(None).build().unwrap();
        install(libc::SIGUSR1, slow as *const () as usize, libc::SA_ONSTACK);
        for _ in 0..10 {
            let spin = d.func::<fn()>("spin").unwrap();
            let calls = d.counters().calls;
            let thread = std::thread::spawn(move || spin.call());
            let id = {
                use std::os::unix::thread::JoinHandleExt;
                thread.as_pthread_t()
            };
            while d.counters().calls == calls {
                std::thread::yield_now();
            }
            let before = COUNT.load(SeqCst);
            unsafe { libc::pthread_kill(id, libc::SIGUSR1) };
            while COUNT.load(SeqCst) == before {
                std::thread::yield_now();
            }
            // The handler runs over the extension now. Asked once:
            d.interrupt();
            let e = thread.join().unwrap().unwrap_err();
            assert_eq!(e.fault().unwrap().kind, FaultKind::Interrupted);
        }
    });
}

/// A fault of the host itself goes to the handler that the host had.
#[test]
fn the_hosts_own_faults_go_to_its_own_handler() {
    static SEEN: AtomicU32 = AtomicU32::new(0);
    extern "C" fn own(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        assert_eq!(signal, libc::SIGSEGV);
        assert_eq!(unsafe { (*info).si_addr() } as usize, 0x18);
        SEEN.fetch_add(1, SeqCst);
        // Skip the three bytes of the load.
        unsafe {
            (*(context as *mut libc::ucontext_t)).uc_mcontext.gregs[libc::REG_RIP as usize] += 3
        };
    }
    succeeds_in_child("the_hosts_own_faults_go_to_its_own_handler", || {
        install(
            libc::SIGSEGV,
            own as *const () as usize,
            libc::SA_SIGINFO | libc::SA_NODEFER,
        );
        let faulty = || unsafe {
            std::arch::asm!(".byte 0x48, 0x8b, 0x00", inout("rax") 0x18usize => _);
        };
        faulty();
        let image = code(
            &[("s", "i(i)")],
            &[("serve", "i(i)"), ("null", "i()")],
            "serve: call s\nret\nnull: movl %gs:0x18(,%eiz,1),%eax\nret",
        )
        .image();
        let d = cold(&image)
            .service("s", move |_: &Caller<'_>, x: i32| {
                faulty();
                x
            })
            .build()
            .unwrap();
        faulty();
        for i in 0..5 {
            assert_eq!(
                d.func::<fn(i32) -> i32>("serve").unwrap().call(i).unwrap(),
                i
            );
            let e = d.func::<fn() -> i32>("null").unwrap().call().unwrap_err();
            assert_eq!(e.fault().unwrap().kind, FaultKind::NullPointer);
            d.reset().unwrap();
        }
        assert_eq!(SEEN.load(SeqCst), 7);
    });
}

/// Without a handler of its own, the host's fault ends it as ever.
#[test]
fn the_hosts_own_faults_end_it() {
    use std::os::unix::process::ExitStatusExt;
    let output = in_child("the_hosts_own_faults_end_it", || {
        let d = domain();
        d.func::<fn(i32) -> i32>("good").unwrap().call(1).unwrap();
        unsafe { std::arch::asm!("ud2") };
    });
    assert_eq!(output.status.signal(), Some(libc::SIGILL));
    let output = in_child("the_hosts_own_faults_end_it", || {});
    assert_eq!(output.status.signal(), Some(libc::SIGILL));
}

/// Somebody's kill(SIGSEGV) is not a fault of the extension that happens to run.
#[test]
fn sent_signals_are_no_faults() {
    succeeds_in_child("sent_signals_are_no_faults", || {
        install(libc::SIGSEGV, count as *const () as usize, 0);
        let d = domain();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let me = unsafe { libc::pthread_self() } as usize;
        let s = stop.clone();
        let sender = std::thread::spawn(move || {
            while !s.load(SeqCst) {
                unsafe { libc::pthread_kill(me as libc::pthread_t, libc::SIGSEGV) };
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let sum = d.func::<fn(i64) -> i64>("sum").unwrap();
        while COUNT.load(SeqCst) < 200 {
            assert_eq!(sum.call(100_000).unwrap(), 5_000_050_000);
        }
        stop.store(true, SeqCst);
        sender.join().unwrap();
    });
}

#[test]
fn blocked_signals_are_refused_by_name() {
    succeeds_in_child("blocked_signals_are_refused_by_name", || {
        let d = domain();
        for (signal, name) in [
            (libc::SIGSEGV, "SIGSEGV"),
            (libc::SIGTRAP, "SIGTRAP"),
            (libc::SIGRTMAX() - 3, "SIGRTMIN+"),
        ] {
            let good = d.func::<fn(i32) -> i32>("good").unwrap();
            std::thread::spawn(move || {
                let mask = |how| unsafe {
                    let mut set: libc::sigset_t = std::mem::zeroed();
                    libc::sigaddset(&mut set, signal);
                    libc::pthread_sigmask(how, &set, std::ptr::null_mut());
                };
                mask(libc::SIG_BLOCK);
                let e = good.call(1).unwrap_err();
                assert!(
                    matches!(e, CallError::SignalBlocked(s) if s == signal),
                    "{e}"
                );
                assert!(e.to_string().contains(name), "{e}");
                mask(libc::SIG_UNBLOCK);
                assert_eq!(good.call(1).unwrap(), 2);
            })
            .join()
            .unwrap();
        }
    });
}

#[test]
fn replaced_handlers_are_found_and_named() {
    succeeds_in_child("replaced_handlers_are_found_and_named", || {
        let d = domain();
        let good = d.func::<fn(i32) -> i32>("good").unwrap();
        install(libc::SIGFPE, count as *const () as usize, 0);
        let e = good.call(1).unwrap_err();
        assert!(matches!(e, CallError::HandlerReplaced(libc::SIGFPE)), "{e}");
        assert!(
            e.to_string().contains("SIGFPE") && e.to_string().contains("handle_signal"),
            "{e}"
        );
    });
}

#[test]
fn configurations_that_cannot_work_say_so() {
    succeeds_in_child("configurations_that_cannot_work_say_so", || {
        let mut config = postern::Config::default();
        config.abort_signal = libc::SIGSEGV;
        let e = postern::init(config).unwrap_err().to_string();
        assert!(e.contains("11"), "{e}");
    });
}

/// The watchdog's thread: how often it was woken, if it is there under its name.
fn woken() -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let watchdog = tasks.map(|task| task.unwrap().path()).find(|path| {
        std::fs::read_to_string(path.join("comm")).unwrap().trim() == "postern-watchdo"
    })?;
    let status = std::fs::read_to_string(watchdog.join("status")).unwrap();
    let line = status
        .lines()
        .find(|l| l.starts_with("voluntary_ctxt_switches"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// Waits until nothing wakes the watchdog for as long as thirty of its looks would take.
fn rests() {
    for _ in 0..100 {
        let before = woken();
        std::thread::sleep(Duration::from_millis(300));
        if before.is_some() && woken() == before {
            return;
        }
    }
    panic!("the watchdog never rests");
}

/// An idle process is not woken at all; who comes then has its deadline kept, on threads that were
/// there before and on new ones.
#[test]
fn the_watchdog_rests_until_somebody_comes() {
    succeeds_in_child("the_watchdog_rests_until_somebody_comes", || {
        let d = with_deadline(Duration::from_millis(20));
        let image_with_service = with_deadline(Duration::from_millis(20));
        let good = d.func::<fn(i32) -> i32>("good").unwrap();
        let ends = |d: &Domain| {
            let e = d.func::<fn()>("spin").unwrap().call().unwrap_err();
            assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline);
            d.reset().unwrap();
        };
        good.call(1).unwrap();
        rests();
        ends(&d);
        rests();
        std::thread::scope(|s| {
            s.spawn(|| ends(&d)).join().unwrap();
        });
        rests();
        // The first call after a rest begins no shorter time, and none is charged for the rest.
        let before = d.counters().time_inside;
        good.call(1).unwrap();
        rests();
        assert!(d.counters().time_inside - before < Duration::from_millis(300));
        // By the full gate, and in a child of fork.
        assert_eq!(
            support::fork(|| {
                ends(&image_with_service);
                true
            }),
            0
        );
        ends(&image_with_service);
    });
}

#[test]
fn deadlines_of_all_lengths() {
    let image = support::image(
        &[("spin", "v()"), ("good", "v()")],
        "spin: jmp spin\ngood: ret",
    );
    for (micros, at_least) in [
        (0, 0),
        (1, 0),
        (1000, 1),
        (5000, 5),
        (50_000, 50),
        (300_000, 300),
    ] {
        let d = cold(&image)
            .deadline(Some(Duration::from_micros(micros)))
            .build()
            .unwrap();
        let before = std::time::Instant::now();
        let e = d.func::<fn()>("spin").unwrap().call().unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline);
        assert!(before.elapsed() >= Duration::from_millis(at_least));
    }
    let d = cold(&image).deadline(Some(Duration::MAX)).build().unwrap();
    d.func::<fn()>("good").unwrap().call().unwrap();
    // None: nothing but an interrupt ends it.
    let d = cold(&image).deadline(None).build().unwrap();
    let spin = d.func::<fn()>("spin").unwrap();
    let t = std::thread::spawn(move || spin.call());
    while d.counters().time_inside < Duration::from_millis(50) {
        std::thread::yield_now();
    }
    assert!(!t.is_finished());
    d.interrupt();
    assert_eq!(
        t.join().unwrap().unwrap_err().fault().unwrap().kind,
        FaultKind::Interrupted
    );
}
