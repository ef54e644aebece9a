//! How the kernel by itself tells a thread that something happened: a plain signal, and a timer
//! that sends it or is waited for.

use super::process::Child;
use postern::{Client, Config, Domain, EventError};
use std::ffi::c_void;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::time::{Duration, Instant};

/// Nanoseconds of the monotonic clock.
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Attaches the calling thread for a domain's events, whose handlers may call `service`, which
/// stores a time in atomics and no more.
pub fn attach(domain: &Domain, service: &str) -> Result<Client, EventError> {
    // SAFETY: the groups' services read the clock and write atomics; so they lock and allocate
    // nothing and do not end calls.
    unsafe { domain.client().allow(service) }.attach()
}

/// The signal of these baselines. Not the one of upcalls, nor those of the C library.
fn signal() -> i32 {
    libc::SIGRTMIN() + 2
}

/// A handler of [`signal`]; the one before comes back when this is dropped.
struct Handler(libc::sigaction);

impl Handler {
    fn install(handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void)) -> Handler {
        // SAFETY: plain data is zeroed; both handlers of this file do what a handler may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal(), &action, &mut old);
            Handler(old)
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: puts back what was there before.
        unsafe { libc::sigaction(signal(), &self.0, ptr::null_mut()) };
    }
}

/// The word that [`answer`] counts in.
static WORD: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

extern "C" fn answer(_signal: i32, _info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: a word that stays until the handler is uninstalled, or null.
    if let Some(word) = unsafe { WORD.load(Relaxed).as_ref() } {
        word.fetch_add(1, SeqCst);
    }
}

/// A handler that counts its signals in memory that is shared with children.
pub struct Answering {
    word: *mut AtomicU64,
    _handler: Handler,
}

impl Answering {
    /// Installs it. One at a time.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new() -> Result<Answering, String> {
        // SAFETY: a new page, zeros as an atomic word may be.
        let page = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            libc::mmap(ptr::null_mut(), 4096, access, flags, -1, 0)
        };
        if page == libc::MAP_FAILED {
            return Err(format!("mmap: {}", std::io::Error::last_os_error()));
        }
        WORD.store(page.cast(), SeqCst);
        Ok(Answering {
            word: page.cast(),
            _handler: Handler::install(answer),
        })
    }

    fn count(&self) -> u64 {
        // SAFETY: the page stays as long as self.
        unsafe { &*self.word }.load(SeqCst)
    }

    /// Sends the calling thread `count` signals, each of which is handled before the next.
    pub fn to_oneself(&self, count: u64) {
        for _ in 0..count {
            // SAFETY: the signal has a handler.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal()) };
        }
    }

    /// A child that waits for signals, on the processors of the calling thread.
    ///
    /// # Errors
    /// There can be no more processes.
    pub fn child(&self) -> Result<Child, String> {
        Child::new(|| {
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        })
    }

    /// Sends the child `count` signals, each of which is handled before the next.
    ///
    /// # Errors
    /// One was not within a second.
    pub fn to_child(&self, child: &Child, count: u64) -> Result<(), String> {
        for _ in 0..count {
            let before = self.count();
            let begun = Instant::now();
            child.signal(signal());
            while self.count() == before {
                // SAFETY: no memory is involved.
                unsafe { libc::sched_yield() };
                if begun.elapsed() > Duration::from_secs(1) {
                    return Err("a child does not answer a signal within a second".into());
                }
            }
        }
        Ok(())
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        WORD.store(ptr::null_mut(), SeqCst);
        // SAFETY: mapped by `new`; the children that share it have pages of their own.
        unsafe { libc::munmap(self.word.cast(), 4096) };
    }
}

/// What [`expired`] tells.
static TELL: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

extern "C" fn expired(_signal: i32, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let tell = TELL.load(Relaxed);
    if !tell.is_null() {
        // SAFETY: what `SignalTimer::new` stored. Of a timer's signal, the word behind the timer's
        // number is how often it ran out besides.
        unsafe {
            let overrun = info.cast::<i32>().add(5).read();
            std::mem::transmute::<*mut (), fn(u64)>(tell)(1 + u64::from(overrun.unsigned_abs()));
        }
    }
}

fn every(period: Duration) -> libc::itimerspec {
    let period = libc::timespec {
        tv_sec: 0,
        tv_nsec: i64::from(period.subsec_nanos()),
    };
    libc::itimerspec {
        it_interval: period,
        it_value: period,
    }
}

/// A timer that sends a signal to the thread that made it.
pub struct SignalTimer {
    timer: libc::timer_t,
    _handler: Handler,
}

impl SignalTimer {
    /// One that runs out every `period`, less than a second, and whose handler calls `tell` with
    /// how often it did since. `tell` does what a signal handler may. One at a time.
    ///
    /// # Errors
    /// There can be no more timers.
    pub fn new(period: Duration, tell: fn(u64)) -> Result<SignalTimer, String> {
        let failed = || format!("timer_create: {}", std::io::Error::last_os_error());
        TELL.store(tell as *mut (), SeqCst);
        let handler = Handler::install(expired);
        // SAFETY: plain data is zeroed; the calls read and write what they are given.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = ptr::null_mut();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) != 0 {
                return Err(failed());
            }
            let timer = SignalTimer {
                timer,
                _handler: handler,
            };
            match libc::timer_settime(timer.timer, 0, &every(period), ptr::null_mut()) {
                0 => Ok(timer),
                _ => Err(failed()),
            }
        }
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: our own timer, whose waiting signal goes with it.
        unsafe { libc::timer_delete(self.timer) };
        TELL.store(ptr::null_mut(), SeqCst);
    }
}

/// What threads and processes count in and wait for (`eventfd`).
///
/// # Errors
/// There are no more descriptors.
pub fn counter() -> Result<OwnedFd, String> {
    // SAFETY: the descriptor is new, so nobody else's.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC) {
            ..0 => Err(format!("eventfd: {}", std::io::Error::last_os_error())),
            number => Ok(OwnedFd::from_raw_fd(number)),
        }
    }
}

/// The calling thread takes no upcalls until this is dropped there.
pub struct NoUpcalls(());

impl NoUpcalls {
    /// Blocks their signal.
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> NoUpcalls {
        NoUpcalls::mask(libc::SIG_BLOCK);
        NoUpcalls(())
    }

    fn mask(how: i32) {
        // SAFETY: the set is filled before it is read; upcalls allow for a blocked signal.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, Config::default().upcall_signal);
            libc::pthread_sigmask(how, &set, ptr::null_mut());
        }
    }
}

impl Drop for NoUpcalls {
    fn drop(&mut self) {
        NoUpcalls::mask(libc::SIG_UNBLOCK);
    }
}

/// A timer that a thread waits for.
pub struct FileTimer(File);

impl FileTimer {
    /// One that runs out every `period`, less than a second.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn new(period: Duration) -> Result<FileTimer, String> {
        // SAFETY: the descriptor is new, so nobody else's.
        unsafe {
            let file = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC);
            if file < 0 {
                return Err(format!("timerfd: {}", std::io::Error::last_os_error()));
            }
            let file = File::from_raw_fd(file);
            libc::timerfd_settime(file.as_raw_fd(), 0, &every(period), ptr::null_mut());
            Ok(FileTimer(file))
        }
    }

    /// Waits until it has run out: how often it did since.
    pub fn wait(&mut self) -> u64 {
        let mut count = [0; 8];
        match self.0.read_exact(&mut count) {
            Ok(()) => u64::from_ne_bytes(count),
            Err(_) => 0,
        }
    }
}
