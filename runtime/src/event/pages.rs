//! Pages that are missing, of an area that is watched.
//!
//! Whoever touches one sleeps in the kernel. A thread of the subscription's own, the *teller*,
//! reads who does, notes it, and rings once for each page: the event's descriptor counts pages of
//! which the handler is to be told. Behind the handler, however it ended, all who sleep for the
//! page go on.
//!
//! **Nobody sleeps for himself.** What the dispatcher touches, while it is the one who would have
//! the page filled, has zeros at once; and so has what a thread touches for whom that dispatcher
//! sleeps. That is why the teller is a thread, and touches nothing.

use super::error::{EventError, system};
use super::trusted::kernel;
use super::trusted::slots::{Count, Slots};
use crate::domain::{self, Domain, let_go};
use crate::fork;
use crate::share::Shared;
use crate::share::watch::{Touch, Unwatched, Watch};
use postern_gates::mask::SignalsBlocked;
use postern_gates::signal;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Who sleeps for a page which a dispatcher is to have filled: the kernel's numbers of both
/// threads. No circle is ever in it.
static WAITS: Mutex<BTreeMap<u32, u32>> = Mutex::new(BTreeMap::new());

/// Whether `thread` may sleep for a page of this dispatcher's; then it is noted.
fn may_wait(thread: u32, dispatcher: u32) -> bool {
    let mut waits = fork::lock(&WAITS);
    let mut last = dispatcher;
    while last != thread {
        match waits.get(&last) {
            Some(&next) => last = next,
            None => {
                waits.insert(thread, dispatcher);
                return true;
            }
        }
    }
    false
}

/// The thread sleeps for nobody any more.
pub(super) fn goes_on(thread: u32) {
    fork::lock(&WAITS).remove(&thread);
}

/// What teller and dispatcher know of one area.
pub(super) struct Pager {
    watch: Arc<Watch>,
    /// A copy of the event's descriptor.
    told: OwnedFd,
    /// Tells the teller that it is over.
    end: OwnedFd,
    asleep: Mutex<Asleep>,
}

#[derive(Default)]
struct Asleep {
    /// Pages, by their offsets, of which the handler is to be told.
    untold: VecDeque<u32>,
    /// Who sleeps for these, and for that of which it is being told.
    pages: BTreeMap<u32, Vec<Touch>>,
    over: bool,
}

impl Pager {
    /// The next page of which the handler is to be told, once the event's descriptor has counted
    /// one.
    pub(super) fn next(&self) -> Option<u32> {
        fork::lock(&self.asleep).untold.pop_front()
    }

    /// The handler has been called for the page: who sleeps for it goes on.
    pub(super) fn settle(&self, page: u32) {
        let touches = fork::lock(&self.asleep).pages.remove(&page);
        for touch in touches.into_iter().flatten() {
            self.wake(&touch);
        }
    }

    fn wake(&self, touch: &Touch) {
        // First: awake, it may sleep for another page.
        goes_on(touch.thread);
        self.watch.settle(touch.address);
    }

    /// Somebody sleeps; `refuse` counts who may not.
    fn note(&self, touch: Touch, dispatcher: u32, refuse: impl Fn()) {
        if !may_wait(touch.thread, dispatcher) {
            refuse();
            return self.watch.settle(touch.address);
        }
        let page = touch.address as u32;
        let mut asleep = fork::lock(&self.asleep);
        if asleep.over {
            drop(asleep);
            return self.wake(&touch);
        }
        let same = asleep.pages.entry(page).or_default();
        let is_first = same.is_empty();
        // One that was interrupted in its sleep has touched it again.
        if !same.contains(&touch) {
            same.push(touch);
        }
        if is_first {
            asleep.untold.push_back(page);
            drop(asleep);
            let _ = rustix::io::write(&self.told, &1u64.to_ne_bytes());
        }
    }

    /// What the teller does.
    fn tell(&self, dispatcher: u32, refuse: impl Fn()) {
        loop {
            let mut waits = [
                PollFd::from_borrowed_fd(self.watch.descriptor(), PollFlags::IN),
                PollFd::new(&self.end, PollFlags::IN),
            ];
            let _ = poll(&mut waits, None);
            if !waits[1].revents().is_empty() {
                return;
            }
            while let Some(touch) = self.watch.next() {
                self.note(touch, dispatcher, &refuse);
            }
        }
    }
}

/// An area is watched until this is dropped.
pub(super) struct Pages {
    pager: Arc<Pager>,
    teller: Option<JoinHandle<()>>,
    process: u64,
}

impl Pages {
    /// With the descriptor that is to be waited for.
    pub(super) fn new(shared: &Shared) -> Result<(Pages, OwnedFd), EventError> {
        let watch = shared.0.watch().map_err(|why| match why {
            Unwatched::Unavailable(error) => EventError::Userfault(error.to_string()),
            Unwatched::Already => EventError::Watched(shared.name().to_owned()),
            Unwatched::Area(error) => unwatchable(shared.name(), error),
        })?;
        let failed = || system("watch an area");
        let counts = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        let event = eventfd(0, counts).map_err(|e| failed()(e.into()))?;
        let pager = Pager {
            watch,
            told: event.try_clone().map_err(failed())?,
            end: eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| failed()(e.into()))?,
            asleep: Mutex::default(),
        };
        let pages = Pages {
            pager: Arc::new(pager),
            teller: None,
            process: fork::process(),
        };
        Ok((pages, event))
    }

    pub(super) fn pager(&self) -> &Arc<Pager> {
        &self.pager
    }

    /// Tells what is touched from now on, in the windows of all domains, too. `dispatcher` is its
    /// thread, with its priority if it has one, `token` that of the event.
    pub(super) fn begin(
        &mut self,
        domain: &Domain,
        slots: &Arc<Slots>,
        token: u64,
        (dispatcher, priority): (u32, Option<i32>),
    ) -> Result<(), EventError> {
        let (pager, slots) = (self.pager.clone(), slots.clone());
        {
            let _signals = SignalsBlocked::new();
            let thread = std::thread::Builder::new().name("postern-pages".into());
            let spawned = thread.spawn(move || {
                signal::take_only_ours();
                if let Some(priority) = priority {
                    // Without, it is as fast as the machine lets it be.
                    let _ = kernel::run_first(priority);
                }
                pager.tell(dispatcher, || slots.count(token, Count::Dropped, 1));
            });
            let started = system("start the thread that reads which pages are missing");
            self.teller = Some(spawned.map_err(started)?);
        }
        let watch = &self.pager.watch;
        {
            let mut watches = fork::lock(&domain.0.events.watches);
            watches.retain(|watch| watch.strong_count() != 0);
            watches.push(Arc::downgrade(watch));
        }
        // One at a time, so that none has its end kept up for longer. Who comes meanwhile knows
        // that the area is watched.
        let all = domain::domains().len();
        let live = |number: usize| domain::domains().get(number)?.upgrade();
        let mut watched = Ok(());
        for inner in (0..all).filter_map(live) {
            watched = watched.and(inner.instance.watch_areas());
            let_go(inner);
        }
        watched.map_err(|error| unwatchable(watch.name(), error))
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // What a forked child has of it is the parent's.
        if self.process != fork::process() {
            return;
        }
        let asleep = {
            let mut asleep = fork::lock(&self.pager.asleep);
            asleep.over = true;
            std::mem::take(&mut asleep.pages)
        };
        self.pager.watch.end();
        for touch in asleep.into_values().flatten() {
            goes_on(touch.thread);
        }
        let _ = rustix::io::write(&self.pager.end, &1u64.to_ne_bytes());
        if let Some(teller) = self.teller.take() {
            // It waits for nobody.
            let _ = teller.join();
        }
    }
}

fn unwatchable(area: &str, reason: impl ToString) -> EventError {
    EventError::Unwatchable {
        area: area.to_owned(),
        reason: reason.to_string(),
    }
}
