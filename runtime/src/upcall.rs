//! Upcalls: a domain's handler interrupts a thread at any instruction, and the thread goes on as it
//! was. `postern-gates` has the gate; here are its faces.

pub(crate) mod attachments;

use crate::call::{self, CallError, FuncType};
use crate::domain::Domain;
use crate::error::SymbolError;
use crate::own_threads::SPAWN;
use crate::sandbox_threads;
use crate::signature;
use postern_gates::outcome::{NO_SANDBOX_THREAD, NOT_IN_UPCALLS, TOO_DEEP_TO_WAIT};
use postern_gates::upcall::{AttachError, Attached, Handlers, Mailbox, Posted, UpcallCounters};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Longest time of a handler where the domain has no deadline.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// A handler of a domain, for threads to attach to: `void handler(uint32_t event, uint64_t data)`.
/// See [`Domain::upcall`].
#[derive(Clone, Debug)]
pub struct Upcall {
    domain: Domain,
    offset: u32,
    services: HashSet<usize>,
    longest: Duration,
}

impl Domain {
    /// The export `name` as a handler that may interrupt threads: those that
    /// [attach](Upcall::attach).
    ///
    /// # Errors
    /// No such export, or its types are not those of a handler, `void(uint32_t, uint64_t)`.
    pub fn upcall(&self, name: &str) -> Result<Upcall, SymbolError> {
        let export = self.export(name)?;
        let wanted = <fn(u32, u64) as FuncType>::signature();
        signature::alleged(name, export.signature)?;
        signature::agrees(name, export.signature, &wanted)?;
        Ok(Upcall {
            domain: self.clone(),
            offset: export.offset,
            services: HashSet::new(),
            longest: self.0.limits.deadline.unwrap_or(LONGEST),
        })
    }
}

impl Upcall {
    /// Lets handlers call a service of the domain's. Without this, they may call none: an upcall
    /// that does is ended. (Names that the image does not import are let be.)
    ///
    /// # Safety
    /// The service does nothing but what a signal handler may do: it takes no locks, allocates and
    /// frees nothing, and does not end its call with a message, whatever the extension passes. It
    /// may have interrupted the host at any instruction.
    #[expect(unsafe_code, reason = "the caller's promise")]
    #[must_use]
    pub unsafe fn allow(mut self, service: &str) -> Upcall {
        let imports = &self.domain.0.image.tables.imports;
        let number = imports.iter().position(|import| &*import.name == service);
        self.services.extend(number);
        self
    }

    /// Longest time of a handler; it is ended after once to twice that. Default: the domain's
    /// deadline, or 1 s. It is 50 µs at least.
    #[must_use]
    pub fn longest(mut self, longest: Duration) -> Upcall {
        self.longest = longest;
        self
    }

    /// Attaches the calling thread: from now on it is interrupted for events, wherever it is. The
    /// handler has a data stack of its own in the domain, with thread-local variables of its own.
    ///
    /// # Errors
    /// [`AttachError`]
    pub fn attach(&self) -> Result<Attachment, AttachError> {
        let granted = Granted {
            services: &self.services,
            longest: self.longest,
        };
        Attachment::new(&self.domain, Handlers::One(self.offset), granted)
    }
}

/// What the handlers of an attachment may do.
pub(crate) struct Granted<'a> {
    /// Numbers of services that they may call.
    pub(crate) services: &'a HashSet<usize>,
    /// [`Upcall::longest`]
    pub(crate) longest: Duration,
}

/// A thread is attached to a handler until this is dropped. It stays on its thread.
pub struct Attachment {
    /// `None` only while dropping.
    attached: Option<Attached>,
    sender: UpcallSender,
}

impl Attachment {
    /// Attaches the calling thread.
    pub(crate) fn new(
        domain: &Domain,
        handlers: Handlers,
        granted: Granted<'_>,
    ) -> Result<Attachment, AttachError> {
        let inner = &domain.0;
        // A forked child has none yet.
        sandbox_threads::start(inner);
        let stack = inner.instance.give_data_stack(inner.limits.threads)?;
        let life = inner.clone();
        let spawn = inner.service_number(SPAWN).map(|number| number as usize);
        let attached = Attached::new(
            &inner.control,
            (handlers, stack),
            |number| granted.services.contains(&number) || spawn == Some(number),
            granted.longest,
            inner.sandbox.pool.clone(),
            move || life.restarts.life(),
        );
        let attached = match attached {
            Ok(attached) => attached,
            Err(error) => {
                inner.instance.take_data_stack(stack);
                return Err(error);
            }
        };
        inner.attachments.begin(attached.mailbox());
        let sender = UpcallSender {
            mailbox: attached.mailbox().clone(),
            domain: domain.clone(),
        };
        Ok(Attachment {
            attached: Some(attached),
            sender,
        })
    }

    /// By which any thread interrupts this one.
    pub fn sender(&self) -> UpcallSender {
        self.sender.clone()
    }
}

impl std::ops::Deref for Attachment {
    type Target = UpcallSender;
    fn deref(&self) -> &UpcallSender {
        &self.sender
    }
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sender.fmt(f)
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let Some(attached) = self.attached.take() else {
            return;
        };
        let stack = attached.detach();
        let domain = &self.sender.domain.0;
        domain.attachments.end(&self.sender.mailbox);
        // Whoever gets the stack next finds thread-local variables as they were at first.
        domain.instance.renew_stack_top(stack);
        domain.instance.take_data_stack(stack);
    }
}

/// Interrupts the thread of an [`Attachment`]. It keeps the domain.
#[derive(Clone)]
pub struct UpcallSender {
    mailbox: Arc<Mailbox>,
    domain: Domain,
}

impl UpcallSender {
    /// Has the handler called with these, on the attached thread. At most 16 different events wait;
    /// of one that waits already, the later data is told. Signal handlers may call this.
    pub fn send(&self, event: u32, data: u64) -> Posted {
        self.mailbox.post(event, data, 0)
    }

    /// What was done so far.
    pub fn counters(&self) -> UpcallCounters {
        self.mailbox.counters()
    }

    /// How the first handler ended that did not return, of those that nobody has asked about. The
    /// fault has closed the domain for calls that begin when it happened; here it is told to
    /// `on_fault`, logs and the rule of restarts, and the domain's other calls are ended.
    pub fn take_fault(&self) -> Option<CallError> {
        let ended = self.mailbox.take_fault()?;
        let message = match ended.fault.kind {
            NOT_IN_UPCALLS => Some(
                "the handler of an upcall called a service that it may not: `Upcall::allow` names those that it may, or `DomainBuilder::sandbox_threads` grants threads on which it waits",
            ),
            NO_SANDBOX_THREAD => Some(
                "the handler of an upcall had to wait, and as many waited already as may: `DomainBuilder::sandbox_threads` grants more",
            ),
            TOO_DEEP_TO_WAIT => Some(
                "the handler of an upcall had to wait, deeper in calls than one that waits may be",
            ),
            _ => None,
        };
        let message = message.map(str::to_owned);
        let inner = &self.domain.0;
        let (raw, life, closed) = (&ended.fault, ended.life, ended.closed);
        Some(call::fault(inner, raw, message, life, 0, closed))
    }
}

impl UpcallSender {
    /// Whether both are of one attachment, or of threads that had it one after the other.
    pub(crate) fn is(&self, other: &UpcallSender) -> bool {
        Arc::ptr_eq(&self.mailbox, &other.mailbox)
    }
}

impl std::fmt::Debug for UpcallSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpcallSender")
            .field("domain", &self.domain)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}
