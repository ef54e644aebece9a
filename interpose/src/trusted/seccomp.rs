//! Filters of system calls, and the notifications by which a supervisor decides about them.

use libc::{seccomp_notif, seccomp_notif_addfd, seccomp_notif_resp, sock_filter, sock_fprog};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// The filter tells a supervisor, and once that one has a notification, only signals that end the
/// caller take it out of the call: so no call is made twice.
const FLAGS: u64 =
    libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

/// Whether this kernel has such filters: if not, why.
pub fn is_there() -> Result<(), Errno> {
    // SAFETY: a filter at a null pointer is none: the kernel looks at the flags first, and then
    // says that nothing is there.
    let result = unsafe {
        let filter = std::ptr::null::<sock_fprog>();
        let set = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, set, FLAGS, filter)
    };
    match last() {
        Errno::FAULT if result < 0 => Ok(()),
        error => Err(error),
    }
}

/// The program that is started has this filter, as have all its children. Before that, its process
/// and the number by which it has the notifications go to `told`, and `go` is waited for.
pub fn filter(command: &mut Command, filter: Vec<sock_filter>, told: RawFd, go: RawFd) {
    let install = move || {
        let program = sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_ptr().cast_mut(),
        };
        let program = &raw const program;
        // SAFETY: the kernel reads the filter, which lives as long as the closure; the calls may be
        // made between fork and exec.
        unsafe {
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            let set = libc::SECCOMP_SET_MODE_FILTER;
            let number = libc::syscall(libc::SYS_seccomp, set, FLAGS, program);
            if number < 0 {
                return Err(std::io::Error::last_os_error());
            }
            let words = [libc::getpid(), number as i32];
            let bytes = size_of_val(&words);
            let mut byte = 0_u8;
            // Without a supervisor nobody would answer, and the program's execution wait for ever.
            if libc::write(told, words.as_ptr().cast(), bytes) != bytes as isize
                || libc::read(go, (&raw mut byte).cast(), 1) != 1
                || byte != 1
            {
                return Err(Errno::PIPE.into());
            }
        }
        Ok(())
    };
    // SAFETY: it makes system calls alone, and allocates only where one fails.
    unsafe { command.pre_exec(install) };
}

/// A call that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    /// Its own number.
    pub id: u64,
    /// The thread that makes it.
    pub thread: u32,
    /// The call's number.
    pub number: u64,
    /// Its words.
    pub arguments: [u64; 6],
}

/// Where the notifications of a filter come.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// What [`filter`] has told of, once it is this process's.
    pub fn new(file: OwnedFd) -> Listener {
        /// Caller and supervisor never run at once: one's processor is the other's next.
        /// Since Linux 6.6; without, they only wait longer for each other.
        const SYNCHRONOUS: u64 = 1;
        let request = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS;
        // SAFETY: the request has a number.
        unsafe { libc::ioctl(file.as_raw_fd(), request, SYNCHRONOUS) };
        Listener(file)
    }

    /// Waits for a call; `None` when no process has the filter any more.
    pub fn receive(&self) -> Option<Notification> {
        loop {
            let mut file = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut file, None) {
                Err(Errno::INTR) => continue,
                Ok(_) if file[0].revents().contains(PollFlags::IN) => {}
                _ => return None,
            }
            // SAFETY: zeros are such a structure.
            let mut told: seccomp_notif = unsafe { std::mem::zeroed() };
            // The caller may have been killed meanwhile: then there is nothing, or another's.
            if self.control(libc::SECCOMP_IOCTL_NOTIF_RECV, &mut told) >= 0 {
                return Some(Notification {
                    id: told.id,
                    thread: told.pid,
                    number: told.data.nr as u64,
                    arguments: told.data.args,
                });
            }
        }
    }

    /// Whether no process has the filter any more, or will within this time.
    pub fn has_ended_within(&self, time: Duration) -> bool {
        let mut file = [PollFd::new(&self.0, PollFlags::empty())];
        let time = Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        };
        poll(&mut file, Some(&time)).is_ok_and(|count| count > 0)
    }

    /// Whether a call still waits. What was found by its thread's number before is its own then.
    pub fn waits(&self, id: u64) -> bool {
        let mut id = id;
        self.control(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id) >= 0
    }

    /// The call has this result, or error if it is negative. One whose caller is gone has none.
    pub fn answer(&self, id: u64, result: i64) {
        let failed = (-4095..0).contains(&result);
        let mut answer = seccomp_notif_resp {
            id,
            val: if failed { 0 } else { result },
            error: if failed { result as i32 } else { 0 },
            flags: 0,
        };
        self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut answer);
    }

    /// The kernel makes the call, with what is in the program's memory then.
    pub fn pass(&self, id: u64) {
        let mut answer = seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut answer);
    }

    /// The caller has this file, by the number that comes back; with `answers`, this is the call's
    /// result.
    ///
    /// # Errors
    /// It may have no more files, or is gone.
    pub fn hand(
        &self,
        id: u64,
        file: BorrowedFd<'_>,
        closes: bool,
        answers: bool,
    ) -> Result<i64, Errno> {
        let mut handed = seccomp_notif_addfd {
            id,
            flags: match answers {
                true => libc::SECCOMP_ADDFD_FLAG_SEND as u32,
                false => 0,
            },
            srcfd: file.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: if closes { libc::O_CLOEXEC as u32 } else { 0 },
        };
        match self.control(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut handed) {
            number if number >= 0 => Ok(number.into()),
            _ => Err(last()),
        }
    }

    fn control<T>(&self, request: libc::Ioctl, with: &mut T) -> i32 {
        // SAFETY: each request is made with the structure that belongs to it.
        unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw mut *with) }
    }
}

fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
