//! What crossing a protection boundary costs without Postern: the kernel, another process.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// Every running thread of the process executes a serialising instruction; the process is
/// registered for that, as it has a namespace.
pub fn code_barrier() {
    const PRIVATE_EXPEDITED_SYNC_CORE: i32 = 1 << 5;
    // SAFETY: membarrier has no memory arguments.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) };
    assert_eq!(done, 0, "membarrier");
}

/// A null system call, `count` times.
pub fn system_calls(count: u64) {
    for _ in 0..count {
        // SAFETY: getppid touches no memory.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}

/// Its end to read and its end to write.
///
/// # Errors
/// There are no more descriptors.
pub fn pipe() -> Result<(File, File), String> {
    let mut ends = [0; 2];
    // SAFETY: the array holds the two descriptors, which nobody else owns.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(format!("pipe: {}", std::io::Error::last_os_error()));
        }
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

/// Two connected sockets; one direction is used.
fn sockets() -> Result<(File, File), String> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: the array holds the two descriptors, which nobody else owns.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            return Err(format!("socketpair: {}", std::io::Error::last_os_error()));
        }
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

/// Number of the processor that the calling thread is on.
pub fn processor() -> usize {
    // SAFETY: no memory is involved.
    unsafe { libc::sched_getcpu() }.max(0) as usize
}

/// This thread on some processors, with all that it forks; back on all of its own when dropped.
pub struct Pinned(Option<libc::cpu_set_t>);

impl Pinned {
    /// Keeps the calling thread on the processor that it is on, until this is dropped there.
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Pinned {
        Pinned::to(processor())
    }

    /// Keeps the calling thread on this processor, until this is dropped there.
    pub fn to(processor: usize) -> Pinned {
        // SAFETY: a set is plain data.
        Pinned::among(|set| unsafe {
            *set = std::mem::zeroed();
            libc::CPU_SET(processor, set);
        })
    }

    /// Keeps the calling thread off this processor, if it has others, until this is dropped there.
    pub fn off(processor: usize) -> Pinned {
        // SAFETY: a set is plain data.
        Pinned::among(|set| unsafe { libc::CPU_CLR(processor, set) })
    }

    /// Changes the set of processors.
    fn among(change: impl FnOnce(&mut libc::cpu_set_t)) -> Pinned {
        // SAFETY: the sets are plain data; the calls concern this thread only.
        unsafe {
            let mut old: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut old);
            let mut new = old;
            change(&mut new);
            let rc = libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &new);
            Pinned((rc == 0).then_some(old))
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(old) = &self.0 {
            // SAFETY: restores what `new` read.
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), old) };
        }
    }
}

/// Makes the calling thread a real-time one (`SCHED_FIFO`); whether that is allowed here.
pub fn make_real_time(priority: i32) -> bool {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the structure is only read; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
}

/// So many words, all 0, that the children which are forked later have in common with this process.
/// They stay.
///
/// # Errors
/// There is no memory.
pub fn words_of_all(count: usize) -> Result<&'static [AtomicU64], String> {
    // SAFETY: new pages of zeros, as atomic words may be, that nobody unmaps.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let bytes = count * size_of::<AtomicU64>();
        let words = libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0);
        if words == libc::MAP_FAILED {
            return Err(format!("mmap: {}", std::io::Error::last_os_error()));
        }
        Ok(std::slice::from_raw_parts(words.cast(), count))
    }
}

/// A child that does `work` and leaves.
pub struct Child(libc::pid_t);

impl Child {
    /// Begins it. What the parent's other threads have locked stays locked in it, but for what the
    /// C library and Postern hand over to children.
    ///
    /// # Errors
    /// There can be no more processes.
    pub fn new(work: impl FnOnce()) -> Result<Child, String> {
        // SAFETY: the child leaves by _exit, without running the parent's destructors; it does not
        // outlive the parent.
        unsafe {
            match libc::fork() {
                0 => {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    work();
                    libc::_exit(0)
                }
                pid if pid > 0 => Ok(Child(pid)),
                _ => Err(format!("fork: {}", std::io::Error::last_os_error())),
            }
        }
    }
}

impl Child {
    /// Its number.
    pub fn id(&self) -> i32 {
        self.0
    }

    /// Makes it a real-time process (`SCHED_FIFO`) that the kernel kills when it has computed for
    /// `seconds` without waiting; whether that is allowed here.
    pub fn make_real_time(&self, priority: i32, seconds: u64) -> bool {
        let limit = libc::rlimit {
            rlim_cur: seconds * 1_000_000,
            rlim_max: seconds * 1_000_000,
        };
        let parameters = libc::sched_param {
            sched_priority: priority,
        };
        let none = std::ptr::null_mut();
        // SAFETY: both structures are only read; the process is our own child.
        unsafe {
            libc::prlimit(self.0, libc::RLIMIT_RTTIME, &limit, none) == 0
                && libc::sched_setscheduler(self.0, libc::SCHED_FIFO, &parameters) == 0
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: our own child, which is waited for only when this is dropped.
        unsafe { libc::kill(self.0, signal) };
    }

    /// Kills it.
    pub fn kill(&self) {
        self.signal(libc::SIGKILL);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: waits for our own child, which has been told to leave.
        unsafe { libc::waitpid(self.0, std::ptr::null_mut(), 0) };
    }
}

/// Seconds of one `trip`, the best of `rounds` rounds of `count`.
fn best(
    rounds: usize,
    count: u32,
    mut trip: impl FnMut() -> Result<(), String>,
) -> Result<f64, String> {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..count {
            trip()?;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(count));
    }
    Ok(best)
}

/// Seconds that one byte takes to another process on the same core and back, the best of `rounds`
/// rounds of `count` trips.
pub fn pipe_round_trip(rounds: usize, count: u32) -> Result<f64, String> {
    round_trip(pipe, rounds, count, || ())
}

/// The same by Unix sockets.
pub fn socket_round_trip(rounds: usize, count: u32) -> Result<f64, String> {
    round_trip(sockets, rounds, count, || ())
}

/// The same by pipes, where the other process does `work` for each byte.
pub fn pipe_round_trip_for(rounds: usize, count: u32, work: impl FnMut()) -> Result<f64, String> {
    round_trip(pipe, rounds, count, work)
}

/// The same by two of whatever has an end to read and one to write.
fn round_trip(
    connection: fn() -> Result<(File, File), String>,
    rounds: usize,
    count: u32,
    mut work: impl FnMut(),
) -> Result<f64, String> {
    let _pinned = Pinned::new();
    let (mut to_child_read, mut to_child) = connection()?;
    let (mut from_child, mut from_child_write) = connection()?;
    // Dropped last: the child leaves when it can read no more.
    let child;
    {
        let (read, write) = (&mut to_child_read, &mut from_child_write);
        let ours = std::os::fd::AsRawFd::as_raw_fd(&to_child);
        child = Child::new(|| {
            // SAFETY: the child's copy of the parent's end, which nothing here uses; so that it
            // sees the parent close it.
            unsafe { libc::close(ours) };
            let mut byte = [0];
            while read.read_exact(&mut byte).is_ok() && {
                work();
                write.write_all(&byte).is_ok()
            } {}
        })?;
    }
    drop((to_child_read, from_child_write));
    let mut byte = [0];
    let result = best(rounds, count, || {
        let there = to_child.write_all(&[1]);
        there
            .and_then(|()| from_child.read_exact(&mut byte))
            .map_err(|e| e.to_string())
    });
    drop(to_child);
    drop(child);
    result
}

const OURS: u32 = 0;
const THEIRS: u32 = 1;
const OVER: u32 = 2;

fn wake(word: &AtomicU32) {
    let (no_time, no_word) = (0usize, 0usize);
    // SAFETY: wakes who waits for this word.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE,
            1,
            no_time,
            no_word,
            0,
        )
    };
}

/// Waits until the word is not `value`.
fn wait(word: &AtomicU32, value: u32) -> u32 {
    loop {
        let now = word.load(Ordering::SeqCst);
        if now != value {
            return now;
        }
        // SAFETY: waits while the word has the value.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT,
                value,
                0usize,
            )
        };
    }
}

/// Seconds that a word in shared memory takes to be handed to another process on the same core and
/// back: each waits in the kernel until the other wakes it.
pub fn futex_round_trip(rounds: usize, count: u32) -> Result<f64, String> {
    let _pinned = Pinned::new();
    word_round_trip(rounds, count, || (), wait, wake)
}

/// The same to a process on another core, where each looks at the word without end; `None` with
/// one core.
pub fn spinning_round_trip(rounds: usize, count: u32) -> Result<Option<f64>, String> {
    let here = processor();
    // For good: the child has no end that it would come back before.
    let leave = || std::mem::forget(Pinned::off(here));
    let spin = |word: &AtomicU32, value| {
        let mut now = word.load(Ordering::SeqCst);
        while now == value {
            std::hint::spin_loop();
            now = word.load(Ordering::SeqCst);
        }
        now
    };
    match std::thread::available_parallelism().map_or(1, usize::from) {
        1 => Ok(None),
        _ => word_round_trip(rounds, count, leave, spin, |_| ()).map(Some),
    }
}

/// The same by two ways to wait and to wake; the child does `first` before.
fn word_round_trip(
    rounds: usize,
    count: u32,
    first: impl FnOnce(),
    wait: impl Fn(&AtomicU32, u32) -> u32,
    wake: impl Fn(&AtomicU32),
) -> Result<f64, String> {
    // SAFETY: a new page, shared with children.
    let page = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0)
    };
    if page == libc::MAP_FAILED {
        return Err(format!("mmap: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: the page is zeros, as an atomic word may be, and stays until this function unmaps it.
    let turn = unsafe { &*page.cast::<AtomicU32>() };
    let child = Child::new(|| {
        first();
        while wait(turn, OURS) != OVER {
            turn.store(OURS, Ordering::SeqCst);
            wake(turn);
        }
    });
    // Behind the fork, so that the child may go elsewhere.
    let _pinned = Pinned::new();
    let result = child.and_then(|child| {
        let result = best(rounds, count, || {
            turn.store(THEIRS, Ordering::SeqCst);
            wake(turn);
            wait(turn, THEIRS);
            Ok(())
        });
        turn.store(OVER, Ordering::SeqCst);
        wake(turn);
        drop(child);
        result
    });
    // SAFETY: the page that was mapped above; nothing refers to it any more.
    unsafe { libc::munmap(page, 4096) };
    result
}
