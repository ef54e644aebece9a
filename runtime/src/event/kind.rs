//! What can be waited for. Each becomes a descriptor.

use super::error::{EventError, system};
use super::pages::Pages;
use super::trusted::kernel;
use super::trusted::taking::Taking;
use crate::share::Shared;
use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

/// Something that may happen, again and again, for [`crate::Domain::on`]. What the handler gets as
/// its data stands at each.
#[derive(Debug)]
pub struct Event(Kind);

#[derive(Debug)]
enum Kind {
    Timer(Duration, Duration),
    Descriptor(Result<OwnedFd, Errno>, EventFlags),
    End(u32),
    Doorbell,
    Signal(i32),
    Pressure(PathBuf, Duration, Duration),
    Posted,
    Pages(Shared),
}

/// What becomes of it.
pub(super) struct Awaited {
    pub(super) descriptor: Option<OwnedFd>,
    pub(super) awaits: EventFlags,
    pub(super) taking: Taking,
    /// A look at it changes it: only the dispatcher may look.
    pub(super) alone: bool,
    pub(super) is_doorbell: bool,
    pub(super) pages: Option<Pages>,
}

impl Event {
    /// A timer that runs out every `period`, the first time after one. Data: how often it did since
    /// it was told last.
    pub fn every(period: Duration) -> Event {
        Event(Kind::Timer(period, period))
    }

    /// A timer that runs out once. Data: 1.
    pub fn after(delay: Duration) -> Event {
        Event(Kind::Timer(delay, Duration::ZERO))
    }

    /// A timer that runs out after `first`, and then every `period`; zero: never again. Data as of
    /// [`Event::every`].
    pub fn timer(first: Duration, period: Duration) -> Event {
        Event(Kind::Timer(first, period))
    }

    /// A descriptor has something to read, or its other side is gone. Data: `EPOLLIN` (1),
    /// `EPOLLRDHUP` (0x2000), `EPOLLHUP` (0x10), `EPOLLERR` (8). Told once for what comes, whether
    /// or not somebody reads it; a copy of the descriptor is kept.
    pub fn readable(descriptor: impl AsFd) -> Event {
        Event::descriptor(descriptor, EventFlags::IN | EventFlags::RDHUP)
    }

    /// A descriptor can be written to again. Data: `EPOLLOUT` (4), `EPOLLHUP`, `EPOLLERR`.
    pub fn writable(descriptor: impl AsFd) -> Event {
        Event::descriptor(descriptor, EventFlags::OUT)
    }

    fn descriptor(descriptor: impl AsFd, awaits: EventFlags) -> Event {
        let copy = rustix::io::fcntl_dupfd_cloexec(descriptor, 0);
        Event(Kind::Descriptor(copy, awaits))
    }

    /// The process with this number, a child of this one, has ended. It stays for whoever waits for
    /// it. Data: its exit status or the signal that ended it; in the upper half `CLD_EXITED` (1),
    /// `CLD_KILLED` (2) or `CLD_DUMPED` (3), or 0 if that cannot be known, since it is another's
    /// child or was waited for.
    pub fn end_of(process: u32) -> Event {
        Event(Kind::End(process))
    }

    /// Somebody rings a [`super::Doorbell`], in this process or another. Data: the sum of what was
    /// rung since it was told last.
    pub fn doorbell() -> Event {
        Event(Kind::Doorbell)
    }

    /// The signal comes to the process, whose threads all block it. Data: its number; in the upper
    /// half the value that `sigqueue` gave.
    pub fn signal(signal: i32) -> Event {
        Event(Kind::Signal(signal))
    }

    /// Some thread of the machine waited for memory for `stall` within `window` (500 ms to 10 s).
    /// Data: `EPOLLPRI` (2).
    pub fn memory_pressure(stall: Duration, window: Duration) -> Event {
        Event(Kind::Pressure(
            "/proc/pressure/memory".into(),
            stall,
            window,
        ))
    }

    /// The same of a control group, by its file `memory.pressure`.
    pub fn group_pressure(file: impl Into<PathBuf>, stall: Duration, window: Duration) -> Event {
        Event(Kind::Pressure(file.into(), stall, window))
    }

    /// A thread touches a page of the area that is not there: in the host, or in any domain that
    /// sees the area now or later. It sleeps until the handler, which fills the page by
    /// `postern_page_fill`, has returned; a page that nobody has filled then has zeros. Data: the
    /// offset of the page. A page is told once however many sleep for it, and always by the
    /// domain's thread that waits for events; what that touches itself has zeros.
    ///
    /// One event watches an area, which its subscription keeps. A page that another process touches
    /// first, a forked child or one that has the file, has zeros; and a system call that is given a
    /// missing page fails with `EFAULT`.
    pub fn missing_pages(area: &Shared) -> Event {
        Event(Kind::Pages(area.clone()))
    }

    /// Nothing by itself: handlers and the host send it to threads that are attached.
    pub fn posted() -> Event {
        Event(Kind::Posted)
    }

    pub(super) fn open(self) -> Result<Awaited, EventError> {
        let by_read = |descriptor, taking| Awaited {
            descriptor: Some(descriptor),
            awaits: EventFlags::IN,
            taking,
            alone: false,
            is_doorbell: false,
            pages: None,
        };
        Ok(match self.0 {
            Kind::Timer(first, period) => by_read(timer(first, period)?, Taking::Count),
            Kind::Descriptor(descriptor, awaits) => Awaited {
                descriptor: Some(descriptor.map_err(failed("copy the descriptor"))?),
                awaits,
                taking: Taking::Flags,
                alone: false,
                is_doorbell: false,
                pages: None,
            },
            Kind::End(process) => {
                let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
                let pid = pid.ok_or(Errno::SRCH);
                let opened = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK));
                by_read(opened.map_err(failed("watch the process"))?, Taking::End)
            }
            Kind::Doorbell => {
                let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
                Awaited {
                    is_doorbell: true,
                    ..by_read(made.map_err(failed("make a doorbell"))?, Taking::Count)
                }
            }
            Kind::Signal(signal) => {
                let descriptor = kernel::signal_descriptor(signal);
                let descriptor = descriptor.map_err(system("wait for the signal"))?;
                if !kernel::blocks(signal) {
                    return Err(EventError::NotBlocked(signal));
                }
                by_read(descriptor, Taking::Signal)
            }
            Kind::Pressure(path, stall, window) => Awaited {
                descriptor: Some(trigger(path, stall, window)?),
                awaits: EventFlags::PRI,
                taking: Taking::Flags,
                alone: true,
                is_doorbell: false,
                pages: None,
            },
            Kind::Pages(shared) => {
                let (pages, told) = Pages::new(&shared)?;
                Awaited {
                    alone: true,
                    pages: Some(pages),
                    ..by_read(told, Taking::Each)
                }
            }
            Kind::Posted => Awaited {
                descriptor: None,
                awaits: EventFlags::empty(),
                taking: Taking::Flags,
                alone: false,
                is_doorbell: false,
                pages: None,
            },
        })
    }
}

fn failed(what: &'static str) -> impl Fn(Errno) -> EventError {
    move |error| system(what)(error.into())
}

fn timer(first: Duration, period: Duration) -> Result<OwnedFd, EventError> {
    let time = |duration: Duration| Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    };
    // Zero would be no timer at all.
    let value = Itimerspec {
        it_interval: time(period),
        it_value: time(first.max(Duration::from_nanos(1))),
    };
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let made = timerfd_create(TimerfdClockId::Monotonic, flags);
    let descriptor = made.map_err(failed("make a timer"))?;
    let set = timerfd_settime(&descriptor, TimerfdTimerFlags::empty(), &value);
    set.map_err(failed("set the timer"))?;
    Ok(descriptor)
}

fn trigger(path: PathBuf, stall: Duration, window: Duration) -> Result<OwnedFd, EventError> {
    use std::io::Write;
    let open = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path);
    let made = open.and_then(|mut file| {
        // The kernel wants it in one write, with a 0 behind it.
        let text = format!("some {} {}\0", stall.as_micros(), window.as_micros());
        file.write_all(text.as_bytes()).map(|()| file)
    });
    match made {
        Ok(file) => Ok(file.into()),
        Err(error) => Err(EventError::Pressure {
            path: path.display().to_string(),
            reason: error.to_string(),
        }),
    }
}
