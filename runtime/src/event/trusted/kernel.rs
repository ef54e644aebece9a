//! System calls for events that have no safe face elsewhere.

use std::io::{Error, Result};
use std::os::fd::{FromRawFd, OwnedFd};

/// A descriptor that queues a signal, once the calling thread blocks it.
pub(crate) fn signal_descriptor(signal: i32) -> Result<OwnedFd> {
    // SAFETY: the set is filled before it is read; the descriptor is the kernel's answer, and
    // nobody else's.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        if libc::sigaddset(&mut set, signal) != 0 {
            return Err(Error::last_os_error());
        }
        let made = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        match made {
            ..0 => Err(Error::last_os_error()),
            number => Ok(OwnedFd::from_raw_fd(number)),
        }
    }
}

/// Whether the calling thread blocks a signal.
pub(crate) fn blocks(signal: i32) -> bool {
    // SAFETY: querying the mask fills the set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut set);
        libc::sigismember(&set, signal) == 1
    }
}

/// Makes the calling thread one that runs before all that have no or a lower such priority.
pub(crate) fn run_first(priority: i32) -> Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // Its children are ordinary threads.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads the structure; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// Gives the calling thread the highest real-time priority that it may have, if it may have one.
pub(crate) fn run_before_all() {
    // SAFETY: no memory is involved.
    let most = unsafe { libc::sched_get_priority_max(libc::SCHED_FIFO) };
    if run_first(most).is_ok() {
        return;
    }
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills the structure.
    unsafe { libc::getrlimit(libc::RLIMIT_RTPRIO, &mut limit) };
    // Refused as well where the limit is 0.
    let _ = run_first(limit.rlim_cur.min(most as u64) as i32);
}

/// The number of the processor that the calling thread is on.
pub(crate) fn processor() -> u64 {
    // SAFETY: no memory is involved.
    unsafe { libc::sched_getcpu() as u64 }
}

/// Whether this is a thread of the process now. Signal handlers may call it.
pub(crate) fn is_ours(thread: u32) -> bool {
    // SAFETY: signal 0 is none, and errno comes back as it was.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let found = libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) == 0;
        *errno = before;
        found
    }
}

/// Sends a signal to a thread of another process, as far as the kernel lets this one.
pub(crate) fn signal_thread(process: u32, thread: u32, signal: u32) -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) == 0 }
}
