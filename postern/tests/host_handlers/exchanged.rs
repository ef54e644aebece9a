//! Handlers that the host puts in the place of ours while it runs: noticed, mended, chained, and no
//! change of the host's lost.

use super::*;

fn signals() -> [i32; 6] {
    [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGTRAP,
        libc::SIGRTMAX() - 3,
    ]
}

/// Each of the six, exchanged in a forked child, and later in a process whose threads are known
/// already.
#[test]
fn exchanged_handlers_are_noticed_and_mended() {
    succeeds_in_child(
        "exchanged::exchanged_handlers_are_noticed_and_mended",
        || {
            let d = domain();
            good(&d).unwrap();
            let faults = |d: &Domain| {
                let e = d.func::<fn()>("trap").unwrap().call().unwrap_err();
                assert_eq!(e.fault().unwrap().kind, FaultKind::Trap);
                d.reset().unwrap();
            };
            for signal in signals() {
                for ours in [true, false] {
                    let handler = if ours {
                        count as *const () as usize
                    } else {
                        libc::SIG_DFL
                    };
                    let status = fork(|| {
                        install(signal, handler, libc::SA_ONSTACK);
                        assert!(
                            matches!(good(&d), Err(CallError::HandlerReplaced(s)) if s == signal)
                        );
                        assert!(
                            matches!(good(&d), Err(CallError::HandlerReplaced(s)) if s == signal)
                        );
                        postern::rearm().unwrap();
                        assert_eq!(good(&d).unwrap(), 2);
                        faults(&d);
                        true
                    });
                    assert_eq!(status, 0, "{signal}");
                }
            }
            // Later: while somebody is inside, a few ticks of the watchdog's are enough.
            for signal in signals() {
                let other = d.clone();
                let calls = d.counters().calls;
                let t =
                    std::thread::spawn(move || other.func::<fn()>("spin").unwrap().call().is_err());
                while d.counters().calls == calls {
                    std::thread::yield_now();
                }
                let before = action(signal);
                install(signal, count as *const () as usize, libc::SA_ONSTACK);
                while !matches!(good(&d), Err(CallError::HandlerReplaced(s)) if s == signal) {
                    std::thread::sleep(Duration::from_micros(300));
                }
                postern::rearm().unwrap();
                assert_eq!(action(signal).sa_sigaction, before.sa_sigaction);
                assert_eq!(good(&d).unwrap(), 2);
                d.interrupt();
                let _ = t.join();
                d.reset().unwrap();
                faults(&d);
                // Put back by the host itself: that is mended, too.
                install(signal, libc::SIG_DFL, 0);
                unsafe { libc::sigaction(signal, &before, std::ptr::null_mut()) };
                assert_eq!(good(&d).unwrap(), 2);
            }
        },
    );
}

/// A handler that took the place of ours and chains to it, with ours in front of it again: a fault
/// of the host's goes through each once.
#[test]
fn handlers_that_chain_to_each_other() {
    succeeds_in_child("exchanged::handlers_that_chain_to_each_other", || {
        type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
        static FORMER: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
        static SEEN: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
        extern "C" fn first(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
            SEEN[0].fetch_add(1, SeqCst);
            // Skips the ud2.
            unsafe {
                (*(context as *mut libc::ucontext_t)).uc_mcontext.gregs[libc::REG_RIP as usize] += 2
            };
        }
        fn on(n: usize, signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
            SEEN[n + 1].fetch_add(1, SeqCst);
            let former: Handler = unsafe { std::mem::transmute(FORMER[n].load(SeqCst)) };
            former(signal, info, context);
        }
        extern "C" fn second(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
            on(0, signal, info, context);
        }
        extern "C" fn third(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
            on(1, signal, info, context);
        }
        let flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        install(libc::SIGILL, first as *const () as usize, flags);
        let d = domain();
        good(&d).unwrap();
        let trap = d.func::<fn()>("trap").unwrap();
        for (n, handler) in [second as *const (), third as *const ()]
            .into_iter()
            .enumerate()
        {
            FORMER[n].store(action(libc::SIGILL).sa_sigaction as u64, SeqCst);
            install(libc::SIGILL, handler as usize, flags);
            postern::rearm().unwrap();
            for _ in 0..3 {
                unsafe { std::arch::asm!("ud2") };
                assert_eq!(
                    trap.call().unwrap_err().fault().unwrap().kind,
                    FaultKind::Trap
                );
                d.reset().unwrap();
            }
        }
        assert_eq!(SEEN.each_ref().map(|s| s.load(SeqCst)), [6, 6, 3]);
    });
}

/// One that comes back again and again, as those of libraries do that want to be the first: each
/// signal goes through it once.
#[test]
fn a_handler_that_comes_back_is_called_once() {
    succeeds_in_child(
        "exchanged::a_handler_that_comes_back_is_called_once",
        || {
            type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            static FORMER: AtomicU64 = AtomicU64::new(0);
            static SEEN: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
            extern "C" fn first(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
                SEEN[0].fetch_add(1, SeqCst);
                // Skips the ud2.
                unsafe {
                    (*(context as *mut libc::ucontext_t)).uc_mcontext.gregs
                        [libc::REG_RIP as usize] += 2
                };
            }
            extern "C" fn again(
                signal: i32,
                info: *mut libc::siginfo_t,
                context: *mut libc::c_void,
            ) {
                SEEN[1].fetch_add(1, SeqCst);
                let former: Handler = unsafe { std::mem::transmute(FORMER.load(SeqCst)) };
                former(signal, info, context);
            }
            let flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            install(libc::SIGILL, first as *const () as usize, flags);
            let d = domain();
            good(&d).unwrap();
            for _ in 0..300 {
                FORMER.store(action(libc::SIGILL).sa_sigaction as u64, SeqCst);
                install(libc::SIGILL, again as *const () as usize, flags);
                postern::rearm().unwrap();
            }
            unsafe { std::arch::asm!("ud2") };
            assert_eq!(SEEN.each_ref().map(|s| s.load(SeqCst)), [1, 1]);
        },
    );
}

/// The host exchanges a handler while another of its threads has all of them adopted: what it
/// wanted last is there.
#[test]
fn adoption_loses_no_change_of_the_hosts() {
    succeeds_in_child("exchanged::adoption_loses_no_change_of_the_hosts", || {
        extern "C" fn other(_: i32) {}
        adopt();
        good(&domain()).unwrap();
        static STOP: AtomicBool = AtomicBool::new(false);
        let adopter = std::thread::spawn(|| {
            while !STOP.load(SeqCst) {
                postern::rearm().unwrap();
            }
        });
        for round in 0..200_000 {
            let handler = [count as *const () as usize, other as *const () as usize][round % 2];
            install(libc::SIGHUP, handler, 0);
            // A moment later at most: an adoption that was under way has to be over.
            let mut looks = 0;
            while action(libc::SIGHUP).sa_sigaction != handler {
                looks += 1;
                assert!(looks < 100_000, "lost in round {round}");
                std::thread::yield_now();
            }
        }
        STOP.store(true, SeqCst);
        adopter.join().unwrap();
    });
}

/// The child has no thread that would go on with it.
#[test]
fn forks_while_another_thread_mends_handlers() {
    succeeds_in_child(
        "exchanged::forks_while_another_thread_mends_handlers",
        || {
            let d = domain();
            good(&d).unwrap();
            static STOP: AtomicBool = AtomicBool::new(false);
            let mender = std::thread::spawn(|| {
                while !STOP.load(SeqCst) {
                    postern::rearm().unwrap();
                }
            });
            for _ in 0..50 {
                let status = fork(|| {
                    install(libc::SIGILL, libc::SIG_DFL, 0);
                    postern::rearm().unwrap();
                    good(&d).unwrap() == 2
                });
                assert_eq!(status, 0);
            }
            STOP.store(true, SeqCst);
            mender.join().unwrap();
        },
    );
}
