//! Events that call handlers of a domain: timers, descriptors, ends of processes, doorbells,
//! signals, short memory, missing pages. Every one is a descriptor in one epoll set of the
//! domain's, so there is one mechanism for all of them ([`trusted::slots`]).
//!
//! Who calls the handler is the [`Way`]: the thread that runs just then, if it is attached
//! ([`client`]) and the kernel lets a program of ours interrupt it ([`trusted::bpf`]), else the
//! domain's [`dispatcher`].

mod client;
mod dispatcher;
pub(crate) mod elsewhere;
mod error;
mod kind;
mod pages;
pub(crate) mod service;
pub(crate) mod state;
#[expect(unsafe_code, reason = "its name says so")]
mod trusted;
mod waiter;
pub(crate) mod way;

pub use client::{Client, ClientBuilder};
pub use error::EventError;
pub use kind::Event;
pub use way::{NoWay, Way, WayInUse, Ways};

use crate::call::{Func, FuncType};
use crate::domain::Domain;
use crate::signature;
use crate::upcall::LONGEST;
use dispatcher::{Dispatcher, Handler};
use error::system;
use pages::Pages;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use trusted::slots::Count;

impl Domain {
    /// Has the export `name`, `void name(uint32_t event, uint64_t data)`, called for an event,
    /// until the result is dropped. The first argument is its [number](Subscription::number).
    ///
    /// # Errors
    /// [`EventError`]
    pub fn on(&self, event: Event, name: &str) -> Result<Subscription, EventError> {
        let export = self.export(name)?;
        let wanted = <fn(u32, u64) as FuncType>::signature();
        signature::alleged(name, export.signature)?;
        signature::agrees(name, export.signature, &wanted)?;
        let dispatcher = Dispatcher::of(&self.0.events)?;
        let mut awaited = event.open()?;
        let pages = awaited.pages.take();
        let limited = self.0.limits.deadline.is_none();
        let limit = if limited {
            LONGEST.as_nanos() as u64
        } else {
            0
        };
        let entry = self.0.own_entry(export.offset, &wanted, limit, 0);
        let handler = Handler {
            function: Func::held(self, entry, Arc::new(())),
            limited,
            pager: pages.as_ref().map(|pages| pages.pager().clone()),
        };
        let (awaits, taking) = (awaited.awaits, awaited.taking);
        let token = dispatcher.add(handler, |slots| {
            slots.reserve(awaited.descriptor, awaits, taking, (export.offset, 0))
        });
        let mut subscription = Subscription {
            token: token.ok_or(EventError::TooMany)?,
            domain: self.clone(),
            dispatcher,
            is_doorbell: awaited.is_doorbell,
            pages,
        };
        let dispatcher = &subscription.dispatcher;
        let alone = awaited.alone.then(|| dispatcher.set());
        match dispatcher.slots().begin(subscription.token, alone) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => return Err(EventError::AlwaysReady),
            Err(error) => return Err(system("wait for the event")(error)),
        }
        if let Some(pages) = &mut subscription.pages {
            let thread = (dispatcher.thread(), self.0.events.ways.real_time());
            pages.begin(self, dispatcher.slots(), subscription.token, thread)?;
        }
        Ok(subscription)
    }

    /// The way that the domain's events go, if there are events or clients.
    ///
    /// # Errors
    /// There can be none.
    pub fn way(&self) -> Result<WayInUse, EventError> {
        Ok(Dispatcher::of(&self.0.events)?.way().clone())
    }
}

/// An event is waited for until this is dropped. It keeps the domain.
#[must_use = "the event is waited for as long as this is there"]
pub struct Subscription {
    token: u64,
    domain: Domain,
    dispatcher: Arc<Dispatcher>,
    is_doorbell: bool,
    /// Dropped when the event is not waited for any more.
    pages: Option<Pages>,
}

impl Subscription {
    /// Of several events that wait, those of the highest priority are handled first. Default: 0.
    #[must_use = "the event is waited for as long as this is there"]
    pub fn priority(self, priority: u8) -> Subscription {
        self.set_priority(priority);
        self
    }

    /// The same, later.
    pub fn set_priority(&self, priority: u8) {
        self.dispatcher.slots().set_priority(self.token, priority);
    }

    /// The handler's first argument, below 64; in a common domain below 4096. No other event of the
    /// domain has it meanwhile, in whatever process.
    pub fn number(&self) -> u32 {
        self.dispatcher.slots().first() + self.token as u32
    }

    /// Whose event it is.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// How the event gets to its handler.
    pub fn way(&self) -> &WayInUse {
        self.dispatcher.way()
    }

    /// What was done so far.
    pub fn counters(&self) -> EventCounters {
        let of = |what| self.dispatcher.slots().counted(self.token, what);
        EventCounters {
            by_current: of(Count::ByCurrent),
            by_dispatcher: of(Count::ByDispatcher),
            coalesced: of(Count::Coalesced),
            dropped: of(Count::Dropped),
            skipped: of(Count::Skipped),
            faults: of(Count::Faults),
        }
    }

    /// What rings it, if it is [`Event::doorbell`].
    ///
    /// # Errors
    /// It is none, or there are no more descriptors.
    pub fn doorbell(&self) -> Result<Doorbell, EventError> {
        if !self.is_doorbell {
            return Err(EventError::NoDoorbell);
        }
        let copy = self.dispatcher.slots().duplicate(self.token);
        copy.map(Doorbell).map_err(system("copy the doorbell"))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.dispatcher.remove(self.token);
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("domain", &self.domain)
            .field("number", &self.number())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

/// What has become of an event so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCounters {
    /// Handlers that returned in a thread that they had interrupted.
    pub by_current: u64,
    /// Handlers that returned in the thread that waits for events.
    pub by_dispatcher: u64,
    /// What happened while an earlier one waited, and was told with it: of timers and doorbells, of
    /// which the data says how many.
    pub coalesced: u64,
    /// Sent to a thread with no place for it; or a page of which nobody was told: it has zeros, for
    /// who was to have it filled has touched it.
    pub dropped: u64,
    /// Came when the domain let nobody in.
    pub skipped: u64,
    /// Handlers that were ended.
    pub faults: u64,
}

/// Rings a domain's doorbell ([`Event::doorbell`]), in this process or another: it is an eventfd,
/// which can be sent over a Unix socket or inherited. Whoever has it can also take what others
/// rang.
#[derive(Debug)]
pub struct Doorbell(OwnedFd);

impl Doorbell {
    /// Adds `n`, which is not 0, to what the handler is told.
    ///
    /// # Errors
    /// So much was rung that it counts no more.
    pub fn ring(&self, n: u64) -> std::io::Result<()> {
        rustix::io::write(&self.0, &n.to_ne_bytes())?;
        Ok(())
    }
}

/// One that was received.
impl From<OwnedFd> for Doorbell {
    fn from(descriptor: OwnedFd) -> Doorbell {
        Doorbell(descriptor)
    }
}

impl From<Doorbell> for OwnedFd {
    fn from(doorbell: Doorbell) -> OwnedFd {
        doorbell.0
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
