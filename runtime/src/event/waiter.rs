//! The thread whose waking tells the kernel's program of an event ([`super::trusted::bpf`]).
//!
//! The program sees each event for which a thread has to be woken. One that is awake already is not
//! woken, however long it has waited for its turn: so this one has nothing to do but to sleep
//! again, and the highest priority that the process may have. Handlers are called by others: the
//! interrupted thread, or the dispatcher, which this thread wakes if nobody was signalled.
//!
//! Threads of other processes that have the same common domain are not the program's to signal. Of
//! them this thread takes care ([`super::elsewhere`]): it gives the events away before it signals.
//!
//! Where it runs on the signalled thread's processor, the kernel's scheduler may well choose others
//! behind it. So it lends that thread its priority until that has looked, for [`GRACE`] at most.
//! What is left then (the thread blocks the signal, or has a long handler) the dispatcher is told,
//! and the ends of this thread's own waits count as events: so whoever runs then is signalled, too.

use super::error::{EventError, system};
use super::trusted::bpf::Waiting;
use super::trusted::claims::Claims;
use super::trusted::kernel;
use super::trusted::slots::{By, Slots};
use super::way::NoWay;
use postern_gates::mask::SignalsBlocked;
use postern_gates::{machine, signal};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long a thread that was signalled has, until somebody else is told, too.
const GRACE: Duration = Duration::from_micros(200);
/// Nanoseconds until the first look whether there is something left, and most between two.
const FIRST: u64 = 1_000_000;
const LONGEST: u64 = 10_000_000;
/// Between two looks whether a thread is still there that is to say how it began.
const LOOK: Duration = Duration::from_millis(10);

const EVENT: u64 = 0;
const OVER: u64 = 1;

/// The thread's owner: it ends when this is dropped.
pub(super) struct Waiter(Arc<Shared>);

struct Shared {
    slots: Arc<Slots>,
    waiting: Arc<Waiting>,
    /// Of the events' set, which is nested in it, edge-triggered: so it is woken by the next event
    /// and not by those that wait.
    set: OwnedFd,
    over: AtomicBool,
    /// Tells the thread so.
    end: OwnedFd,
    /// Becomes readable when the dispatcher is to look.
    left: OwnedFd,
}

/// When to look next whether there is something left.
#[derive(Clone, Copy)]
struct Look {
    /// What is left may have been since then.
    since: u64,
    /// Nanoseconds from now.
    wait: u64,
    /// That time is an event.
    counts: bool,
}

/// Who is to look for events now; a thread if that is on this one's processor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nobody,
    /// A thread of this process, by the kernel's program.
    Program(Option<u32>),
    /// One of another process.
    Elsewhere(Option<u32>),
}

impl Waiter {
    /// Starts it.
    ///
    /// # Errors
    /// Resources of the system, or the kernel does not let its program know the thread.
    pub(super) fn begin(
        slots: &Arc<Slots>,
        waiting: Arc<Waiting>,
    ) -> Result<Result<Waiter, NoWay>, EventError> {
        let failed = || system("wait for events");
        let counter = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let shared = Arc::new(Shared {
            slots: slots.clone(),
            waiting,
            set: epoll::create(CreateFlags::CLOEXEC).map_err(|e| failed()(e.into()))?,
            over: AtomicBool::new(false),
            end: counter().map_err(|e| failed()(e.into()))?,
            left: counter().map_err(|e| failed()(e.into()))?,
        });
        let own = [
            (slots.set(), EVENT, EventFlags::empty()),
            (shared.end.as_fd(), OVER, EventFlags::IN),
        ];
        for (descriptor, data, flags) in own {
            let (data, flags) = (EventData::new_u64(data), flags | EventFlags::ET);
            epoll::add(&shared.set, descriptor, data, flags).map_err(|e| failed()(e.into()))?;
        }
        // From here on its drop ends the thread.
        let waiter = Waiter(shared.clone());
        let said = start("postern-waits", move |says| shared.run(says))?;
        Ok(match said {
            Some(Ok(())) => Ok(waiter),
            Some(Err(reason)) => Err(NoWay::Bpf(reason)),
            None => Err(NoWay::Bpf("the thread ended".into())),
        })
    }

    /// By which threads become known to it.
    pub(super) fn waiting(&self) -> &Arc<Waiting> {
        &self.0.waiting
    }

    /// Whether events wake it: while threads are attached. Those that wait already do, too.
    pub(super) fn wakes(&self, does: bool) {
        let flags = match does {
            true => EventFlags::IN | EventFlags::ET,
            false => EventFlags::ET,
        };
        let data = EventData::new_u64(EVENT);
        // Only of a descriptor that is not there.
        let _ = epoll::modify(&self.0.set, self.0.slots.set(), data, flags);
    }

    /// Becomes readable, edge by edge, when there is something for the dispatcher.
    pub(super) fn left(&self) -> BorrowedFd<'_> {
        self.0.left.as_fd()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.over.store(true, SeqCst);
        // The counter is the parent's, too, where a forked child drops this: its thread looks
        // whether it is over, and goes on.
        let _ = rustix::io::write(&self.0.end, &1u64.to_ne_bytes());
    }
}

/// Starts a thread that takes no signals but ours, and waits until it has said something; `None`:
/// it ended before.
pub(super) fn start<T: Clone + Send + Sync + 'static>(
    name: &str,
    run: impl FnOnce(Box<dyn FnOnce(T)>) + Send + 'static,
) -> Result<Option<T>, EventError> {
    // No channel: it has words for each thread, of which copies of a library have few.
    let said = Arc::new(OnceLock::new());
    let (says, waits) = (said.clone(), std::thread::current());
    let thread = std::thread::Builder::new().name(name.into());
    let _signals = SignalsBlocked::new();
    let spawned = thread.spawn(move || {
        signal::take_only_ours();
        run(Box::new(move |what| {
            let _ = says.set(what);
            waits.unpark();
        }));
    });
    let thread = spawned.map_err(system("start a thread that waits for events"))?;
    while said.get().is_none() && !thread.is_finished() {
        std::thread::park_timeout(LOOK);
    }
    Ok(said.get().cloned())
}

impl Shared {
    fn run(&self, says: Box<dyn FnOnce(Result<(), String>)>) {
        // Without one it waits for its turn like any other, and events with it.
        kernel::run_before_all();
        match self.waiting.begin() {
            Ok(known) => {
                says(Ok(()));
                self.serve();
                drop(known);
            }
            Err(error) => says(Err(error.to_string())),
        }
    }

    fn serve(&self) {
        let mut look: Option<Look> = None;
        let mut claims = Claims::new(&self.slots, By::Dispatcher, None);
        let mut signalled = self.waiting.signalled();
        loop {
            let happened = self.sleep(look);
            if self.over.load(SeqCst) {
                return;
            }
            let now = self.waiting.signalled();
            if happened {
                let time = machine::monotonic();
                let since = look.filter(|_| self.slots.is_left()).map(|look| look.since);
                // One that is signalled again and again may block the signal.
                let is_overdue = since.is_some_and(|since| time >= since + LONGEST);
                // Who looks from here on finds it.
                self.slots.are_left();
                let told = match now == signalled {
                    false => Told::Program(self.waiting.last_here()),
                    true => self.tell_elsewhere(&mut claims),
                };
                let here = match told {
                    Told::Program(Some(thread)) => {
                        self.slots.lend(thread, GRACE);
                        true
                    }
                    Told::Elsewhere(Some(thread)) => {
                        self.slots.lend_elsewhere(thread, GRACE);
                        true
                    }
                    _ => false,
                };
                look = self.slots.is_left().then(|| {
                    // A thread that runs on another processor goes on there.
                    let tells = told == Told::Nobody || here || is_overdue;
                    if tells {
                        self.tell();
                    }
                    Look {
                        since: since.filter(|_| !tells).unwrap_or(time),
                        wait: FIRST,
                        counts: here,
                    }
                });
            } else if let Some(was) = look {
                look = self.slots.is_left().then(|| {
                    self.tell();
                    Look {
                        wait: (2 * was.wait).min(LONGEST),
                        counts: true,
                        ..was
                    }
                });
            }
            signalled = now;
        }
    }

    /// If a thread of another process was current that is attached there: gives it what happened.
    fn tell_elsewhere(&self, claims: &mut Claims) -> Told {
        let (numbers, here) = self.waiting.current();
        let elsewhere = self.slots.elsewhere();
        let found = elsewhere.and_then(|elsewhere| Some((elsewhere, elsewhere.find(numbers)?)));
        match found {
            Some((elsewhere, found)) if claims.relay() && elsewhere.interrupt(found) => {
                Told::Elsewhere(here.then_some(found.thread))
            }
            _ => Told::Nobody,
        }
    }

    /// The dispatcher is to look.
    fn tell(&self) {
        let _ = rustix::io::write(&self.left, &1u64.to_ne_bytes());
    }

    /// Until there is an event, or the time for a look. False: there is none.
    fn sleep(&self, look: Option<Look>) -> bool {
        let nothing = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut found = [nothing; 2];
        let end = |look: Look| machine::monotonic() + look.wait;
        let silent = look.filter(|look| !look.counts);
        self.waiting.wait_until(silent.map_or(u64::MAX, end));
        let longest = look.map(|look| Timespec {
            tv_sec: 0,
            tv_nsec: look.wait as i64,
        });
        let many = epoll::wait(&self.set, &mut found, longest.as_ref()).unwrap_or(0);
        self.waiting.wait_until(0);
        found[..many].iter().any(|event| {
            let data = event.data;
            data.u64() == EVENT
        })
    }
}
