//! Extensions called where a thread or the process ends: destructors of thread-local values and of
//! thread-specific data in each of libc's rounds, `atexit`.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{CallError, Caller, Domain};
use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use support::{code, cold, succeeds_in_child};

static DOMAIN: OnceLock<Domain> = OnceLock::new();
static POINTER: OnceLock<extern "C" fn(i32) -> i32> = OnceLock::new();
static SERVED: AtomicU32 = AtomicU32::new(0);

fn start() {
    let image = code(
        &[("s", "i(i)")],
        &[
            ("serve", "i(i)"),
            ("good", "i(i)"),
            ("trap", "i(i)"),
            ("spin", "v()"),
        ],
        "serve: call s\nret\ngood: leal 1(%rdi),%eax\nret\ntrap: ud2\nspin: jmp spin",
    )
    .image();
    let d = cold(&image)
        .deadline(None)
        .service("s", |caller: &Caller<'_>, x: i32| {
            SERVED.fetch_add(1, SeqCst);
            // Nested, too.
            let domain = caller.domain();
            domain
                .func::<fn(i32) -> i32>("good")
                .unwrap()
                .call(x)
                .unwrap()
        })
        .build()
        .unwrap();
    let p = d
        .function_pointer("good", &d.signature("good").unwrap())
        .unwrap();
    let p = unsafe { std::mem::transmute::<*const (), extern "C" fn(i32) -> i32>(p) };
    assert!(POINTER.set(p).is_ok() && DOMAIN.set(d).is_ok());
}

/// Every kind of call, with the errors that they leave.
fn call() {
    let d = DOMAIN.get().unwrap();
    let func = |name: &str| d.func::<fn(i32) -> i32>(name).unwrap();
    assert_eq!(func("good").call(4).unwrap(), 5);
    assert_eq!(func("serve").call(4).unwrap(), 5);
    assert_eq!(POINTER.get().unwrap()(6), 7);
    let own = support::domain(&[("trap", "v()")], "trap: ud2");
    for _ in 0..2 {
        let trap = own.func::<fn()>("trap").unwrap();
        assert!(trap.call().unwrap_err().fault().is_some());
        assert!(matches!(trap.call(), Err(CallError::Poisoned)));
        own.reset().unwrap();
    }
    // As C sees them.
    let p = own
        .function_pointer("trap", &own.signature("trap").unwrap())
        .unwrap();
    let p = unsafe { std::mem::transmute::<*const (), extern "C" fn()>(p) };
    p();
    assert!(matches!(postern::last_error(), Some(CallError::Fault(_))));
    p();
    assert!(matches!(postern::last_error(), Some(CallError::Poisoned)));
}

/// Other threads are looked at: whoever is in the registry must be alive.
fn look_at_all() {
    let d = DOMAIN.get().unwrap();
    let spin = d.func::<fn()>("spin").unwrap();
    let calls = d.counters().calls;
    let t = std::thread::spawn(move || spin.call().unwrap_err());
    while d.counters().calls == calls {
        std::thread::yield_now();
    }
    d.interrupt();
    assert!(t.join().unwrap().fault().is_some());
    for _ in 0..20 {
        d.reset().unwrap();
    }
}

/// A key whose destructor calls in the rounds of `mask`, and sets its value for the next one.
fn key(mask: usize) -> libc::pthread_key_t {
    static ROUNDS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn end(value: *mut libc::c_void) {
        let value = value as usize;
        let (round, mask, key) = (value & 0xff, value >> 8 & 0xff, value >> 16);
        ROUNDS.fetch_add(1, SeqCst);
        if mask & 1 << round != 0 {
            call();
        }
        let next = key << 16 | mask << 8 | (round + 1);
        unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, next as *const _) };
    }
    let mut key = 0;
    assert_eq!(unsafe { libc::pthread_key_create(&mut key, Some(end)) }, 0);
    let _ = mask;
    key
}

#[test]
fn destructors_of_thread_specific_data_in_every_round() {
    succeeds_in_child("destructors_of_thread_specific_data_in_every_round", || {
        // One key before and one after Postern's own, as their destructors run in the order of the
        // keys.
        let before = key(0);
        start();
        let after = key(0);
        for key in [before, after] {
            for mask in 0..16usize {
                for first in [false, true] {
                    std::thread::spawn(move || {
                        if first {
                            call();
                        }
                        let value = (key as usize) << 16 | mask << 8;
                        unsafe { libc::pthread_setspecific(key, value as *const _) };
                    })
                    .join()
                    .unwrap();
                    // Its stack is another thread's by now, or gone.
                    if mask % 5 == 3 {
                        look_at_all();
                    }
                }
            }
        }
        look_at_all();
        call();
        assert!(SERVED.load(SeqCst) > 64);
    });
}

#[test]
fn destructors_of_thread_local_values() {
    struct Last(u32);
    impl Drop for Last {
        fn drop(&mut self) {
            call();
            if self.0 > 0 {
                // Another one, whose destructor runs after this.
                SECOND.with(|s| *s.borrow_mut() = Some(Last(self.0 - 1)));
            }
        }
    }
    thread_local! {
        static FIRST: RefCell<Option<Last>> = const { RefCell::new(None) };
        static SECOND: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    succeeds_in_child("destructors_of_thread_local_values", || {
        start();
        for early in [false, true] {
            std::thread::spawn(move || {
                if early {
                    call();
                }
                FIRST.set(Some(Last(1)));
                if !early {
                    call();
                }
            })
            .join()
            .unwrap();
            look_at_all();
        }
    });
}

#[test]
fn functions_at_exit() {
    succeeds_in_child("functions_at_exit", || {
        start();
        extern "C" fn last() {
            call();
            look_at_all();
        }
        call();
        assert_eq!(unsafe { libc::atexit(last) }, 0);
    });
}
