//! What the services of the manager do: clocks read, quotas and priorities set.
//!
//! Handlers call them in the middle of whatever the process does. So each makes system calls only,
//! on numbers and descriptors that are there from the start; none allocates, locks or logs.

use crate::error::Error;
use crate::setup::{Process, Quota};
use crate::trusted::{self, Scheduling};
use postern::{Caller, DomainBuilder};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The nice value that lets all others go first.
const LAST: i32 = 19;

/// Where a process's time is read.
enum Time {
    /// Its clock: one system call, exact.
    Clock,
    /// `/proc/PID/schedstat`.
    Schedstat(File),
}

enum Act {
    Max(File),
    Cfs(Cfs),
    Nice,
    None,
}

/// Version 1 has a file for each.
struct Cfs {
    quota: File,
    period: File,
    /// The period that this process has written; 0: none.
    written: AtomicU64,
}

struct Controlled {
    pid: i32,
    time: Time,
    act: Act,
}

/// All that the manager can reach: processes, by the numbers that it knows them by.
pub struct Controls {
    processes: Vec<Controlled>,
}

/// What the manager can do.
pub const SERVICES: [&str; 5] = [
    "manager_time",
    "thread_time",
    "process_time",
    "set_quota",
    "set_background",
];

impl Controls {
    /// Opens what the services will use; with `proc`, times are read there.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn open(processes: &[Process], proc: bool) -> Result<Controls, Error> {
        let write = |path: &Path| {
            let file = OpenOptions::new().write(true).open(path);
            file.map_err(|error| Error::file(path, error))
        };
        let open = |process: &Process| {
            let time = if proc {
                let path = format!("/proc/{}/schedstat", process.pid);
                let file = File::open(&path).map_err(|error| Error::system(path, error))?;
                Time::Schedstat(file)
            } else {
                Time::Clock
            };
            let act = match &process.quota {
                Quota::Max(path) => Act::Max(write(path)?),
                Quota::Cfs(folder) => Act::Cfs(Cfs {
                    quota: write(&folder.join("cpu.cfs_quota_us"))?,
                    period: write(&folder.join("cpu.cfs_period_us"))?,
                    written: AtomicU64::new(0),
                }),
                Quota::Nice => Act::Nice,
                Quota::None => Act::None,
            };
            let pid = process.pid;
            Ok(Controlled { pid, time, act })
        };
        let processes = processes.iter().map(open).collect::<Result<_, Error>>()?;
        Ok(Controls { processes })
    }

    /// Grants them, which are [`SERVICES`], to a domain of the manager's.
    pub fn grant(self, builder: DomainBuilder) -> DomainBuilder {
        let shared = Arc::new(self);
        let (times, quotas, background) = (shared.clone(), shared.clone(), shared);
        builder
            .service("manager_time", |_: &Caller<'_>| trusted::now() as i64)
            .service("thread_time", |_: &Caller<'_>| {
                trusted::thread_time() as i64
            })
            .service("process_time", move |_: &Caller<'_>, process: u32| {
                times.time(process)
            })
            .service(
                "set_quota",
                move |_: &Caller<'_>, process: u32, slice: u64, period: u64| {
                    quotas.set_quota(process, slice, period)
                },
            )
            .service("set_background", move |_: &Caller<'_>, process: u32| {
                background.set_background(process)
            })
    }

    /// Processor time of a process in nanoseconds; -1 if there is no such process any more.
    fn time(&self, process: u32) -> i64 {
        let time = match self.processes.get(process as usize) {
            None => None,
            Some(Controlled { pid, time, .. }) => match time {
                Time::Clock => trusted::process_time(*pid),
                Time::Schedstat(file) => first_number(file),
            },
        };
        time.and_then(|time| i64::try_from(time).ok()).unwrap_or(-1)
    }

    /// Holds a client to `slice` of every `period`, in microseconds: 0, or an error's number,
    /// negative.
    fn set_quota(&self, process: u32, slice: u64, period: u64) -> i32 {
        let Some(process) = self.processes.get(process as usize) else {
            return -libc::ESRCH;
        };
        match &process.act {
            Act::Max(file) => status(put(file, format_args!("{slice} {period}"))),
            Act::Cfs(files) => {
                if files.written.load(Ordering::Relaxed) != period {
                    if let Err(error) = put(&files.period, format_args!("{period}")) {
                        return status::<()>(Err(error));
                    }
                    files.written.store(period, Ordering::Relaxed);
                }
                status(put(&files.quota, format_args!("{slice}")))
            }
            Act::Nice => status(trusted::set_nice(process.pid, nice(slice, period))),
            Act::None => 0,
        }
    }

    /// Lowers a process so that it runs when nobody else wants to: 0, or an error's number,
    /// negative.
    fn set_background(&self, process: u32) -> i32 {
        match self.processes.get(process as usize) {
            None => -libc::ESRCH,
            Some(process) => status(trusted::schedule(process.pid, Scheduling::Other(LAST))),
        }
    }
}

fn status<T>(result: std::io::Result<T>) -> i32 {
    match result {
        Ok(_) => 0,
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Writes numbers to a control file, by way of the stack.
fn put(file: &File, text: std::fmt::Arguments<'_>) -> std::io::Result<()> {
    let mut bytes = [0u8; 48];
    let mut rest = &mut bytes[..];
    // Two numbers of 20 digits fit.
    rest.write_fmt(text)?;
    let length = 48 - rest.len();
    file.write_at(&bytes[..length], 0).map(drop)
}

/// The number with which a file of `/proc` begins.
fn first_number(file: &File) -> Option<u64> {
    let mut text = [0u8; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    let end = text[..length].iter().position(|b| !b.is_ascii_digit())?;
    str::from_utf8(&text[..end]).ok()?.parse().ok()
}

/// The nice value whose weight is that part of 0's: each step is a factor of 1.25.
pub fn nice(slice: u64, period: u64) -> i32 {
    let part = slice as f64 / period.max(1) as f64;
    // Rounded: between two values, the nearer one by its logarithm.
    let (mut nice, mut bound) = (0, 0.8f64.sqrt());
    while nice < LAST && part < bound {
        nice += 1;
        bound *= 0.8;
    }
    nice
}
