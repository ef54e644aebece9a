//! Handlers of the host's that would run where an extension left no stack, handlers that replace
//! Postern's, handlers that call extensions, and stacks without an end. Each test in a process of
//! its own.
#![allow(clippy::undocumented_unsafe_blocks)]
#[path = "host_handlers/exchanged.rs"]
mod exchanged;
mod support;
use postern::{CallError, Caller, Domain, FaultKind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use support::{code, cold, fork, in_child, succeeds_in_child};

fn domain() -> Domain {
    let image = code(
        &[("s", "i(i)")],
        &[
            ("good", "i(i)"),
            ("serve", "i(i)"),
            ("spin", "v()"),
            ("trap", "v()"),
            ("recurse", "v()"),
            ("brink", "v(l)"),
        ],
        // `brink` calls itself so often, waits there, and comes back.
        "good: leal 1(%rdi),%eax
            ret
         serve: call s
            ret
         spin: jmp spin
         trap: ud2
         recurse: call recurse
            ret
         brink: decq %rdi
            je 1f
            call brink
            ret
         1: movl $3000000,%eax
         2: decl %eax
            jne 2b
            ret",
    )
    .image();
    cold(&image)
        .deadline(Some(Duration::from_secs(20)))
        .service("s", |_: &Caller<'_>, x: i32| x * 2)
        .build()
        .unwrap()
}

fn good(d: &Domain) -> Result<i32, CallError> {
    d.func::<fn(i32) -> i32>("good").unwrap().call(1)
}

fn adopt() {
    let mut config = postern::Config::default();
    config.adopt_handlers = true;
    postern::init(config).unwrap();
}

fn action(signal: i32) -> libc::sigaction {
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(signal, std::ptr::null(), &mut action), 0);
        action
    }
}

fn install(signal: i32, handler: usize, flags: i32) {
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        libc::sigaddset(&mut action.sa_mask, libc::SIGWINCH);
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

static COUNT: AtomicU32 = AtomicU32::new(0);
extern "C" fn count(_: i32) {
    // Some stack, as handlers use it.
    let mut words = [0u8; 3000];
    std::hint::black_box(&mut words);
    COUNT.fetch_add(1, SeqCst);
}

#[test]
fn handlers_on_the_control_stack_are_refused_by_name() {
    succeeds_in_child("handlers_on_the_control_stack_are_refused_by_name", || {
        let d = domain();
        for (signal, name) in [
            (libc::SIGTERM, "SIGTERM"),
            (libc::SIGUSR2, "SIGUSR2"),
            (libc::SIGRTMIN() + 2, "SIGRTMIN+2"),
        ] {
            install(signal, count as *const () as usize, 0);
            let other = d.clone();
            let e = std::thread::spawn(move || good(&other).unwrap_err())
                .join()
                .unwrap();
            assert!(
                matches!(e, CallError::HandlerStack(s) if s == signal),
                "{e}"
            );
            let text = e.to_string();
            assert!(
                text.contains(name)
                    && text.contains("SA_ONSTACK")
                    && text.contains("adopt_handlers"),
                "{e}"
            );
            install(signal, count as *const () as usize, libc::SA_ONSTACK);
            assert_eq!(good(&d).unwrap(), 2);
            install(signal, libc::SIG_IGN, 0);
            assert_eq!(good(&d).unwrap(), 2);
        }
    });
}

/// An extension goes to within some hundred bytes of its stack's end, again and again, under a
/// storm of signals.
#[test]
fn adopted_handlers_find_room() {
    succeeds_in_child("adopted_handlers_find_room", || {
        adopt();
        install(libc::SIGALRM, count as *const () as usize, libc::SA_RESTART);
        std::thread::Builder::new()
            .stack_size(128 << 10)
            .spawn(|| {
                let d = domain();
                let before = action(libc::SIGALRM);
                good(&d).unwrap();
                let now = action(libc::SIGALRM);
                assert_eq!(now.sa_sigaction, before.sa_sigaction);
                assert_eq!(
                    now.sa_flags & (libc::SA_ONSTACK | libc::SA_RESTART),
                    libc::SA_ONSTACK | libc::SA_RESTART
                );
                assert_eq!(
                    unsafe { libc::sigismember(&now.sa_mask, libc::SIGWINCH) },
                    1
                );
                let me = unsafe { libc::pthread_self() } as usize;
                let stop = std::sync::Arc::new(AtomicBool::new(false));
                let stopped = stop.clone();
                let storm = std::thread::spawn(move || {
                    while !stopped.load(SeqCst) {
                        unsafe { libc::pthread_kill(me as libc::pthread_t, libc::SIGALRM) };
                        std::thread::sleep(Duration::from_micros(100));
                    }
                });
                // The deepest that just returns.
                let brink = d.func::<fn(i64)>("brink").unwrap();
                let (mut fits, mut not) = (1, 1 << 20);
                while fits + 1 < not {
                    let depth = (fits + not) / 2;
                    match brink.call(depth) {
                        Ok(()) => fits = depth,
                        Err(e) => {
                            assert_eq!(
                                e.fault().unwrap().kind,
                                FaultKind::ControlStackOverflow,
                                "{e}"
                            );
                            d.reset().unwrap();
                            not = depth;
                        }
                    }
                }
                assert!(fits > 4096);
                let before = COUNT.load(SeqCst);
                while COUNT.load(SeqCst) < before + 50 {
                    brink.call(fits).unwrap();
                    let e = d.func::<fn()>("recurse").unwrap().call().unwrap_err();
                    assert_eq!(
                        e.fault().unwrap().kind,
                        FaultKind::ControlStackOverflow,
                        "{e}"
                    );
                    d.reset().unwrap();
                }
                stop.store(true, SeqCst);
                storm.join().unwrap();
            })
            .unwrap()
            .join()
            .unwrap();
    });
}

/// One that is installed while extensions run is found by the watchdog: adopted, or the next calls
/// are refused.
#[test]
fn handlers_that_come_later() {
    for adopts in [false, true] {
        let name = "handlers_that_come_later";
        let body = || {
            if adopts {
                adopt();
            }
            let d = domain();
            good(&d).unwrap();
            let other = d.clone();
            let calls = d.counters().calls;
            let t = std::thread::spawn(move || other.func::<fn()>("spin").unwrap().call().is_err());
            while d.counters().calls == calls {
                std::thread::yield_now();
            }
            install(libc::SIGUSR1, count as *const () as usize, 0);
            let found = || match adopts {
                true => action(libc::SIGUSR1).sa_flags & libc::SA_ONSTACK != 0,
                false => matches!(good(&d), Err(CallError::HandlerStack(libc::SIGUSR1))),
            };
            while !found() {
                std::thread::sleep(Duration::from_millis(1));
            }
            d.interrupt();
            let _ = t.join();
            if !adopts {
                install(libc::SIGUSR1, libc::SIG_DFL, 0);
            }
            d.reset().unwrap();
            assert_eq!(good(&d).unwrap(), 2);
        };
        // Two children, told apart by a variable of their own.
        let key = "POSTERN_ADOPTS";
        match std::env::var(key) {
            Ok(which) if which != adopts.to_string() => continue,
            Ok(_) => {}
            Err(_) => unsafe { std::env::set_var(key, adopts.to_string()) },
        }
        let output = in_child(name, body);
        unsafe { std::env::remove_var(key) };
        assert!(
            output.status.success(),
            "{adopts}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Has the system make no more threads.
fn no_more_threads() {
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let (load, equal, result) = (0x20, 0x15, 0x06);
    let answer = |error: i32| step(result, 0, 0x0005_0000 | error as u32);
    let mut filter = [
        step(load, 0, 0),
        step(equal, 3, libc::SYS_clone as u32),
        step(equal, 1, libc::SYS_clone3 as u32),
        step(result, 0, 0x7fff_0000),
        answer(libc::ENOSYS),
        answer(libc::EAGAIN),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, 2, &raw const program), 0);
    }
}

/// Without a watchdog nobody enters, however often it is tried.
#[test]
fn nobody_enters_where_no_watchdog_can_be_made() {
    succeeds_in_child("nobody_enters_where_no_watchdog_can_be_made", || {
        let d = domain();
        let f = d.func::<fn(i32) -> i32>("good").unwrap();
        f.call(1).unwrap();
        let status = fork(|| {
            no_more_threads();
            [(); 3].map(|()| matches!(f.call(1), Err(CallError::NoWatchdog))) == [true; 3]
        });
        assert_eq!(status, 0);
    });
}

/// Threads that do all that threads do, under signals whose handlers call extensions by every way.
#[test]
fn handlers_that_call_are_always_refused() {
    succeeds_in_child("handlers_that_call_are_always_refused", || {
        static POINTER: OnceLock<extern "C" fn(i32) -> i32> = OnceLock::new();
        type Function = postern::Func<fn(i32) -> i32>;
        static FUNC: OnceLock<Function> = OnceLock::new();
        static FIRST: OnceLock<Function> = OnceLock::new();
        static REFUSED: AtomicU64 = AtomicU64::new(0);
        static WRONG: AtomicU64 = AtomicU64::new(0);
        static STOP: AtomicBool = AtomicBool::new(false);
        static READY: AtomicU32 = AtomicU32::new(0);
        extern "C" fn handler(_: i32) {
            let refused =
                |e: &CallError| matches!(e, CallError::InsideExtension | CallError::OnSignalStack);
            let mut fine = POINTER.get().unwrap()(1) == 0;
            fine &= postern::last_error().as_ref().is_some_and(refused);
            for f in [&FUNC, &FIRST] {
                fine &= f.get().unwrap().call(1).as_ref().err().is_some_and(refused);
            }
            let count = if fine { &REFUSED } else { &WRONG };
            count.fetch_add(1, SeqCst);
        }
        let d = domain();
        let p = d
            .function_pointer("good", &d.signature("good").unwrap())
            .unwrap();
        POINTER
            .set(unsafe { std::mem::transmute::<*const (), extern "C" fn(i32) -> i32>(p) })
            .unwrap();
        FUNC.set(d.func("serve").unwrap()).unwrap();
        // A domain that no thread has entered: entering it would need locks and memory.
        FIRST.set(domain().func("good").unwrap()).unwrap();
        install(
            libc::SIGUSR1,
            handler as *const () as usize,
            libc::SA_ONSTACK,
        );
        let image = d.image();
        let threads: Vec<_> = (0..3)
            .map(|i| {
                let (d, image) = (d.clone(), image.clone());
                let body = move || {
                    let own = |deadline| {
                        cold(&image)
                            .deadline(Some(deadline))
                            .service("s", |caller: &Caller<'_>, x: i32| {
                                let inner = caller.domain();
                                inner
                                    .func::<fn(i32) -> i32>("good")
                                    .unwrap()
                                    .call(x)
                                    .map_or(x + 1, |y| y)
                            })
                            .build()
                            .unwrap()
                    };
                    // From here on the thread has a signal stack.
                    good(&d).unwrap();
                    READY.fetch_add(1, SeqCst);
                    // The handler may come between a call's end and its caller, as with errno: then
                    // a failed call's reason is the handler's, or lost; but what succeeded, did.
                    while !STOP.load(SeqCst) {
                        for x in 0..200 {
                            assert_eq!(
                                d.func::<fn(i32) -> i32>("good").unwrap().call(x).unwrap(),
                                x + 1
                            );
                            assert_eq!(
                                d.func::<fn(i32) -> i32>("serve").unwrap().call(x).unwrap(),
                                2 * x
                            );
                        }
                        let e = own(Duration::from_secs(9));
                        assert_eq!(
                            e.func::<fn(i32) -> i32>("serve").unwrap().call(3).unwrap(),
                            4
                        );
                        assert!(e.func::<fn()>("trap").unwrap().call().is_err());
                        e.reset().unwrap();
                        assert!(e.func::<fn()>("recurse").unwrap().call().is_err());
                        e.close();
                        if i == 0 {
                            let e = own(Duration::from_millis(2));
                            assert!(e.func::<fn()>("spin").unwrap().call().is_err());
                        }
                        if i == 1 {
                            let d = d.clone();
                            let t = std::thread::spawn(move || good(&d).unwrap());
                            assert_eq!(t.join().unwrap(), 2);
                        }
                    }
                };
                std::thread::spawn(body)
            })
            .collect();
        use std::os::unix::thread::JoinHandleExt;
        let ids: Vec<_> = threads.iter().map(|t| t.as_pthread_t()).collect();
        while READY.load(SeqCst) < 3 {
            std::thread::yield_now();
        }
        while REFUSED.load(SeqCst) < 20_000 {
            for &id in &ids {
                unsafe { libc::pthread_kill(id, libc::SIGUSR1) };
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        STOP.store(true, SeqCst);
        for t in threads {
            t.join().unwrap();
        }
        assert_eq!(WRONG.load(SeqCst), 0);
    });
}

/// A thread with more stack than extensions may use: recursion ends where the limit says, and the
/// host keeps what it has.
#[test]
fn large_stacks_are_not_the_extensions() {
    succeeds_in_child("large_stacks_are_not_the_extensions", || {
        fn deep(n: u64) -> u64 {
            let block = std::hint::black_box([n; 512]);
            if n == 0 {
                block[3]
            } else {
                deep(n - 1) + block[9]
            }
        }
        let body = |d: &Domain, most: u64| {
            let recurse = d.func::<fn()>("recurse").unwrap();
            let e = recurse.call().unwrap_err();
            let fault = e.fault().unwrap();
            assert_eq!(fault.kind, FaultKind::ControlStackOverflow, "{e}");
            assert!(fault.depth <= most / 8, "{}", fault.depth);
            assert!(fault.depth >= most / 8 - 8192, "{}", fault.depth);
            d.reset().unwrap();
            // The host itself goes deeper.
            assert!(deep(5000) > 0);
            assert_eq!(good(d).unwrap(), 2);
            assert_eq!(
                d.func::<fn(i32) -> i32>("serve").unwrap().call(4).unwrap(),
                8
            );
            // Also from deep within.
            let e = d.func::<fn()>("trap").unwrap().call().unwrap_err();
            assert_eq!(e.fault().unwrap().kind, FaultKind::Trap);
            d.reset().unwrap();
        };
        let d = domain();
        let inner = d.clone();
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        thread
            .spawn(move || body(&inner, 8 << 20))
            .unwrap()
            .join()
            .unwrap();
        // The main thread's stack grows as far as its limit says, which a program started with
        // `ulimit -s unlimited` does not end.
        let me = std::env::current_exe().unwrap();
        let status = std::process::Command::new("sh")
            .args(["-c", "ulimit -s unlimited && exec \"$0\""])
            .arg(me)
            .env(UNLIMITED, "1")
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(ENDED));
    });
}

const UNLIMITED: &str = "POSTERN_TEST_UNLIMITED";
const ENDED: i32 = 77;

/// Runs before `main`, for the harness makes a thread for each test: in the process that the test
/// above starts, without a limit, this is the main thread.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn body() {
        if std::env::var_os(UNLIMITED).is_none() {
            return;
        }
        // SAFETY: the calls have no preconditions.
        assert_eq!(unsafe { libc::gettid() }, unsafe { libc::getpid() });
        let d = domain();
        for _ in 0..3 {
            let e = d.func::<fn()>("recurse").unwrap().call().unwrap_err();
            let fault = e.fault().unwrap();
            assert_eq!(fault.kind, FaultKind::ControlStackOverflow);
            assert!(fault.depth <= 1 << 20, "{}", fault.depth);
            d.reset().unwrap();
            assert_eq!(good(&d).unwrap(), 2);
        }
        std::process::exit(ENDED);
    }
    body
};
