//! A host's function between two instructions of an extension, and calls that signal handlers end.
//! Each test in a process of its own: there is one safe point.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{Caller, Config, Domain, FaultKind, Image, Proceed};
use std::arch::asm;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use support::{compile, succeeds_in_child};

/// Integers, vectors, the x87, copies, calls of a service and of functions by pointers, recursion:
/// a sum of all of it.
const WORK: &str = r#"
#include <string.h>
int twice(int);
POSTERN_IMPORT int twice(int);
static unsigned char a[5000], b[5000];
static double d[64];
static long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
static int less(const void *x, const void *y) { return *(const int *)x - *(const int *)y; }
static int swap(int n, int (*order)(const void *, const void *)) {
	int pair[2] = { n, n ^ 5 };
	return order(pair, pair + 1) < 0 ? pair[0] : pair[1];
}
POSTERN_EXPORT unsigned long work(unsigned rounds) {
	unsigned long hash = 14695981039346656037ul;
	long double x = 1;
	for (int i = 0; i < 64; i++)
		d[i] = i;
	for (unsigned r = 0; r < rounds; r++) {
		for (int i = 0; i < 5000; i++)
			a[i] = (unsigned char)(i * 7 + r);
		memcpy(b, a, sizeof b);
		memmove(b + 3, b, sizeof b - 3);
		for (int i = 0; i < 5000; i++)
			hash = (hash ^ b[i]) * 1099511628211ul;
		for (int i = 0; i < 64; i++)
			d[i] = d[i] * 1.0000001 + 1.0 / (i + 1);
		x = x * 1.0000000001L + 1.0L / (r + 1);
		hash += (unsigned long)f(12) + (unsigned)twice((int)r) + (unsigned)swap((int)r, less);
	}
	for (int i = 0; i < 64; i++) {
		unsigned long bits;
		memcpy(&bits, &d[i], 8);
		hash = (hash ^ bits) * 1099511628211ul;
	}
	unsigned long high;
	memcpy(&high, &x, 8);
	return hash ^ high;
}
POSTERN_EXPORT void spin(void) { for (;;) ; }
POSTERN_EXPORT int fine(void) { return 7; }
POSTERN_EXPORT int serve(int n) { return twice(n); }
"#;

fn image() -> Image {
    let source = format!("#include <postern/extension.h>\n{WORK}");
    compile("work.c", &source, &["-O2", "-mavx2"])
}

fn domain() -> Domain {
    Domain::builder(&image())
        .deadline(None)
        .service("twice", |_: &Caller<'_>, n: i32| n.wrapping_mul(2))
        .build()
        .unwrap()
}

static FLAG: AtomicI32 = AtomicI32::new(0);
static RUNS: AtomicU64 = AtomicU64::new(0);

fn often() {
    let mut config = Config::default();
    config.tick = Duration::from_micros(20);
    postern::init(config).unwrap();
}

/// Leaves nothing of the registers as it was that a function may change.
fn clobber() {
    unsafe {
        asm!(
            "vpcmpeqb ymm0, ymm0, ymm0",
            "vmovdqa ymm1, ymm0",
            "vmovdqa ymm7, ymm0",
            "vmovdqa ymm15, ymm0",
            "fninit",
            "fldpi",
            "fldpi",
            "fninit",
            out("xmm0") _,
            out("xmm1") _,
            out("xmm7") _,
            out("xmm15") _,
        );
        *libc::__errno_location() = 4711;
    }
}

#[test]
fn the_interrupted_call_goes_on_as_it_was() {
    succeeds_in_child("the_interrupted_call_goes_on_as_it_was", || {
        often();
        let (domain, other) = (domain(), domain());
        let work = domain.func::<fn(u32) -> u64>("work").unwrap();
        let fine = other.func::<fn() -> i32>("fine").unwrap();
        let rounds = 3000;
        let wanted = work.call(rounds).unwrap();
        assert_eq!(RUNS.load(SeqCst), 0);
        postern::set_safe_point(&FLAG, move || {
            RUNS.fetch_add(1, SeqCst);
            // What services do.
            let words: Vec<u64> = (0..100).collect();
            assert_eq!(words.iter().sum::<u64>(), 4950);
            assert_eq!(fine.call().unwrap(), 7);
            clobber();
            Proceed::GoOn
        });
        FLAG.store(1, SeqCst);
        // Until it has been interrupted often, however seldom a busy machine lets the watchdog run.
        let mut calls = 0;
        while RUNS.load(SeqCst) < 500 || calls < 3 {
            unsafe { *libc::__errno_location() = 11 };
            assert_eq!(work.call(rounds).unwrap(), wanted);
            assert_eq!(unsafe { *libc::__errno_location() }, 11);
            calls += 1;
        }
        FLAG.store(0, SeqCst);
        let runs = RUNS.load(SeqCst);
        assert_eq!(work.call(rounds).unwrap(), wanted);
        assert_eq!(RUNS.load(SeqCst), runs);
    });
}

#[test]
fn it_ends_a_call_and_says_where() {
    succeeds_in_child("it_ends_a_call_and_says_where", || {
        let domain = domain();
        postern::set_safe_point(&FLAG, || match RUNS.fetch_add(1, SeqCst) {
            0..3 => Proceed::GoOn,
            _ => Proceed::End,
        });
        FLAG.store(1, SeqCst);
        let spin = domain.func::<fn()>("spin").unwrap();
        for _ in 0..3 {
            RUNS.store(0, SeqCst);
            let ended = spin.call().unwrap_err();
            let fault = ended.fault().unwrap();
            assert_eq!(fault.kind, FaultKind::Interrupted);
            assert!(fault.to_string().contains("work.c:"), "{fault}");
            assert_eq!(RUNS.load(SeqCst), 4);
            domain.reset().unwrap();
        }
        FLAG.store(0, SeqCst);
        assert_eq!(
            domain.func::<fn() -> i32>("fine").unwrap().call().unwrap(),
            7
        );
    });
}

#[test]
fn deadlines_and_interrupts_come_through() {
    succeeds_in_child("deadlines_and_interrupts_come_through", || {
        let limit = Some(Duration::from_millis(30));
        let image = image();
        let builder = Domain::builder(&image).deadline(limit);
        let domain = builder
            .service("twice", |_: &Caller<'_>, n: i32| n)
            .build()
            .unwrap();
        let inner = domain.clone();
        postern::set_safe_point(&FLAG, move || {
            if RUNS.fetch_add(1, SeqCst) == 5 {
                inner.interrupt();
            }
            Proceed::GoOn
        });
        FLAG.store(1, SeqCst);
        let spin = domain.func::<fn()>("spin").unwrap();
        let ended = spin.call().unwrap_err();
        let kind = ended.fault().unwrap().kind;
        assert!(matches!(kind, FaultKind::Interrupted | FaultKind::Deadline));
        domain.reset().unwrap();
        RUNS.store(6, SeqCst);
        let ended = spin.call().unwrap_err();
        assert_eq!(ended.fault().unwrap().kind, FaultKind::Deadline);
    });
}

#[test]
fn a_panic_goes_on_in_who_made_the_call() {
    succeeds_in_child("a_panic_goes_on_in_who_made_the_call", || {
        let domain = domain();
        postern::set_safe_point(&FLAG, || panic!("at the safe point"));
        FLAG.store(1, SeqCst);
        let spin = domain.func::<fn()>("spin").unwrap();
        let call = std::panic::AssertUnwindSafe(|| spin.call());
        let panic = std::panic::catch_unwind(call).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"at the safe point"));
    });
}

/// The function changes what is the host's and the extension's alike: rounding stays as it left it.
#[test]
fn what_it_leaves_of_rounding_is_the_hosts() {
    succeeds_in_child("what_it_leaves_of_rounding_is_the_hosts", || {
        let domain = domain();
        let mxcsr = || {
            let mut word = 0u32;
            unsafe { asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack)) };
            word
        };
        let before = mxcsr();
        static SEEN: AtomicU64 = AtomicU64::new(0);
        postern::set_safe_point(&FLAG, move || {
            SEEN.store(mxcsr().into(), SeqCst);
            let upwards = before & !0x603f | 0x4000;
            unsafe { asm!("ldmxcsr [{}]", in(reg) &upwards, options(nostack)) };
            match RUNS.fetch_add(1, SeqCst) {
                0 => Proceed::GoOn,
                _ => Proceed::End,
            }
        });
        FLAG.store(1, SeqCst);
        domain.func::<fn()>("spin").unwrap().call().unwrap_err();
        let after = mxcsr();
        unsafe { asm!("ldmxcsr [{}]", in(reg) &before, options(nostack)) };
        assert_eq!(
            after & !0x3f,
            before & !0x603f | 0x4000,
            "{before:x} {after:x}"
        );
        assert_eq!(SEEN.load(SeqCst) & !0x3f, u64::from(after & !0x3f));
    });
}

/// Many threads, of which each is in some domain, and a flag that comes and goes.
#[test]
fn threads_have_it_each_for_itself() {
    succeeds_in_child("threads_have_it_each_for_itself", || {
        often();
        let wanted = domain()
            .func::<fn(u32) -> u64>("work")
            .unwrap()
            .call(50)
            .unwrap();
        let seen = Arc::new(Mutex::new(std::collections::HashSet::new()));
        let noted = seen.clone();
        postern::set_safe_point(&FLAG, move || {
            noted.lock().unwrap().insert(std::thread::current().id());
            RUNS.fetch_add(1, SeqCst);
            Proceed::GoOn
        });
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let domain = domain();
                    let work = domain.func::<fn(u32) -> u64>("work").unwrap();
                    while !over.load(SeqCst) {
                        assert_eq!(work.call(50).unwrap(), wanted);
                    }
                });
            }
            while RUNS.load(SeqCst) < 400 || seen.lock().unwrap().len() < 4 {
                FLAG.store(1, SeqCst);
                std::thread::sleep(Duration::from_micros(300));
                FLAG.store(0, SeqCst);
                std::thread::sleep(Duration::from_micros(100));
            }
            over.store(true, SeqCst);
        });
    });
}

static MINE: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_alarm(_: libc::c_int) {
    MINE.fetch_add(1 + 1000 * u64::from(postern::interrupt_mine()), SeqCst);
}

#[test]
fn a_handler_ends_the_call_that_it_interrupts() {
    succeeds_in_child("a_handler_ends_the_call_that_it_interrupts", || {
        let me = unsafe { libc::pthread_self() };
        let alarm = move |milliseconds: u64| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(milliseconds));
                unsafe { libc::pthread_kill(me, libc::SIGALRM) };
            });
        };
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_alarm as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
        }
        static WAITING: OnceLock<()> = OnceLock::new();
        let image = image();
        let builder = Domain::builder(&image).service("twice", move |_: &Caller<'_>, n: i32| {
            alarm(5);
            while MINE.load(SeqCst) == 0 {
                std::hint::spin_loop();
            }
            WAITING.set(()).unwrap();
            n
        });
        let domain = builder.build().unwrap();
        // In no call.
        alarm(1);
        while MINE.load(SeqCst) == 0 {
            std::hint::spin_loop();
        }
        assert_eq!(MINE.swap(0, SeqCst), 1);
        // In text.
        let spin = domain.func::<fn()>("spin").unwrap();
        for _ in 0..5 {
            alarm(5);
            let ended = spin.call().unwrap_err();
            assert_eq!(ended.fault().unwrap().kind, FaultKind::Interrupted);
            domain.reset().unwrap();
            MINE.store(0, SeqCst);
        }
        // In a service: when that has returned.
        let serve = domain.func::<fn(i32) -> i32>("serve").unwrap();
        let ended = serve.call(1).unwrap_err();
        assert_eq!(ended.fault().unwrap().kind, FaultKind::Interrupted);
        assert!(WAITING.get().is_some());
        assert_eq!(MINE.load(SeqCst), 1001);
    });
}
