//! Threads that are attached for all events of a domain: its clients.

use super::dispatcher::Dispatcher;
use super::elsewhere::AttachedElsewhere;
use super::error::{EventError, system};
use super::service;
use super::trusted::bpf::{AttachedThread, CLIENTS};
use super::trusted::claims::Claims;
use super::trusted::slots::{By, ClientSlot};
use crate::domain::Domain;
use crate::upcall::{Attachment, Granted, LONGEST, UpcallSender};
use postern_gates::machine;
use postern_gates::upcall::{Handlers, Mailbox, Posted, UpcallCounters};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// How a thread is to be attached: [`Domain::client`].
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    domain: Domain,
    services: HashSet<usize>,
    longest: Duration,
    niceness: bool,
}

impl Domain {
    /// Attaches the calling thread for all events of the domain, until the result is dropped: their
    /// handlers interrupt it wherever it is, if the domain's [way](Domain::way) is
    /// [`super::Way::Current`]. What others send it does in any case.
    ///
    /// # Errors
    /// [`EventError`]
    pub fn attach(&self) -> Result<Client, EventError> {
        self.client().attach()
    }

    /// The same, with more to say.
    pub fn client(&self) -> ClientBuilder {
        let imports = &self.0.image.tables.imports;
        let own = |(number, import): (usize, &postern_image::ImportOwned)| {
            service::is_one(&import.name).then_some(number)
        };
        ClientBuilder {
            domain: self.clone(),
            services: imports.iter().enumerate().filter_map(own).collect(),
            longest: self.0.limits.deadline.unwrap_or(LONGEST),
            niceness: false,
        }
    }
}

impl ClientBuilder {
    /// As [`crate::Upcall::allow`].
    ///
    /// # Safety
    /// As there.
    #[expect(unsafe_code, reason = "the caller's promise")]
    #[must_use]
    pub unsafe fn allow(mut self, service: &str) -> ClientBuilder {
        let imports = &self.domain.0.image.tables.imports;
        let number = imports.iter().position(|import| &*import.name == service);
        self.services.extend(number);
        self
    }

    /// As [`crate::Upcall::longest`].
    #[must_use]
    pub fn longest(mut self, longest: Duration) -> ClientBuilder {
        self.longest = longest;
        self
    }

    /// Whether handlers may change the thread's nice value, as far as the kernel lets this process.
    /// Default: no.
    #[must_use]
    pub fn niceness(mut self, may: bool) -> ClientBuilder {
        self.niceness = may;
        self
    }

    /// Attaches the calling thread.
    ///
    /// # Errors
    /// [`EventError`]
    pub fn attach(&self) -> Result<Client, EventError> {
        let dispatcher = Dispatcher::of(&self.domain.0.events)?;
        let slots = dispatcher.slots().clone();
        let free = |client: &ClientSlot| {
            let taken = client.used.compare_exchange(false, true, SeqCst, SeqCst);
            taken.is_ok()
        };
        let number = (0..CLIENTS).find(|&number| free(&slots.clients[number]));
        let place = Place {
            number: number.ok_or(EventError::TooManyClients)?,
            dispatcher,
        };
        let client = place.slot();
        let mailbox = client.mailbox.get_or_init(|| Arc::new(Mailbox::default()));
        let before = mailbox.counters();
        let waiting = place.dispatcher.waiting();
        let signals = waiting.map(|waiting| waiting.signals(place.number));
        let claims = Claims::new(&slots, By::Current, signals);
        let handlers = Handlers::Of(Box::new(claims), mailbox.clone());
        let granted = Granted {
            services: &self.services,
            longest: self.longest,
        };
        let attachment = Attachment::new(&self.domain, handlers, granted)?;
        slots.await_waking(place.number, Duration::ZERO);
        client.niceness.store(self.niceness, SeqCst);
        client.tid.store(machine::thread_id(), SeqCst);
        let known = waiting.map(|waiting| waiting.attach(place.number));
        let known = known.transpose().map_err(system("attach the thread"))?;
        place.dispatcher.watch(attachment.sender());
        let elsewhere = slots.elsewhere().and_then(|elsewhere| {
            let numbers = known.as_ref().map_or(0, AttachedThread::numbers);
            AttachedElsewhere::begin(elsewhere, place.number, numbers)
        });
        Ok(Client {
            elsewhere,
            known,
            attachment,
            place,
            before,
        })
    }
}

/// One of the places of clients, while it is taken.
struct Place {
    number: usize,
    dispatcher: Arc<Dispatcher>,
}

impl Place {
    fn slot(&self) -> &ClientSlot {
        &self.dispatcher.slots().clients[self.number]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.slot().tid.store(0, SeqCst);
        self.slot().used.store(false, SeqCst);
    }
}

/// A thread is attached for all events of a domain until this is dropped. It stays on its thread.
/// A thread that is to call `execve` drops it before.
pub struct Client {
    // In this order they are dropped: nobody interrupts for events any more, nothing interrupts,
    // another may have the number.
    elsewhere: Option<AttachedElsewhere>,
    known: Option<AttachedThread>,
    attachment: Attachment,
    place: Place,
    /// What former clients with this number have in the counters.
    before: UpcallCounters,
}

impl Client {
    /// By which handlers name it: below 64; in a common domain below 4096, and no other process's.
    pub fn number(&self) -> u32 {
        self.place.dispatcher.slots().first() + self.place.number as u32
    }

    /// Whether events interrupt it while it runs.
    pub fn is_interrupted(&self) -> bool {
        self.known.is_some()
    }

    /// Sleeps until a handler wakes this client, or for so long. How often it was woken since this
    /// was asked last; 0: it was not.
    pub fn wait(&self, longest: Duration) -> u32 {
        let slots = self.place.dispatcher.slots();
        let end = Instant::now().checked_add(longest);
        loop {
            let left = end.map_or(longest, |end| end.saturating_duration_since(Instant::now()));
            let n = slots.await_waking(self.place.number, left);
            if n != 0 || left.is_zero() {
                return n;
            }
        }
    }

    /// Has the handler of the event with this number called on the attached thread.
    pub fn send(&self, event: u32, data: u64) -> Option<Posted> {
        service::send(self.place.dispatcher.slots(), self.number(), event, data)
    }

    /// What was done on this thread so far.
    pub fn counters(&self) -> UpcallCounters {
        self.attachment.counters().since(self.before)
    }

    fn sender(&self) -> UpcallSender {
        self.attachment.sender()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("number", &self.number())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // What its last handler ended with is told here, if nobody has yet.
        self.elsewhere = None;
        self.known = None;
        self.place.dispatcher.unwatch(&self.sender());
        drop(self.attachment.take_fault());
    }
}
