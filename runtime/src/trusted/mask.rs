//! Which signals the calling thread takes, and whether it handles one now on the stack for that.

use super::signal;

/// Whether the calling thread runs on its alternate signal stack.
pub(crate) fn on_signal_stack() -> bool {
    // SAFETY: querying fills the structure.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &mut now);
        now.ss_flags & libc::SS_ONSTACK != 0
    }
}

/// Blocks all signals in the calling thread.
pub(crate) fn block_all_signals() {
    // SAFETY: fills a set and installs it as the calling thread's mask.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// All signals but faults are blocked in the thread that made it, until it is dropped there.
pub(crate) struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    pub(crate) fn new() -> SignalsBlocked {
        // SAFETY: fills a set and installs it as the calling thread's mask; the call writes the former mask.
        unsafe {
            let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigfillset(&mut all);
            // A debugger's breakpoint, say, while SIGTRAP is blocked would make the kernel drop the handler.
            for fault in signal::FAULTS {
                libc::sigdelset(&mut all, fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            SignalsBlocked(old)
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: installs a mask that was in force before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
