//! Starting a process that does not outlive the thread that started it.
//!
//! The kernel ends it (`PR_SET_PDEATHSIG`) when that thread ends, for whatever reason: also when
//! the whole server is killed. It is started as `posix_spawn` does it, with the parent's memory
//! until `execve`, so that nothing of a server with many domains is copied; the standard library
//! would have to fork to set what is needed here.

use libc::{c_char, c_int, c_void};
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What is run, and with what.
#[derive(Debug)]
pub struct SpawnPlan {
    /// The file, also the first argument and the only one.
    pub program: CString,
    /// `NAME=value` of each variable.
    pub environment: Vec<CString>,
    /// Where it begins.
    pub folder: Option<CString>,
    /// Standard input, output and error.
    pub files: [OwnedFd; 3],
}

/// All that the new process needs before it is another program: it must not allocate, nor take a
/// lock.
struct Start {
    program: *const c_char,
    arguments: [*const c_char; 2],
    environment: *const *const c_char,
    folder: *const c_char,
    files: [RawFd; 3],
    parent: libc::pid_t,
    /// Why there is no other program.
    error: c_int,
}

/// Bytes of the new process's first stack.
const STACK: usize = 64 << 10;

/// Starts it as the leader of a group of its own; gives its number, and a descriptor that is
/// readable when it has ended.
///
/// # Errors
/// The system cannot, or the program cannot be run.
pub fn spawn(plan: &SpawnPlan) -> io::Result<(libc::pid_t, OwnedFd)> {
    let environment: Vec<*const c_char> = plan
        .environment
        .iter()
        .map(|variable| variable.as_ptr())
        .chain([ptr::null()])
        .collect();
    // Away from 0 to 2, which are overwritten one after the other.
    let high = |file: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(file, 3);
    let [first, second, third] = &plan.files;
    let files = [high(first)?, high(second)?, high(third)?];
    let mut start = Start {
        program: plan.program.as_ptr(),
        arguments: [plan.program.as_ptr(), ptr::null()],
        environment: environment.as_ptr(),
        folder: plan.folder.as_ref().map_or(ptr::null(), |f| f.as_ptr()),
        files: files.each_ref().map(AsRawFd::as_raw_fd),
        // SAFETY: it has no conditions.
        parent: unsafe { libc::getpid() },
        error: 0,
    };
    let mut stack = vec![0u128; STACK / size_of::<u128>()];
    let mut descriptor: c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset writes the set that pthread_sigmask reads; the former mask is written
    // before it is read. No handler of this process runs in the new one, which has this thread's
    // memory: signals are shut out here, and let in there when the handlers are gone. The new
    // process runs `become_program` on a stack of its own, aligned to 16 bytes, and reads `start`;
    // both live and are left alone meanwhile, for this thread goes on only when the new process has
    // another program or has ended (CLONE_VFORK). `descriptor` is written for CLONE_PIDFD.
    let process = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let process = libc::clone(
            become_program,
            stack.as_mut_ptr_range().end.cast(),
            flags,
            (&raw mut start).cast(),
            &raw mut descriptor,
        );
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        match process {
            -1 => return Err(error),
            process => process,
        }
    };
    // SAFETY: the kernel has just made it for this process, and nobody else knows it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: `start` lives; the new process wrote it, if at all, before it ended: a compiler that
    // kept the old value would not know.
    match unsafe { ptr::read_volatile(&raw const start.error) } {
        0 => Ok((process, descriptor)),
        error => {
            // SAFETY: it is a child of this process that has ended and was not waited for.
            unsafe { libc::waitpid(process, ptr::null_mut(), 0) };
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// The same descriptor, for waiting until it is readable.
///
/// # Errors
/// There is no runtime, or it cannot wait for so many.
pub fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open and the same until it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE)? })
}

/// In the new process, with the memory of the old one: system calls only.
extern "C" fn become_program(start: *mut c_void) -> c_int {
    let start = start.cast::<Start>();
    // SAFETY: `spawn` passes its `start`, which nobody else touches meanwhile. What it points to is
    // there for as long. All that is called is allowed between fork and exec; `errno` is that of
    // the thread that waits.
    unsafe {
        let tried = prepare(&*start);
        if tried {
            libc::execve(
                (*start).program,
                (*start).arguments.as_ptr(),
                (*start).environment,
            );
        }
        let error = *libc::__errno_location();
        ptr::write_volatile(&raw mut (*start).error, error.max(1));
        libc::_exit(127)
    }
}

/// Everything before `execve`. False if something failed, which `errno` names.
///
/// # Safety
/// As of [`become_program`].
unsafe fn prepare(start: &Start) -> bool {
    // SAFETY: as of the function; `action` is written before it is read.
    unsafe {
        // Handlers lie in the server's program. What is ignored stays so, but for SIGPIPE, which
        // Rust's programs alone ignore.
        for signal in 1..=libc::SIGRTMAX() {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            if libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) != 0 {
                continue;
            }
            let action = action.assume_init_mut();
            let ignored = action.sa_sigaction == libc::SIG_IGN && signal != libc::SIGPIPE;
            if action.sa_sigaction != libc::SIG_DFL && !ignored {
                action.sa_sigaction = libc::SIG_DFL;
                action.sa_flags = 0;
                libc::sigaction(signal, action, ptr::null_mut());
            }
        }
        if libc::setpgid(0, 0) != 0
            || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) != 0
        {
            return false;
        }
        // The server may have been killed before the kernel knew what that shall mean here.
        if libc::getppid() != start.parent {
            libc::_exit(127);
        }
        for (number, &file) in start.files.iter().enumerate() {
            if libc::dup2(file, number as c_int) < 0 {
                return false;
            }
        }
        if !start.folder.is_null() && libc::chdir(start.folder) != 0 {
            return false;
        }
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut()) == 0
    }
}
