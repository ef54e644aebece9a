//! Endless recursion and host tricks on every kind of stack a host may call from.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{CallError, Caller, Domain, FaultKind, Func, Limits};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};
use support::{code, cold, on_stack, succeeds_in_child};

type Entry = Func<fn(i32) -> i32>;

fn domain(
    depth: Option<u32>,
    service: impl Fn(&Caller<'_>, i32) -> i32 + Send + Sync + 'static,
) -> Domain {
    let image = code(
        &[("s", "i(i)")],
        &[
            ("recurse", "v()"),
            ("deep", "v(l)"),
            ("good", "i(i)"),
            ("serve", "i(i)"),
            ("spin", "v()"),
        ],
        "recurse: call recurse
            ret
         deep: leaq -4096(%r15),%r15
            movq %rdi,%gs:(%r15d)
            call deep
            ret
         good: leal 1(%rdi),%eax
            ret
         serve: call s
            ret
         spin: jmp spin",
    )
    .image();
    let mut limits = Limits::default();
    limits.call_depth = depth;
    limits.deadline = Some(std::time::Duration::from_millis(100));
    cold(&image)
        .limits(limits)
        .service("s", service)
        .build()
        .unwrap()
}

/// All the ends that a call can have, from the present stack.
fn every_end(d: &Domain) {
    let plain = |n: &str| d.func_unchecked::<fn(i64)>(n).unwrap();
    let good = d.func::<fn(i32) -> i32>("good").unwrap();
    let serve = d.func::<fn(i32) -> i32>("serve").unwrap();
    for _ in 0..2 {
        for (name, kind) in [
            ("recurse", FaultKind::ControlStackOverflow),
            ("deep", FaultKind::DataStackOverflow),
            ("spin", FaultKind::Deadline),
        ] {
            let e = plain(name).call(0).unwrap_err();
            assert_eq!(e.fault().unwrap().kind, kind, "{name}: {e}");
            d.reset().unwrap();
            assert_eq!(good.call(1).unwrap(), 2);
            assert_eq!(serve.call(20).unwrap(), 40);
        }
    }
}

#[test]
fn spawned_threads() {
    for depth in [None, Some(5000)] {
        let d = domain(depth, |_, x| x * 2);
        every_end(&d);
        for size in [64 << 10, 1 << 20, 8 << 20] {
            let d = d.clone();
            let thread = std::thread::Builder::new().stack_size(size);
            thread
                .spawn(move || {
                    // A service needs 64 KiB, which the smallest has not got without a deeper look.
                    if size > 256 << 10 {
                        every_end(&d);
                    } else {
                        let e = d.func::<fn()>("recurse").unwrap().call().unwrap_err();
                        assert!(e.fault().is_some(), "{e}");
                        d.reset().unwrap();
                    }
                })
                .unwrap()
                .join()
                .unwrap();
        }
    }
}

#[test]
fn the_main_thread() {
    // The test harness has no access to the main thread, a forked child of a single-threaded one is
    // it.
    succeeds_in_child("the_main_thread", || {
        let d = domain(None, |_, x| x * 2);
        assert_eq!(
            support::fork(|| {
                every_end(&d);
                true
            }),
            0
        );
    });
}

#[test]
fn coroutine_stacks() {
    let d = domain(None, |_, x| x * 2);
    for depth in [None, Some(700)] {
        let limited = domain(depth, |_, x| x * 2);
        for size in [64 << 10, 256 << 10] {
            // Canaries around: an unguarded stack must not be run over.
            let mut memory = vec![0xa5u8; size + (256 << 10)];
            let (below, stack) = memory.split_at_mut(256 << 10);
            on_stack(stack, || every_end(&limited));
            assert!(below.iter().all(|&b| b == 0xa5), "{size} {depth:?}");
        }
    }
    every_end(&d);
}

/// Coroutine to extension to service to extension, on one and on two foreign stacks.
#[test]
fn nested_calls_on_coroutine_stacks() {
    static INNER: OnceLock<Entry> = OnceLock::new();
    let inner = domain(None, |_, x| x * 2);
    assert!(INNER.set(inner.func("serve").unwrap()).is_ok());
    let d = domain(None, |_, x| {
        let mut second = vec![0u8; 128 << 10];
        let a = INNER.get().unwrap().call(x).unwrap();
        let b = on_stack(&mut second, || INNER.get().unwrap().call(x).unwrap());
        assert_eq!(a, b);
        a + 1
    });
    let serve = d.func::<fn(i32) -> i32>("serve").unwrap();
    let mut stack = vec![0u8; 256 << 10];
    for _ in 0..20 {
        assert_eq!(serve.call(5).unwrap(), 11);
        assert_eq!(on_stack(&mut stack, || serve.call(6).unwrap()), 13);
    }
    // A fault of the inner one on a stack of its own leaves the outer one whole.
    let bad = domain(None, |_, x| {
        let mut second = vec![0u8; 128 << 10];
        let e = on_stack(&mut second, || {
            INNER
                .get()
                .unwrap()
                .domain()
                .func::<fn()>("recurse")
                .unwrap()
                .call()
        });
        assert_eq!(
            e.unwrap_err().fault().unwrap().kind,
            FaultKind::ControlStackOverflow
        );
        INNER.get().unwrap().domain().reset().unwrap();
        x + 1
    });
    let serve = bad.func::<fn(i32) -> i32>("serve").unwrap();
    assert_eq!(on_stack(&mut stack, || serve.call(6).unwrap()), 7);
    assert_eq!(serve.call(7).unwrap(), 8);
}

/// On the alternate signal stack a fault would overwrite the handler's own frames, so calls are
/// refused there.
#[test]
fn alternate_signal_stacks() {
    succeeds_in_child("alternate_signal_stacks", || {
        static ENTRY: Mutex<Option<Entry>> = Mutex::new(None);
        static RESULT: Mutex<Option<Result<i32, CallError>>> = Mutex::new(None);
        extern "C" fn handler(_: i32) {
            let entry = ENTRY.lock().unwrap().clone().unwrap();
            *RESULT.lock().unwrap() = Some(entry.call(1));
        }
        let d = domain(None, |_, x| x);
        let f = d.func::<fn(i32) -> i32>("good").unwrap();
        f.call(1).unwrap();
        *ENTRY.lock().unwrap() = Some(f.clone());
        let raise = || unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
            libc::raise(libc::SIGUSR1);
            RESULT.lock().unwrap().take().unwrap()
        };
        assert!(matches!(raise(), Err(CallError::OnSignalStack)));
        assert_eq!(f.call(1).unwrap(), 2);
    });
}

/// A signal handler must not call an extension, whatever it interrupted.
#[test]
fn calls_from_handlers_over_extensions_are_refused() {
    succeeds_in_child("calls_from_handlers_over_extensions_are_refused", || {
        static ENTRY: OnceLock<extern "C" fn(i32) -> i32> = OnceLock::new();
        static REFUSED: AtomicU32 = AtomicU32::new(0);
        static OTHER: AtomicU32 = AtomicU32::new(0);
        static DONE: AtomicBool = AtomicBool::new(false);
        static SPINNING: AtomicBool = AtomicBool::new(false);
        extern "C" fn handler(_: i32) {
            if SPINNING.load(SeqCst) && postern::nesting() == 0 {
                // Between the call's end and its caller, a handler's own calls would replace what
                // the end left, as with errno.
                return;
            }
            let result = ENTRY.get().unwrap()(1);
            match postern::last_error() {
                Some(CallError::InsideExtension) if result == 0 => REFUSED.fetch_add(1, SeqCst),
                // Between the calls.
                Some(CallError::OnSignalStack) if result == 0 => 0,
                _ => OTHER.fetch_add(1, SeqCst),
            };
            postern::clear_last_error();
        }
        let d = domain(None, |_, x| x);
        let p = d
            .function_pointer("good", &"i(i)".parse().unwrap())
            .unwrap();
        ENTRY
            .set(unsafe { std::mem::transmute::<*const (), extern "C" fn(i32) -> i32>(p) })
            .unwrap();
        ENTRY.get().unwrap()(1);
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
        }
        let me = unsafe { libc::pthread_self() } as usize;
        let storm = std::thread::spawn(move || {
            while !DONE.load(SeqCst) {
                unsafe { libc::pthread_kill(me as libc::pthread_t, libc::SIGUSR1) };
                std::thread::yield_now();
            }
        });
        let spin = d.func::<fn()>("spin").unwrap();
        let good = d.func::<fn(i32) -> i32>("good").unwrap();
        SPINNING.store(true, SeqCst);
        let e = spin.call().unwrap_err();
        SPINNING.store(false, SeqCst);
        assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline);
        assert!(REFUSED.load(SeqCst) > 0);
        assert_eq!(OTHER.load(SeqCst), 0);
        d.reset().unwrap();
        // Between and at the edges of short calls.
        for i in 0..300_000 {
            assert_eq!(good.call(i).unwrap(), i + 1);
        }
        DONE.store(true, SeqCst);
        storm.join().unwrap();
        assert_eq!(OTHER.load(SeqCst), 0);
    });
}

/// The host leaves a service by longjmp, past the extension: the next entry forgets the calls that
/// were left behind.
#[test]
fn longjmp_past_an_entry() {
    #[repr(C, align(16))]
    struct Buffer([u64; 32]);
    unsafe extern "C" {
        fn _setjmp(buffer: *mut Buffer) -> i32;
        fn longjmp(buffer: *mut Buffer, value: i32) -> !;
    }
    struct Shared(std::cell::UnsafeCell<Buffer>);
    unsafe impl Sync for Shared {}
    static BUFFER: Shared = Shared(std::cell::UnsafeCell::new(Buffer([0; 32])));
    extern "C" fn leave(x: i32) -> i32 {
        if x < 0 {
            unsafe { longjmp(BUFFER.0.get(), 1) };
        }
        x
    }
    /// Calls `f` so that a longjmp in its service comes back here: setjmp is called by hand,
    /// because Rust cannot mark a function that returns twice.
    fn guarded(entry: extern "C" fn(i32) -> i32, x: i32) -> Option<i32> {
        let (jumped, result): (i32, i32);
        unsafe {
            std::arch::asm!(
                "push r13", "push r12", "sub rsp, 16",
                "mov r12, r8", "mov r13d, r9d",
                "mov rdi, r10", "call {setjmp}",
                "xor ecx, ecx", "test eax, eax", "jnz 2f",
                "mov edi, r13d", "call r12", "mov ecx, eax", "xor eax, eax",
                "2:", "add rsp, 16", "pop r12", "pop r13",
                in("r8") entry, in("r9") x, in("r10") BUFFER.0.get(), setjmp = sym _setjmp,
                out("rax") jumped, out("rcx") result, clobber_abi("C"));
        }
        (jumped == 0).then_some(result)
    }
    let image = code(
        &[("s", "i(i)")],
        &[("serve", "i(i)")],
        "serve: PUSH %rdi\ncall s\nPOP %rdi\nret",
    )
    .image();
    for depth in [None, Some(20)] {
        let mut limits = Limits::default();
        limits.call_depth = depth;
        let d = unsafe {
            cold(&image).limits(limits).service_c(
                "s",
                leave as *const (),
                "i(i)".parse().unwrap(),
                65536,
            )
        }
        .build()
        .unwrap();
        let p = d
            .function_pointer("serve", &"i(i)".parse().unwrap())
            .unwrap();
        let entry: extern "C" fn(i32) -> i32 = unsafe { std::mem::transmute(p) };
        for i in 1..300 {
            assert_eq!(guarded(entry, i), Some(i));
            assert_eq!(guarded(entry, -i), None);
            if i % 7 == 0 {
                assert_eq!(guarded(entry, -i), None);
                // The next entry finds out that the calls were left.
                assert_eq!(guarded(entry, i), Some(i));
                d.reset().unwrap();
            }
        }
        assert_eq!(guarded(entry, -1), None);
        d.close();
        assert_eq!(entry(1), 0);
    }
}
