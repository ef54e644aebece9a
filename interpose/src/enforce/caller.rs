//! Who makes a call: its memory, and where its paths begin.
//!
//! A thread is known by its number, which may be another's once the call does not wait any more:
//! so [`Caller::still`] is asked after whatever was found by it, and before anything is done.

use crate::trusted::foreign;
use crate::trusted::seccomp::{Listener, Notification};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal};
use rustix::process::{pidfd_getfd, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Bytes of a path with its zero.
pub const PATH: usize = 4096;

/// The thread that makes a call.
#[derive(Clone, Debug)]
pub struct Caller {
    listener: Arc<Listener>,
    id: u64,
    /// By the kernel's number.
    pub thread: u32,
}

/// What the kernel tells of a process.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Its number.
    pub process: u32,
    /// What new files of its have not.
    pub mask: Mode,
}

impl Caller {
    /// Who waits for this.
    pub fn new(listener: &Arc<Listener>, call: &Notification) -> Caller {
        Caller {
            listener: listener.clone(),
            id: call.id,
            thread: call.thread,
        }
    }

    /// Its call still waits: what was read by its number was its own.
    pub fn still(&self) -> Result<(), Errno> {
        match self.listener.waits(self.id) {
            true => Ok(()),
            false => Err(Errno::SRCH),
        }
    }

    /// Copies from its memory.
    pub fn read(&self, from: u64, to: &mut [u8]) -> Result<(), Errno> {
        match foreign::read(self.thread, from, to) == to.len() {
            true => Ok(()),
            false => Err(Errno::FAULT),
        }
    }

    /// Copies to its memory.
    pub fn write(&self, to: u64, from: &[u8]) -> Result<(), Errno> {
        match foreign::write(self.thread, to, from) == from.len() {
            true => Ok(()),
            false => Err(Errno::FAULT),
        }
    }

    /// A string of its, without the zero.
    pub fn string(&self, from: u64) -> Result<Vec<u8>, Errno> {
        const PAGE: u64 = 4096;
        let mut all = Vec::new();
        while all.len() < PATH {
            let at = from.wrapping_add(all.len() as u64);
            // Never over the end of a page, behind which there may be nothing.
            let room = (PAGE - at % PAGE).min((PATH - all.len()) as u64);
            let mut piece = vec![0; room as usize];
            self.read(at, &mut piece)?;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                all.extend(&piece[..end]);
                return Ok(all);
            }
            all.extend(piece);
        }
        Err(Errno::NAMETOOLONG)
    }

    /// Where it is, or what one of its descriptors is for: a place that paths begin at.
    pub fn folder(&self, descriptor: i32) -> Result<OwnedFd, Errno> {
        let thread = self.thread;
        let path = match descriptor {
            libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
            number => format!("/proc/{thread}/fd/{number}"),
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = openat(CWD, path, flags, Mode::empty());
        self.still()?;
        found.map_err(|error| match error {
            Errno::NOENT if descriptor != libc::AT_FDCWD => Errno::BADF,
            other => other,
        })
    }

    /// Its process.
    fn process(&self) -> Result<OwnedFd, Errno> {
        let process = Pid::from_raw(self.status()?.process as i32).ok_or(Errno::SRCH)?;
        let process = pidfd_open(process, PidfdFlags::empty())?;
        self.still()?;
        Ok(process)
    }

    /// One of its descriptors, as this process's own. Threads may have others than their process,
    /// which kernels before 6.9 do not tell of.
    pub fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let of_thread = PidfdFlags::from_bits_retain(libc::PIDFD_THREAD);
        let thread = Pid::from_raw(self.thread as i32).ok_or(Errno::SRCH)?;
        let has = match pidfd_open(thread, of_thread) {
            Err(Errno::INVAL) => self.process()?,
            thread => thread?,
        };
        self.still()?;
        pidfd_getfd(has, number, PidfdGetfdFlags::empty())
    }

    /// Sends its process a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        pidfd_send_signal(self.process()?, signal)
    }

    /// What `/proc` says of it.
    pub fn status(&self) -> Result<Status, Errno> {
        let text = self.tells("status")?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim).ok_or(Errno::SRCH)
        };
        let process = field("Tgid:")?.parse().map_err(|_| Errno::SRCH)?;
        let mask = u32::from_str_radix(field("Umask:")?, 8).map_err(|_| Errno::SRCH)?;
        Ok(Status {
            process,
            mask: Mode::from_raw_mode(mask),
        })
    }

    /// The name of its program.
    pub fn name(&self) -> Result<String, Errno> {
        self.tells("comm")
    }

    fn tells(&self, file: &str) -> Result<String, Errno> {
        let text = std::fs::read(format!("/proc/{}/{file}", self.thread));
        self.still()?;
        let text = text.map_err(|_| Errno::SRCH)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
