//! How long an upcall may take, and which services it may call: what the service gate of upcalls
//! and the abort signal's handler read.
//!
//! An upcall may have interrupted its thread with any lock in its hands: the registry's, which the
//! watchdog needs to look, or the allocator's. So nobody else can be relied on to end one. A timer
//! of the thread's own does, which sends it the abort signal: once in the longest time of an
//! upcall, and only while there are upcalls. What it finds running at two ticks in a row is
//! overdue: after once to twice that time.

use crate::thread::Thread;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Least nanoseconds between two ticks. If the next one has come when the handler of the last is
/// done, the thread executes nothing in between; and where an upcall cannot be ended, in its first
/// and last instructions, that is for good.
const LEAST: u64 = 50_000;

/// Its address is what the signals of all clocks bring, and no others.
static TICK: AtomicU8 = AtomicU8::new(0);

/// Whether a signal is of a clock's timer: of the thread's, or of one that it had until just now.
pub(crate) fn is_tick(info: &libc::siginfo_t) -> bool {
    // SAFETY: signals with this code have a value.
    info.si_code == libc::SI_TIMER
        && unsafe { info.si_value() }.sival_ptr == (&raw const TICK).cast_mut().cast()
}

/// Of one thread, which alone uses it.
#[repr(C)]
pub(crate) struct Clock {
    /// One byte for each import of the domain: whether handlers may call it.
    pub(crate) allowed: *const u8,
    /// The kernel's number of the timer.
    timer: i32,
    /// The process that has it.
    process: i32,
    /// Longest time of an upcall in nanoseconds, and the timer's period.
    limit: u64,
    /// The timer runs.
    armed: AtomicBool,
    /// What [`Thread::upcalls`] was at the last tick.
    seen: AtomicU64,
    /// At the next tick events are rung for again, by `ring`.
    rings: AtomicBool,
    ring: fn(&Thread),
}

impl Clock {
    /// A timer for the calling thread that sends `signal`; `ring` rings for the events that wait.
    pub(crate) fn new(
        limit: u64,
        signal: libc::c_int,
        allowed: *const u8,
        ring: fn(&Thread),
    ) -> std::io::Result<Clock> {
        let mut timer = 0i32;
        // SAFETY: zeros are a valid sigevent; the kernel reads it, and writes the timer's number.
        let made = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_value.sival_ptr = (&raw const TICK).cast_mut().cast();
            event.sigev_notify_thread_id = libc::gettid();
            libc::syscall(
                libc::SYS_timer_create,
                libc::CLOCK_MONOTONIC,
                &raw mut event,
                &raw mut timer,
            )
        };
        if made != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Clock {
            allowed,
            timer,
            // SAFETY: getpid has no preconditions.
            process: unsafe { libc::getpid() },
            limit: limit.max(LEAST),
            armed: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            rings: AtomicBool::new(false),
            ring,
        })
    }

    /// Of a thread that is attached.
    pub(crate) fn of(thread: &Thread) -> Option<&Clock> {
        let clock = thread.upcall.load(Ordering::Relaxed).cast::<Clock>();
        // SAFETY: null, or what `upcall::Attached` stored: the address of a state that begins with
        // its clock, and stays until the thread itself has taken it away from there.
        unsafe { clock.as_ref() }
    }

    /// An upcall begins: somebody looks at its time.
    pub(crate) fn arm(&self) {
        if !self.armed.load(Ordering::Relaxed) {
            self.armed.store(true, Ordering::Relaxed);
            self.set(self.limit, self.limit);
        }
    }

    /// Has a tick come after so many nanoseconds, at which events are to be rung for.
    pub(crate) fn ring_after(&self, pause: u64) {
        self.rings.store(true, Ordering::Relaxed);
        self.armed.store(true, Ordering::Relaxed);
        self.set(pause.max(LEAST), self.limit);
    }

    /// At a tick: rings if it is that one.
    pub(crate) fn ring(&self, thread: &Thread) {
        if self.rings.swap(false, Ordering::Relaxed) {
            (self.ring)(thread);
        }
    }

    /// The longest time of an upcall in nanoseconds.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The timer has run out, while this many upcalls had begun or ended: whether the one that runs
    /// did so at the last tick.
    pub(crate) fn is_over(&self, upcalls: u64) -> bool {
        let runs = upcalls & 1 == 1;
        if !runs {
            self.set(0, 0);
            self.armed.store(false, Ordering::Relaxed);
        }
        self.seen.swap(upcalls, Ordering::Relaxed) == upcalls && runs
    }

    /// When the timer runs out first, and how often then, in nanoseconds; 0: it does not.
    fn set(&self, first: u64, period: u64) {
        const SECOND: u64 = 1_000_000_000;
        let time = |nanoseconds: u64| libc::timespec {
            tv_sec: (nanoseconds / SECOND) as libc::time_t,
            tv_nsec: (nanoseconds % SECOND) as libc::c_long,
        };
        let value = libc::itimerspec {
            it_interval: time(period),
            it_value: time(first),
        };
        // SAFETY: the kernel reads the structure.
        unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                self.timer,
                0,
                &raw const value,
                0usize,
            )
        };
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        // A forked child has none of its parent's timers.
        // SAFETY: getpid has no preconditions, and the timer is this one's.
        unsafe {
            if libc::getpid() == self.process {
                libc::syscall(libc::SYS_timer_delete, self.timer);
            }
        }
    }
}
