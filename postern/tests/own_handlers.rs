//! A host that owns the signal handlers and asks Postern first. A test binary of its own: the
//! configuration is the process's.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{Config, FaultKind, StartError};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

static OURS: AtomicU32 = AtomicU32::new(0);
static THEIRS: AtomicU32 = AtomicU32::new(0);

extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if unsafe { postern::handle_signal(signal, info, context) } {
        OURS.fetch_add(1, SeqCst);
    } else {
        THEIRS.fetch_add(1, SeqCst);
    }
}

#[test]
fn the_hosts_handlers_serve_postern() {
    let mut config = Config::default();
    config.install_handlers = false;
    config.abort_signal = libc::SIGRTMIN() + 5;
    postern::init(config.clone()).unwrap();
    postern::init(config.clone()).unwrap();
    config.tick = Duration::from_millis(3);
    assert!(matches!(
        postern::init(config.clone()),
        Err(StartError::Configured)
    ));
    for signal in [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGTRAP,
        libc::SIGRTMIN() + 5,
    ] {
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    let image = support::image(
        &[
            ("trap", "v()"),
            ("null", "v()"),
            ("spin", "v()"),
            ("recurse", "v()"),
            ("good", "i(i)"),
        ],
        "trap: ud2\nnull: movl %gs:8(,%eiz,1),%eax\nret\nspin: jmp spin\nrecurse: call recurse\nret\ngood: movl %edi,%eax\nret",
    );
    let d = support::cold(&image)
        .deadline(Some(Duration::from_millis(100)))
        .build()
        .unwrap();
    for _ in 0..3 {
        for (name, kind) in [
            ("trap", FaultKind::Trap),
            ("null", FaultKind::NullPointer),
            ("spin", FaultKind::Deadline),
            ("recurse", FaultKind::ControlStackOverflow),
        ] {
            let before = OURS.load(SeqCst);
            let e = d.func::<fn()>(name).unwrap().call().unwrap_err();
            assert_eq!(e.fault().unwrap().kind, kind, "{e}");
            assert!(OURS.load(SeqCst) > before);
            d.reset().unwrap();
            assert_eq!(
                d.func::<fn(i32) -> i32>("good").unwrap().call(5).unwrap(),
                5
            );
        }
    }
    // A signal that somebody sent is the host's.
    let before = THEIRS.load(SeqCst);
    unsafe { libc::raise(libc::SIGTRAP) };
    assert_eq!(THEIRS.load(SeqCst), before + 1);
}
