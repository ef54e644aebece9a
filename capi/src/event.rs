//! Events: `pt_domain_on_…`, `pt_subscription_…`, `pt_domain_way`, `pt_options_way`; and threads
//! that are attached for them: `pt_thread_attach` and its kin.

use crate::boundary::{Descriptor, Text, TextTarget};
use crate::domain::DomainKind;
use crate::failure::{self, Code, Failure};
use crate::handle::{Handle, kind};
use crate::options::{self, OptionsKind};
use crate::share::SharedKind;
use postern::{AttachError, Client, Event, EventError, Posted, Subscription, Way, Ways};
use std::cell::Cell;
use std::ffi::c_int;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

kind!(SubscriptionKind: Arc<Subscription>, b'E', "pt_subscription");

/// Names in C and values, for the test that the header agrees.
pub const WAYS: [(&str, i32); 4] = [
    ("PT_WAY_BEST", 0),
    ("PT_WAY_CURRENT", 1),
    ("PT_WAY_REAL_TIME", 2),
    ("PT_WAY_PLAIN", 3),
];

/// The same of the flags.
pub const FLAGS: [(&str, i32); 3] = [
    ("PT_READABLE", READABLE),
    ("PT_WRITABLE", WRITABLE),
    ("PT_ATTACH_NICENESS", NICENESS),
];
const READABLE: c_int = 1;
const WRITABLE: c_int = 2;
const NICENESS: c_int = 1;

/// The same of what is counted.
pub const COUNTS: [(&str, i32); 6] = [
    ("PT_EVENT_BY_CURRENT", 0),
    ("PT_EVENT_BY_DISPATCHER", 1),
    ("PT_EVENT_COALESCED", 2),
    ("PT_EVENT_DROPPED", 3),
    ("PT_EVENT_SKIPPED", 4),
    ("PT_EVENT_FAULTS", 5),
];

thread_local! {
    /// The calling thread's attachment. In a box, for copies of the library that are loaded later
    /// have little room for what threads have.
    static ATTACHED: Cell<Option<Box<Client>>> = const { Cell::new(None) };
}

impl From<EventError> for Failure {
    fn from(error: EventError) -> Failure {
        let code = match &error {
            EventError::Handler(inner) => failure::symbol(inner),
            EventError::Attach(inner) => match inner {
                AttachError::Attached => Code::Busy,
                AttachError::Blocked(_) => Code::SignalBlocked,
                AttachError::HandlerTaken(_) => Code::HandlerReplaced,
                AttachError::Refused(_) => Code::Limit,
                _ => Code::System,
            },
            EventError::TooMany | EventError::TooManyClients => Code::Limit,
            EventError::AlwaysReady
            | EventError::NotBlocked(_)
            | EventError::NoDoorbell
            | EventError::Unwatchable { .. } => Code::Argument,
            EventError::Watched(_) => Code::Busy,
            EventError::Forked => Code::Closed,
            _ => Code::System,
        };
        Failure::new(code, error.to_string())
    }
}

fn on(
    domain: Handle<DomainKind>,
    handler: Text<'_>,
    event: impl FnOnce() -> Result<Event, Failure>,
) -> Handle<SubscriptionKind> {
    failure::or(Handle::NULL, || {
        let domain = &domain.get()?.domain;
        let subscription = domain.on(event()?, handler.get("handler")?)?;
        Ok(Handle::make(Arc::new(subscription)))
    })
}

/// `pt_options_way`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_way(
    options: Handle<OptionsKind>,
    way: c_int,
    priority: c_int,
) -> c_int {
    options::change(options, |options| {
        let ways = match way {
            0 => Ways::BEST,
            1 => Ways::only(Way::Current),
            2 => Ways::only(Way::RealTime),
            3 => Ways::only(Way::Plain),
            _ => {
                let text = format!("{way} is no way; PT_WAY_… are");
                return Err(Failure::new(Code::Argument, text));
            }
        };
        options.ways = match priority {
            0 => ways,
            1..=99 => ways.priority(priority),
            _ => {
                let text = format!("{priority} is no real-time priority; 1 to 99 are");
                return Err(Failure::new(Code::Argument, text));
            }
        };
        Ok(())
    })
}

/// `pt_domain_way`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_way(
    domain: Handle<DomainKind>,
    text: TextTarget<'_>,
    size: usize,
) -> c_int {
    failure::number(|| {
        let way = domain.get()?.domain.way()?;
        text.fill(size, &way.to_string())?;
        Ok(match way.way {
            Way::Current => 1,
            Way::RealTime => 2,
            Way::Plain => 3,
        })
    }) as c_int
}

/// `pt_domain_on_timer`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_on_timer(
    domain: Handle<DomainKind>,
    first: u64,
    period: u64,
    handler: Text<'_>,
) -> Handle<SubscriptionKind> {
    let (first, period) = (Duration::from_nanos(first), Duration::from_nanos(period));
    on(domain, handler, || Ok(Event::timer(first, period)))
}

/// `pt_domain_on_fd`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_on_fd(
    domain: Handle<DomainKind>,
    fd: Descriptor,
    what: c_int,
    handler: Text<'_>,
) -> Handle<SubscriptionKind> {
    on(domain, handler, || match what {
        READABLE => Ok(Event::readable(fd.duplicate()?)),
        WRITABLE => Ok(Event::writable(fd.duplicate()?)),
        _ => Err(Failure::new(
            Code::Argument,
            format!("{what} is neither PT_READABLE nor PT_WRITABLE"),
        )),
    })
}

/// `pt_domain_on_end`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_on_end(
    domain: Handle<DomainKind>,
    process: u32,
    handler: Text<'_>,
) -> Handle<SubscriptionKind> {
    on(domain, handler, || Ok(Event::end_of(process)))
}

/// `pt_domain_on_signal`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_on_signal(
    domain: Handle<DomainKind>,
    signal: c_int,
    handler: Text<'_>,
) -> Handle<SubscriptionKind> {
    on(domain, handler, || Ok(Event::signal(signal)))
}

/// `pt_domain_on_doorbell`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_on_doorbell(
    domain: Handle<DomainKind>,
    handler: Text<'_>,
) -> Handle<SubscriptionKind> {
    on(domain, handler, || Ok(Event::doorbell()))
}

/// `pt_domain_on_pressure`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_on_pressure(
    domain: Handle<DomainKind>,
    file: Text<'_>,
    stall: u64,
    window: u64,
    handler: Text<'_>,
) -> Handle<SubscriptionKind> {
    let (stall, window) = (Duration::from_micros(stall), Duration::from_micros(window));
    on(domain, handler, || {
        Ok(match file.optional("file")? {
            Some(file) => Event::group_pressure(file, stall, window),
            None => Event::memory_pressure(stall, window),
        })
    })
}

/// `pt_domain_on_missing_pages`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_on_missing_pages(
    domain: Handle<DomainKind>,
    area: Handle<SharedKind>,
    handler: Text<'_>,
) -> Handle<SubscriptionKind> {
    on(domain, handler, || {
        Ok(Event::missing_pages(&area.get()?.shared))
    })
}

/// `pt_domain_on_send`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_on_send(
    domain: Handle<DomainKind>,
    handler: Text<'_>,
) -> Handle<SubscriptionKind> {
    on(domain, handler, || Ok(Event::posted()))
}

/// `pt_subscription_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_subscription_free(subscription: Handle<SubscriptionKind>) -> c_int {
    failure::code(|| subscription.take().map(drop))
}

/// `pt_subscription_number`
#[unsafe(no_mangle)]
pub extern "C" fn pt_subscription_number(subscription: Handle<SubscriptionKind>) -> c_int {
    failure::number(|| Ok(subscription.get()?.number().into())) as c_int
}

/// `pt_subscription_priority`
#[unsafe(no_mangle)]
pub extern "C" fn pt_subscription_priority(
    subscription: Handle<SubscriptionKind>,
    priority: c_int,
) -> c_int {
    failure::code(|| {
        let priority = u8::try_from(priority).map_err(|_| {
            let text = format!("{priority} is no priority; 0 to 255 are");
            Failure::new(Code::Argument, text)
        })?;
        subscription.get()?.set_priority(priority);
        Ok(())
    })
}

/// `pt_subscription_doorbell`
#[unsafe(no_mangle)]
pub extern "C" fn pt_subscription_doorbell(subscription: Handle<SubscriptionKind>) -> c_int {
    failure::number(|| {
        let doorbell: OwnedFd = subscription.get()?.doorbell()?.into();
        Ok(doorbell.into_raw_fd().into())
    }) as c_int
}

/// `pt_subscription_count`
#[unsafe(no_mangle)]
pub extern "C" fn pt_subscription_count(
    subscription: Handle<SubscriptionKind>,
    what: c_int,
) -> i64 {
    failure::number(|| {
        let all = subscription.get()?.counters();
        let counters = [
            all.by_current,
            all.by_dispatcher,
            all.coalesced,
            all.dropped,
            all.skipped,
            all.faults,
        ];
        let one = usize::try_from(what).ok().and_then(|n| counters.get(n));
        let one = one.ok_or_else(|| {
            let text = format!("{what} is not counted; PT_EVENT_… are");
            Failure::new(Code::Argument, text)
        })?;
        Ok(i64::try_from(*one).unwrap_or(i64::MAX))
    })
}

fn not_attached() -> Failure {
    Failure::new(
        Code::Missing,
        "the thread is not attached: pt_thread_attach does that",
    )
}

/// What the calling thread's attachment says.
fn with<T>(what: impl FnOnce(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
    let all = ATTACHED.try_with(|place| {
        let Some(client) = place.take() else {
            return Err(not_attached());
        };
        let done = what(&client);
        place.set(Some(client));
        done
    });
    all.unwrap_or_else(|_| Err(not_attached()))
}

/// `pt_thread_attach`
#[unsafe(no_mangle)]
pub extern "C" fn pt_thread_attach(domain: Handle<DomainKind>, flags: c_int) -> c_int {
    failure::number(|| {
        if flags & !NICENESS != 0 {
            let text = format!("{flags:#x} has other flags than PT_ATTACH_NICENESS");
            return Err(Failure::new(Code::Argument, text));
        }
        let domain = &domain.get()?.domain;
        let client = domain.client().niceness(flags & NICENESS != 0).attach()?;
        let number = client.number();
        ATTACHED.set(Some(Box::new(client)));
        Ok(number.into())
    }) as c_int
}

/// `pt_thread_detach`
#[unsafe(no_mangle)]
pub extern "C" fn pt_thread_detach() -> c_int {
    failure::code(|| match ATTACHED.take() {
        Some(client) => {
            drop(client);
            Ok(())
        }
        None => Err(not_attached()),
    })
}

/// `pt_thread_wait`
#[unsafe(no_mangle)]
pub extern "C" fn pt_thread_wait(microseconds: u64) -> c_int {
    failure::number(|| {
        let woken = with(|client| Ok(client.wait(Duration::from_micros(microseconds))))?;
        Ok(woken.min(c_int::MAX as u32).into())
    }) as c_int
}

/// `pt_thread_send`
#[unsafe(no_mangle)]
pub extern "C" fn pt_thread_send(event: u32, data: u64) -> c_int {
    failure::number(|| {
        with(|client| match client.send(event, data) {
            Some(Posted::Sent) => Ok(0),
            Some(Posted::Coalesced) => Ok(1),
            Some(Posted::Dropped) => Err(Failure::new(
                Code::Limit,
                "sixteen other events wait for the thread",
            )),
            Some(Posted::Detached) => Err(not_attached()),
            None => Err(Failure::new(
                Code::Missing,
                format!("the domain has no event {event}"),
            )),
        })
    }) as c_int
}
