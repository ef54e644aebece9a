//! The only place for `unsafe`: scheduling, clocks of processes, timers and limits, which the
//! standard library has not, and the promise that the manager's services are fit for upcalls.

use postern::{ClientBuilder, Upcall};
use serde::{Deserialize, Serialize};
use std::io::{Error, Result};
use std::mem::MaybeUninit;

/// How a process or thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheduling {
    /// By shares, with a nice value.
    Other(i32),
    /// By priority, until it waits.
    Fifo(u32),
    /// By priority, in turns of 100 ms among equals.
    RoundRobin(u32),
}

impl std::fmt::Display for Scheduling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scheduling::Other(nice) => write!(f, "SCHED_OTHER, nice {nice}"),
            Scheduling::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Scheduling::RoundRobin(priority) => write!(f, "SCHED_RR {priority}"),
        }
    }
}

/// `struct sched_attr`, as the kernel has had it since 3.14.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn checked(result: i64) -> Result<i64> {
    match result {
        -1 => Err(Error::last_os_error()),
        result => Ok(result),
    }
}

/// Schedules a thread so; 0 is the calling one. One system call.
pub fn schedule(thread: i32, scheduling: Scheduling) -> Result<()> {
    let (policy, nice, priority) = match scheduling {
        Scheduling::Other(nice) => (libc::SCHED_OTHER, nice, 0),
        Scheduling::Fifo(priority) => (libc::SCHED_FIFO, 0, priority),
        Scheduling::RoundRobin(priority) => (libc::SCHED_RR, 0, priority),
    };
    let mut attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: policy as u32,
        flags: 0,
        nice,
        priority,
        runtime: 0,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes, which are there, and may write only `size`.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw mut attributes, 0u32) };
    checked(done).map(drop)
}

/// Gives a thread a nice value and leaves the rest. One system call.
pub fn set_nice(thread: i32, nice: i32) -> Result<()> {
    // SAFETY: setpriority reads and writes no memory of ours.
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as u32, nice) };
    checked(done.into()).map(drop)
}

/// Lets only one processor run the calling thread.
pub fn pin(cpu: usize) -> Result<()> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: zeros are an empty set, and the number was compared with its size.
    let set = unsafe {
        libc::CPU_SET(cpu, set.assume_init_mut());
        set.assume_init()
    };
    // SAFETY: the kernel reads the set, whose size is told.
    let done = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    checked(done.into()).map(drop)
}

/// Lets the calling thread run on all of these.
pub fn pin_to(cpus: &[usize]) -> Result<()> {
    // SAFETY: zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number was compared with the set's size.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the kernel reads the set, whose size is told.
    let done = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    checked(done.into()).map(drop)
}

/// The processors that may run the calling thread.
pub fn cpus() -> Result<Vec<usize>> {
    // SAFETY: zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size that it is told.
    let done = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    checked(done.into())?;
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the numbers are below the set's size.
    Ok(all
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect())
}

fn read_clock(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel, or its page of clocks, writes one timespec.
    let done = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (done == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Nanoseconds of the monotonic clock, which all processes read alike.
pub fn now() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Processor time of a process in nanoseconds, by one system call; `None` if there is none.
pub fn process_time(process: i32) -> Option<u64> {
    // A clock's number, as the kernel makes it: the process inverted, and 2 for exact times.
    read_clock(!process << 3 | 2)
}

/// Processor time of the calling thread in nanoseconds.
pub fn thread_time() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// Sleeps until the monotonic clock shows so many nanoseconds; not at all if it does already.
pub fn sleep_until(nanoseconds: u64) {
    let until = libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as i64,
    };
    loop {
        let (clock, absolute) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
        // SAFETY: the kernel reads the time; of absolute sleeps it writes no rest.
        let why = unsafe { libc::clock_nanosleep(clock, absolute, &until, std::ptr::null_mut()) };
        if why != libc::EINTR {
            return;
        }
    }
}

/// Ends the calling process when its parent ends, when it was real-time for so many microseconds
/// without waiting, and after so many seconds in any case.
pub fn end_in_time(real_time: u64, seconds: u32) -> Result<()> {
    let limit = libc::rlimit {
        rlim_cur: real_time,
        rlim_max: real_time,
    };
    // SAFETY: prctl and alarm read and write no memory of ours, setrlimit reads the limit.
    unsafe {
        checked(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL).into())?;
        libc::alarm(seconds);
        checked(libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit).into())?;
    }
    Ok(())
}

/// Sends the thread that made it a signal each time that thread itself has run for so long; the
/// signal's value is 0. It ends with this, or with the thread.
pub struct OwnTimer {
    timer: i32,
}

impl OwnTimer {
    /// Starts one, with a period in nanoseconds.
    pub fn start(signal: i32, period: u64) -> Result<OwnTimer> {
        let mut timer = 0i32;
        // SAFETY: zeros are a valid sigevent; the kernel reads it, and writes the timer's number.
        let made = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let clock = libc::CLOCK_THREAD_CPUTIME_ID;
            let (event, timer) = (&raw mut event, &raw mut timer);
            libc::syscall(libc::SYS_timer_create, clock, event, timer)
        };
        checked(made)?;
        let made = OwnTimer { timer };
        let time = libc::timespec {
            tv_sec: (period / 1_000_000_000) as i64,
            tv_nsec: (period % 1_000_000_000) as i64,
        };
        let every = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        let old = std::ptr::null_mut::<libc::itimerspec>();
        // SAFETY: the timer is this process's; the kernel reads the times, and writes no old ones.
        let set =
            unsafe { libc::syscall(libc::SYS_timer_settime, timer, 0, &raw const every, old) };
        checked(set)?;
        Ok(made)
    }
}

impl Drop for OwnTimer {
    fn drop(&mut self) {
        // SAFETY: the timer was made here, and is ended once.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.timer) };
    }
}

/// As [`allow`], for handlers of events.
pub fn allow_events(client: ClientBuilder) -> ClientBuilder {
    // SAFETY: as below.
    unsafe {
        client
            .allow("manager_time")
            .allow("thread_time")
            .allow("process_time")
            .allow("set_quota")
            .allow("set_background")
    }
}

/// Lets handlers call the manager's services.
pub fn allow(upcall: Upcall) -> Upcall {
    // SAFETY: `controls.rs` keeps this promise: each service makes system calls on numbers and
    // descriptors that are there before, writes numbers to its own stack, and counts by atomic
    // words. None allocates, locks, logs, or ends its call with a message.
    unsafe {
        upcall
            .allow("manager_time")
            .allow("thread_time")
            .allow("process_time")
            .allow("set_quota")
            .allow("set_background")
    }
}
