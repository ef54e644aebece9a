//! The wish to end, from the terminal or a service manager.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::SeqCst);
}

extern "C" fn tell(_: libc::c_int) {
    TELL.store(true, Ordering::SeqCst);
}

extern "C" fn write_out(_: libc::c_int) {
    WRITE_OUT.store(true, Ordering::SeqCst);
}

static TELL: AtomicBool = AtomicBool::new(false);
static WRITE_OUT: AtomicBool = AtomicBool::new(false);

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) {
    // SAFETY: all zeros is a value of the structure. The handlers do what a handler may, one store;
    // they run on the alternate stack, so the thread may be inside an extension.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_ONSTACK | flags;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: as of `handle`; nothing is changed, and the kernel writes what there is.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// A flag that SIGINT, SIGTERM, and SIGHUP where it is not ignored, set from now on. They end
/// waiting calls, and come but once: the next one ends the process.
pub fn stop_on_interrupt() -> &'static AtomicBool {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if signal != libc::SIGHUP || !is_ignored(signal) {
            handle(signal, stop, libc::SA_RESETHAND);
        }
    }
    &STOP
}

/// Flags that SIGUSR1 and SIGUSR2 set from now on: to tell what was counted, and to write out what
/// waits.
pub fn requests() -> (&'static AtomicBool, &'static AtomicBool) {
    handle(libc::SIGUSR1, tell, libc::SA_RESTART);
    handle(libc::SIGUSR2, write_out, libc::SA_RESTART);
    (&TELL, &WRITE_OUT)
}
