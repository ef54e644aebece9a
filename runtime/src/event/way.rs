//! How an event gets to its handler.

use postern_gates::upcall::AttachError;
use thiserror::Error;

/// Who calls a handler. The better ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The thread that runs when the event happens, if it is attached: it is interrupted, and
    /// nobody is scheduled in between. If another one runs, a thread as in the next two.
    Current,
    /// A thread that waits for events, with a real-time priority: it runs before all threads that
    /// have none.
    RealTime,
    /// A thread that waits for events, like any other.
    Plain,
}

/// Which of them a domain's events shall go: [`crate::DomainBuilder::ways`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    pub(crate) best: Way,
    pub(crate) named: bool,
    pub(crate) priority: i32,
}

impl Ways {
    /// The best that the kernel allows this process: the default.
    pub const BEST: Ways = Ways {
        best: Way::Current,
        named: false,
        priority: 50,
    };

    /// This one, or [`crate::Domain::on`] fails.
    pub const fn only(way: Way) -> Ways {
        Ways {
            best: way,
            named: true,
            ..Ways::BEST
        }
    }

    /// This one, or the best of those behind it.
    pub const fn at_most(way: Way) -> Ways {
        Ways {
            best: way,
            ..Ways::BEST
        }
    }

    /// The real-time priority of the thread that calls handlers, 1 to 99. Default: 50. Whom events
    /// interrupt does not depend on it.
    #[must_use]
    pub const fn priority(mut self, priority: i32) -> Ways {
        self.priority = priority;
        self
    }

    /// The priority, if the thread that waits is to have it.
    pub(super) fn real_time(self) -> Option<i32> {
        (self.best != Way::Plain).then_some(self.priority)
    }
}

impl Default for Ways {
    fn default() -> Ways {
        Ways::BEST
    }
}

/// Why a way cannot be gone.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoWay {
    /// For [`Way::Current`].
    #[error(
        "bpf(2) is refused ({0}), so no event interrupts the current thread: that needs CAP_BPF and CAP_PERFMON"
    )]
    Bpf(String),
    /// For [`Way::Current`].
    #[error("{0}")]
    Signal(AttachError),
    /// For [`Way::Current`].
    #[error("256 domains of this process have it, which is as many as can")]
    TooMany,
    /// For [`Way::RealTime`], and the thread behind [`Way::Current`].
    #[error(
        "the real-time priority {priority} is refused ({reason}): that needs CAP_SYS_NICE, or a limit (`ulimit -r`) that is as high"
    )]
    RealTime {
        /// Which one.
        priority: i32,
        /// The kernel's reason.
        reason: String,
    },
}

/// The way that a domain's events go, and why it is no better one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WayInUse {
    /// The way.
    pub way: Way,
    /// Who calls the handler when no attached thread runs: [`Way::RealTime`] or [`Way::Plain`].
    pub otherwise: Way,
    /// Why better ones were not possible, of those that were wanted.
    pub why: Vec<NoWay>,
}

impl std::fmt::Display for WayInUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |way| match way {
            Way::Current => "the current thread",
            Way::RealTime => "a real-time thread",
            Way::Plain => "a plain thread",
        };
        f.write_str(name(self.way))?;
        if self.otherwise != self.way {
            write!(f, ", or {}", name(self.otherwise))?;
        }
        for reason in &self.why {
            write!(f, "; {reason}")?;
        }
        Ok(())
    }
}
