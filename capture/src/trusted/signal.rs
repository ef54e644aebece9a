//! The wish to end, from the terminal or a service manager.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::SeqCst);
}

/// A flag that SIGINT and SIGTERM set from now on. They end waiting calls, and come but once: the next one ends the process.
pub fn stop_on_interrupt() -> &'static AtomicBool {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: all zeros is a value of the structure. The handler does what a handler may, one store; it runs on the alternate
        // stack, so the thread may be inside an extension.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = stop as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    &STOP
}
