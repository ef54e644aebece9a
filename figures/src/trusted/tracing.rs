//! Programs whose every system call the kernel shows to somebody in this process, who learns which
//! one it is and lets it pass: a tracer, with two stops or one for each call, or one who is
//! notified by seccomp.

use super::process::{Child, words_of_all};
use std::collections::HashSet;
use std::ffi::CString;
use std::io::Error;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// How a call is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// `ptrace`: the thread stops before each call and after it.
    Twice,
    /// `ptrace` with a filter of seccomp's (`RET_TRACE`): it stops before.
    Once,
    /// A filter of seccomp's notifies (`RET_USER_NOTIF`), and the call waits for the answer.
    Notified,
}

/// What a child ends with that cannot do what is asked of it.
const CANNOT: i32 = 127;

fn said(what: &str) -> String {
    format!("{what}: {}", Error::last_os_error())
}

/// Runs a program, found as shells do, whose calls and those of its children are shown so, until it
/// has ended: whether it was successful.
///
/// # Errors
/// The kernel does not allow that here.
pub fn run(shown: Shown, words: &[&std::ffi::OsStr]) -> Result<bool, String> {
    use std::os::unix::ffi::OsStrExt;
    let words: Result<Vec<CString>, _> = words.iter().map(|w| CString::new(w.as_bytes())).collect();
    let words = words.map_err(|error| error.to_string())?;
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // By which a child says, without a call, where its notifications come.
    let number = &words_of_all(1)?[0];
    let child = Child::new(|| {
        // SAFETY: system calls of a child that becomes the program; the words end with a null
        // pointer, and live in the parent's memory, of which this is a copy.
        unsafe {
            let ready = match shown {
                Shown::Twice => stop(),
                Shown::Once => stop() && filter(libc::SECCOMP_RET_TRACE, 0) >= 0,
                Shown::Notified => {
                    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
                    let listener = filter(libc::SECCOMP_RET_USER_NOTIF, flags);
                    number.store(listener.max(0) as u64, SeqCst);
                    listener >= 0
                }
            };
            if ready {
                libc::execvp(pointers[0], pointers.as_ptr());
            }
            libc::_exit(CANNOT);
        }
    })?;
    let status = match shown {
        Shown::Twice | Shown::Once => trace(shown, child.id()),
        Shown::Notified => answer(number, &child),
    };
    if status.is_err() {
        child.kill();
    }
    match status? {
        status if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == CANNOT => {
            Err("the program is not there, or the kernel does not show its calls here".to_owned())
        }
        status => Ok(status == 0),
    }
}

/// Asks to be traced, and waits for the tracer.
///
/// # Safety
/// For a child whose parent traces it.
unsafe fn stop() -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 && libc::raise(libc::SIGSTOP) == 0 }
}

/// A filter that does the same about each call of the calling thread: its descriptor if the flags
/// want one, and a negative number if there can be no filter.
///
/// # Safety
/// For a child that ends soon: the filter stays.
unsafe fn filter(with: u32, flags: libc::c_ulong) -> i64 {
    let mut all = [libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: with,
    }];
    let program = libc::sock_fprog {
        len: 1,
        filter: all.as_mut_ptr(),
    };
    // SAFETY: the kernel reads the program, which outlives the call.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return -1;
        }
        let set = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, set, flags, &raw const program)
    }
}

/// Lets a stopped child and all its children go on, until none is left: the first one's status.
fn trace(shown: Shown, first: i32) -> Result<i32, String> {
    let mut options = libc::PTRACE_O_EXITKILL
        | libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE;
    let go_on = match shown {
        Shown::Twice => libc::PTRACE_SYSCALL,
        _ => {
            options |= libc::PTRACE_O_TRACESECCOMP;
            libc::PTRACE_CONT
        }
    };
    let mut known = HashSet::new();
    let mut ended = Err("the traced program is gone".to_owned());
    loop {
        let mut status = 0;
        // SAFETY: waits for what this thread has started or traces, writes the status.
        let who = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        if who < 0 {
            match Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => continue,
                _ => return ended,
            }
        }
        if !libc::WIFSTOPPED(status) {
            if who == first {
                ended = Ok(status);
            }
            known.remove(&who);
            continue;
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let is_call = signal == libc::SIGTRAP | 0x80 || event == libc::PTRACE_EVENT_SECCOMP;
        let passed = if known.insert(who) {
            if who == first {
                // SAFETY: the child has stopped.
                let set = unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, who, 0, options) };
                if set != 0 {
                    return Err(said("PTRACE_SETOPTIONS"));
                }
            }
            0
        } else if is_call {
            look(who);
            0
        } else if event != 0 {
            0
        } else {
            signal
        };
        // SAFETY: the thread has stopped; it may have been killed since, which the next wait says.
        unsafe { libc::ptrace(go_on, who, 0, passed) };
    }
}

/// Which call it is, with its words: without, nobody could decide about it.
fn look(who: i32) {
    let mut told = [0u64; 16];
    // SAFETY: the kernel writes at most the array.
    unsafe {
        let size = size_of_val(&told);
        libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, who, size, told.as_mut_ptr())
    };
    std::hint::black_box(&told);
}

/// Answers all notifications of a child: it goes on.
fn answer(number: &AtomicU64, child: &Child) -> Result<i32, String> {
    let mut ended = 0;
    while number.load(SeqCst) == 0 {
        // SAFETY: our own child, which is not yet waited for; writes the status.
        if unsafe { libc::waitpid(child.id(), &mut ended, libc::WNOHANG) } != 0 {
            return Err("the kernel notifies nobody here".to_owned());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let listener = taken(child.id(), number.load(SeqCst) as RawFd)?;
    let control = |request: libc::Ioctl, with: *mut libc::c_void| {
        // SAFETY: each request is made with the structure that belongs to it.
        unsafe { libc::ioctl(listener.as_raw_fd(), request, with) }
    };
    /// Caller and supervisor never run at once: Linux 6.6 and later make use of it.
    const SYNCHRONOUS: libc::c_ulong = 1;
    let request = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS;
    // SAFETY: the request has a number.
    unsafe { libc::ioctl(listener.as_raw_fd(), request, SYNCHRONOUS) };
    loop {
        // SAFETY: zeros are such a structure.
        let mut told: libc::seccomp_notif = unsafe { zeroed() };
        if control(libc::SECCOMP_IOCTL_NOTIF_RECV, (&raw mut told).cast()) < 0 {
            // Its caller was killed, or there is no caller any more.
            if is_over(&listener) {
                break;
            }
            continue;
        }
        let mut answer = libc::seccomp_notif_resp {
            id: told.id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        control(libc::SECCOMP_IOCTL_NOTIF_SEND, (&raw mut answer).cast());
        // Kernels before 6.11 wait for ever for who has ended.
        let is_end = i64::from(told.data.nr) == libc::SYS_exit_group;
        if is_end && told.pid as i32 == child.id() {
            break;
        }
    }
    // SAFETY: as above.
    match unsafe { libc::waitpid(child.id(), &mut ended, 0) } {
        -1 => Err(said("waitpid")),
        _ => Ok(ended),
    }
}

fn is_over(listener: &OwnedFd) -> bool {
    let mut file = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: 0,
        revents: 0,
    };
    // SAFETY: one structure, which is there.
    unsafe { libc::poll(&mut file, 1, 0) };
    file.revents & libc::POLLHUP != 0
}

/// A file that another process has by this number.
fn taken(process: i32, number: RawFd) -> Result<OwnedFd, String> {
    // SAFETY: both calls have numbers alone, and what they give is nobody else's.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, process, 0);
        if process < 0 {
            return Err(said("pidfd_open"));
        }
        let process = OwnedFd::from_raw_fd(process as RawFd);
        let file = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0);
        match file {
            0.. => Ok(OwnedFd::from_raw_fd(file as RawFd)),
            _ => Err(said("pidfd_getfd")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn trees_end_as_they_do_alone() {
        for shown in [Shown::Twice, Shown::Once, Shown::Notified] {
            for (script, well) in [("true | cat; (exit 0)", true), ("exit 3", false)] {
                let words = ["sh", "-c", script].map(OsStr::new);
                assert_eq!(run(shown, &words), Ok(well), "{shown:?} {script}");
            }
            let ended = run(shown, &["sh", "-c", "kill -9 $$"].map(OsStr::new));
            assert_eq!(ended, Ok(false), "{shown:?}");
            assert!(run(shown, &[OsStr::new("/nonesuch")]).is_err());
        }
    }
}
