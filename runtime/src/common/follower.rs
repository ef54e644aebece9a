//! The threads by which a process learns what others do with a domain that they have in common: one
//! sleeps until somebody tells something, one until a process ends.
//!
//! They keep neither the domain nor its seat; so they end soon after the domain, and have nothing
//! that anybody waits for.

use super::header::{Member, SEATS};
use super::memory::Memory;
use postern_gates::machine;
use postern_gates::mask::SignalsBlocked;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// A look is taken as often, though nothing was told: at seats whose processes cannot be watched,
/// or have gone without an end, by `execve`.
const LONGEST: Duration = Duration::from_secs(1);

/// What the threads ask; each returns false when the domain is gone.
pub(crate) struct Looks<L, D> {
    /// Something was told.
    pub(crate) told: L,
    /// The process with this seat has ended.
    pub(crate) ended: D,
}

/// The threads' owner: they end when this is dropped.
pub(crate) struct Watch(Arc<Watched>);

struct Watched {
    memory: Arc<Memory>,
    /// The seat of this process, which is not watched.
    own: u32,
    /// Where the numbers of processes are what this process calls them.
    namespace: u32,
    over: AtomicBool,
    /// Wakes the thread that waits for ends.
    changed: OwnedFd,
}

impl Watch {
    /// Has the looks taken, for as long as they return true.
    pub(crate) fn begin<L, D>(
        memory: &Arc<Memory>,
        own: u32,
        looks: Looks<L, D>,
    ) -> std::io::Result<Watch>
    where
        L: Fn() -> bool + Send + 'static,
        D: Fn(Member) -> bool + Send + 'static,
    {
        let watch = Watch(Arc::new(Watched {
            memory: Arc::clone(memory),
            own,
            namespace: machine::process_namespace(),
            over: AtomicBool::new(false),
            changed: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        }));
        let Looks { told, ended } = looks;
        let (one, other) = (Arc::clone(&watch.0), Arc::clone(&watch.0));
        let named = |name: &str| std::thread::Builder::new().name(name.into());
        // They have them blocked from their first moment. If there is no second thread, the drop
        // ends the first.
        let _signals = SignalsBlocked::new();
        named("postern-common").spawn(move || one.follow(told))?;
        named("postern-ends").spawn(move || other.await_ends(ended))?;
        Ok(watch)
    }
}

impl Watched {
    fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    /// Something is other than it was, about the seats perhaps.
    fn poke(&self) {
        let _ = rustix::io::write(&self.changed, &1u64.to_ne_bytes());
    }

    fn follow(&self, told: impl Fn() -> bool) {
        let header = &self.memory.header;
        loop {
            let seen = header.events();
            if self.is_over() || !told() {
                return;
            }
            self.poke();
            header.await_event(seen, LONGEST);
        }
    }

    /// Calls `ended` for every process that ends while it has a seat.
    fn await_ends(&self, ended: impl Fn(Member) -> bool) {
        let mut watched = HashMap::new();
        while !self.is_over() {
            for member in self.watch_all(&mut watched) {
                if !ended(member) {
                    return;
                }
            }
            let known: Vec<Member> = watched.keys().copied().collect();
            let descriptors = known.iter().filter_map(|key| watched[key].as_ref());
            let descriptors = std::iter::once(&self.changed).chain(descriptors);
            let mut polled: Vec<PollFd<'_>> = descriptors
                .map(|descriptor| PollFd::new(descriptor, PollFlags::IN))
                .collect();
            let longest = Timespec {
                tv_sec: LONGEST.as_secs().cast_signed(),
                tv_nsec: 0,
            };
            if poll(&mut polled, Some(&longest)).is_err() {
                continue;
            }
            let ready: Vec<bool> = polled
                .iter()
                .map(|descriptor| !descriptor.revents().is_empty())
                .collect();
            if ready[0] {
                let mut count = [0; 8];
                let _ = rustix::io::read(&self.changed, &mut count);
            }
            let open = known.iter().filter(|key| watched[*key].is_some());
            let gone: Vec<Member> = open
                .zip(&ready[1..])
                .filter_map(|(key, ready)| ready.then_some(*key))
                .collect();
            for key in gone {
                // Told once: a child of the process may keep the seat.
                watched.insert(key, None);
                if !ended(key) {
                    return;
                }
            }
        }
    }

    /// Watches the processes that have seats now, and no others. One whose end was told has no
    /// descriptor. Returns those that were found gone. Of one that
    /// cannot be watched, for its number is another namespace's or there may be no more
    /// descriptors, only the lock says whether it is there.
    fn watch_all(&self, watched: &mut HashMap<Member, Option<OwnedFd>>) -> Vec<Member> {
        let header = &self.memory.header;
        let seats = (0..SEATS).filter(|&seat| seat != self.own);
        let seats =
            seats.filter(|&seat| self.namespace != 0 && header.namespace(seat) == self.namespace);
        let now: Vec<Member> = seats
            .map(|seat| Member {
                seat,
                pid: header.pid(seat),
            })
            .collect();
        watched.retain(|key, _| now.contains(key));
        let mut gone = Vec::new();
        for key in now {
            if watched.contains_key(&key) {
                continue;
            }
            // A number that none can have is forged.
            let Some(pid) = i32::try_from(key.pid).ok().and_then(Pid::from_raw) else {
                continue;
            };
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(descriptor) => drop(watched.insert(key, Some(descriptor))),
                Err(Errno::SRCH) => {
                    watched.insert(key, None);
                    gone.push(key);
                }
                Err(_) => {}
            }
        }
        gone
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.over.store(true, SeqCst);
        self.0.poke();
        self.0.memory.header.tell();
    }
}
