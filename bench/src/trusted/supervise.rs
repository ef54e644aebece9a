//! What it costs to let somebody else decide about a system call without Postern: a process that
//! traces, or a thread that seccomp notifies.
//!
//! Each function forks a child that makes system calls and measures itself, so that nothing is left
//! in this process.

use std::mem::zeroed;
use std::time::Instant;

/// The call that is decided about.
const CALL: i64 = libc::SYS_getppid;

/// Memory that a child shares with its parent.
struct Word(*mut f64);

impl Word {
    fn new() -> Result<Word, String> {
        // SAFETY: a fresh mapping, of which nobody knows.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match at {
            libc::MAP_FAILED => Err(said("mmap")),
            at => Ok(Word(at.cast())),
        }
    }

    fn set(&self, value: f64) {
        // SAFETY: the mapping holds the word as long as `self` lives.
        unsafe { self.0.write_volatile(value) };
    }

    fn get(&self) -> f64 {
        // SAFETY: as above.
        unsafe { self.0.read_volatile() }
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length.
        unsafe { libc::munmap(self.0.cast(), 4096) };
    }
}

fn said(what: &str) -> String {
    format!("{what}: {}", std::io::Error::last_os_error())
}

/// Best seconds of one call in `rounds` rounds of `count` calls, by the calling process itself.
fn measured(rounds: usize, count: u32) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..count {
            // SAFETY: getppid touches no memory.
            unsafe { libc::syscall(CALL) };
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(count));
    }
    best
}

/// Runs `child` in a child and `parent` beside it; what the child measured, unless one of them
/// could not work.
fn beside(
    child: impl FnOnce(&Word) -> bool,
    parent: impl FnOnce(libc::pid_t) -> Result<(), String>,
) -> Result<f64, String> {
    let word = Word::new()?;
    word.set(f64::NAN);
    // SAFETY: the child makes system calls and writes to the shared word, and leaves by _exit.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let done = child(&word);
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(if done { 0 } else { 1 }) };
    }
    if pid < 0 {
        return Err(said("fork"));
    }
    let worked = parent(pid);
    // SAFETY: ends and collects our own child.
    unsafe {
        if worked.is_err() {
            libc::kill(pid, libc::SIGKILL);
        }
        libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
    }
    worked?;
    match word.get() {
        time if time.is_finite() => Ok(time),
        _ => Err("the child could not measure itself".to_owned()),
    }
}

/// Seconds of a system call at which a tracer is asked twice, as it is: before it is made and
/// after.
pub fn traced(rounds: usize, count: u32) -> Result<f64, String> {
    let child = |word: &Word| {
        // SAFETY: asks to be traced and stops, for the parent to begin.
        let traced = unsafe {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 && libc::raise(libc::SIGSTOP) == 0
        };
        if traced {
            word.set(measured(rounds, count));
        }
        traced
    };
    beside(child, |pid| {
        loop {
            let mut status = 0;
            // SAFETY: waits for our own child and lets it go on to its next system call.
            unsafe {
                if libc::waitpid(pid, &mut status, libc::__WALL) != pid {
                    return Err(said("waitpid"));
                }
                if !libc::WIFSTOPPED(status) {
                    return match status {
                        0 => Ok(()),
                        _ => Err("the kernel does not allow tracing here".to_owned()),
                    };
                }
                if libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, 0) != 0 {
                    return Err(said("PTRACE_SYSCALL"));
                }
            }
        }
    })
}

/// Seconds of a system call about which a thread of the same process is asked by seccomp, and
/// answers: go on.
pub fn notified(rounds: usize, count: u32) -> Result<f64, String> {
    let child = |word: &Word| match listener() {
        Some(listener) => {
            word.set(measured(rounds, count));
            drop(listener);
            true
        }
        None => false,
    };
    beside(child, |pid| {
        let mut status = 0;
        // SAFETY: waits for our own child, and leaves it to `beside` to collect.
        unsafe {
            let mut information: libc::siginfo_t = zeroed();
            let how = libc::WEXITED | libc::WNOWAIT;
            if libc::waitid(libc::P_PID, pid as u32, &mut information, how) != 0 {
                return Err(said("waitid"));
            }
            status += information.si_status();
        }
        match status {
            0 => Ok(()),
            _ => Err("the kernel does not allow seccomp's user notification here".to_owned()),
        }
    })
}

/// A thread that is asked.
struct Listener(libc::c_int);

impl Drop for Listener {
    fn drop(&mut self) {
        // SAFETY: our own descriptor; the thread that waits on it ends with the process.
        unsafe { libc::close(self.0) };
    }
}

/// Filters the calling thread, and starts a thread that is asked.
fn listener() -> Option<Listener> {
    let (send, receive) = std::sync::mpsc::channel();
    // It must exist before the filter does, or it would be asked about itself.
    std::thread::Builder::new()
        .spawn(move || {
            if let Ok(descriptor) = receive.recv() {
                answer(descriptor);
            }
        })
        .ok()?;
    let instruction = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            CALL as u32,
        ),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_USER_NOTIF,
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: concerns the calling thread of a child that ends soon; the program outlives the call.
    let descriptor = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return None;
        }
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &program,
        )
    };
    if descriptor < 0 || send.send(descriptor as libc::c_int).is_err() {
        return None;
    }
    Some(Listener(descriptor as libc::c_int))
}

fn answer(descriptor: libc::c_int) {
    loop {
        // SAFETY: the kernel fills the request, which must be zero before, and reads the answer.
        unsafe {
            let mut request: libc::seccomp_notif = zeroed();
            if libc::ioctl(descriptor, RECEIVE, &mut request) != 0 {
                return;
            }
            let mut response: libc::seccomp_notif_resp = zeroed();
            response.id = request.id;
            response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
            if libc::ioctl(descriptor, SEND, &mut response) != 0 {
                return;
            }
        }
    }
}

/// SECCOMP_IOCTL_NOTIF_RECV and _SEND: read and write, type `!`, with the sizes of their
/// structures.
const RECEIVE: libc::c_ulong = request(0, size_of::<libc::seccomp_notif>());
const SEND: libc::c_ulong = request(1, size_of::<libc::seccomp_notif_resp>());

const fn request(number: u64, size: usize) -> libc::c_ulong {
    3 << 30 | (size as u64) << 16 | (b'!' as u64) << 8 | number
}
