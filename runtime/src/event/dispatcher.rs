//! The thread that calls the handlers of a domain's events if nobody else does.
//!
//! It sleeps in a set of its own, which has in it the one of the events. While threads are attached
//! that these interrupt, the [waiter](super::waiter) is woken in its place, and tells what is left.

use super::error::{EventError, system};
use super::pages::{self, Pager};
use super::state::EventState;
use super::trusted::bpf::{Program, Waiting};
use super::trusted::claims::Claims;
use super::trusted::kernel;
use super::trusted::slots::{By, EVENTS, Slots};
use super::waiter::{self, Waiter};
use super::way::{NoWay, Way, WayInUse, Ways};
use crate::call::{CallError, Func};
use crate::fault::FaultKind;
use crate::fork;
use crate::upcall::UpcallSender;
use postern_gates::upcall::{AttachError, Claimed, Handled, Sources};
use postern_gates::{machine, signal};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, Weak};

/// Of what happened, in one look. The claims have room for as many.
const FOUND: usize = 16;

/// Of the dispatcher's own set, besides tokens: the events' set, or what is left of them …
const EVENT: u64 = u64::MAX;
/// … a handler was ended …
const ENDED: u64 = u64::MAX - 1;
/// … and the end.
const OVER: u64 = u64::MAX - 2;

/// A handler, as the dispatcher calls it.
pub(super) struct Handler {
    pub(super) function: Func<fn(u32, u64)>,
    /// Its longest time is one that the domain does not know: who exceeds it closes the domain.
    pub(super) limited: bool,
    /// What it fills: it is told the offset of a page.
    pub(super) pager: Option<Arc<Pager>>,
}

/// By the number of the event. All dispatchers that a domain has had have the same: one that is to
/// end, and is in a handler still, may take an event of the next one's.
type Handlers = Mutex<Vec<Option<Arc<Handler>>>>;

/// The thread's owner: it ends when this is dropped.
pub(crate) struct Dispatcher {
    /// If it can have the current thread interrupted.
    waiter: Option<Waiter>,
    shared: Arc<Shared>,
    way: WayInUse,
}

struct Shared {
    slots: Arc<Slots>,
    /// What the thread waits for.
    set: OwnedFd,
    over: AtomicBool,
    /// Tells the thread so.
    end: OwnedFd,
    /// The kernel's number of the thread.
    thread: AtomicU32,
    handlers: Arc<Handlers>,
    /// Threads that are attached, or were until a moment ago.
    attached: Mutex<Vec<UpcallSender>>,
    /// Threads of other processes are. It is changed under the lock of `attached`.
    elsewhere: AtomicBool,
}

impl Dispatcher {
    /// The domain's, which is made if there is none.
    pub(super) fn of(state: &EventState) -> Result<Arc<Dispatcher>, EventError> {
        let slots = state
            .slots_or_new()
            .map_err(system("make a set of events"))?;
        if slots.process != fork::process() {
            return Err(EventError::Forked);
        }
        if let Some(dispatcher) = Dispatcher::present(&fork::lock(&state.dispatcher)) {
            return Ok(dispatcher);
        }
        let none = || -> Arc<Handlers> { Arc::new(Mutex::new(vec![None; EVENTS])) };
        let handlers = {
            // So that no fork finds it half made.
            let _one = fork::lock(&state.dispatcher);
            state.handlers.get_or_init(|| none()).clone()
        };
        let handlers = handlers.downcast::<Handlers>().unwrap_or_else(|_| none());
        let made = Arc::new(Dispatcher::begin(slots, handlers, state.ways)?);
        let mut place = fork::lock(&state.dispatcher);
        if let Some(other) = Dispatcher::present(&place) {
            // Another thread was faster.
            drop(place);
            return Ok(other);
        }
        let shown: Arc<dyn Any + Send + Sync> = made.clone();
        *place = Some(Arc::downgrade(&shown));
        drop(place);
        let follower = Arc::downgrade(&made);
        *fork::lock(&state.follower) = Some(Arc::new(move || {
            if let Some(dispatcher) = follower.upgrade() {
                dispatcher.follow();
            }
        }));
        made.follow();
        Ok(made)
    }

    fn present(place: &Option<Weak<dyn Any + Send + Sync>>) -> Option<Arc<Dispatcher>> {
        let found = place.as_ref().and_then(|weak| weak.upgrade());
        found.and_then(|found| found.downcast::<Dispatcher>().ok())
    }

    /// Looks which threads of other processes are attached, and what became of events there.
    fn follow(&self) {
        let Some(elsewhere) = self.shared.slots.elsewhere() else {
            return;
        };
        self.shared.slots.collect();
        let attached = fork::lock(&self.shared.attached);
        let any = elsewhere.look();
        let before = self.shared.elsewhere.swap(any, SeqCst);
        if attached.is_empty() && any != before && elsewhere.seat().is_some() {
            self.is_told_by_waiter(any);
        }
    }

    fn begin(
        slots: &Arc<Slots>,
        handlers: Arc<Handlers>,
        ways: Ways,
    ) -> Result<Dispatcher, EventError> {
        let mut why = Vec::new();
        let waiter = match ways.best {
            Way::Current => match waiting() {
                Ok(waiting) => Waiter::begin(slots, waiting)?,
                Err(reason) => Err(reason),
            }
            .map_err(|reason| why.push(reason))
            .ok(),
            _ => None,
        };
        let failed = || system("wait for events");
        let shared = Arc::new(Shared {
            slots: slots.clone(),
            set: epoll::create(CreateFlags::CLOEXEC).map_err(|e| failed()(e.into()))?,
            over: AtomicBool::new(false),
            end: eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| failed()(e.into()))?,
            thread: AtomicU32::new(0),
            handlers,
            attached: Mutex::default(),
            elsewhere: AtomicBool::new(false),
        });
        let own = [
            (slots.set(), EVENT),
            (slots.ended(), ENDED),
            (shared.end.as_fd(), OVER),
        ];
        for (descriptor, data) in own {
            let data = EventData::new_u64(data);
            let added = epoll::add(
                &shared.set,
                descriptor,
                data,
                EventFlags::IN | EventFlags::ET,
            );
            added.map_err(|e| failed()(e.into()))?;
        }
        if let Some(waiter) = &waiter {
            let (data, flags) = (EventData::new_u64(EVENT), EventFlags::IN | EventFlags::ET);
            let added = epoll::add(&shared.set, waiter.left(), data, flags);
            added.map_err(|e| failed()(e.into()))?;
        }
        // From here on its drop ends the thread.
        let mut dispatcher = Dispatcher {
            waiter,
            shared: shared.clone(),
            way: WayInUse {
                way: Way::Plain,
                otherwise: Way::Plain,
                why,
            },
        };
        let said = waiter::start("postern-events", move |says| {
            shared.thread.store(machine::thread_id(), SeqCst);
            says(run_first(ways));
            shared.serve();
        })?;
        let first = said.flatten();
        let way = &mut dispatcher.way;
        if ways.best != Way::Plain && first.is_none() {
            way.otherwise = Way::RealTime;
        }
        way.way = match dispatcher.waiter {
            Some(_) => Way::Current,
            None => way.otherwise,
        };
        way.why.extend(first);
        if ways.named && way.way != ways.best {
            let reason = way.why.first().cloned();
            return Err(reason.map_or(EventError::TooMany, EventError::Way));
        }
        Ok(dispatcher)
    }

    pub(super) fn way(&self) -> &WayInUse {
        &self.way
    }

    /// The kernel's number of its thread.
    pub(super) fn thread(&self) -> u32 {
        self.shared.thread.load(SeqCst)
    }

    pub(super) fn slots(&self) -> &Arc<Slots> {
        &self.shared.slots
    }

    /// By which threads become known, if the current one can be interrupted.
    pub(super) fn waiting(&self) -> Option<&Arc<Waiting>> {
        self.waiter.as_ref().map(Waiter::waiting)
    }

    /// The set of events that only the dispatcher may look at.
    pub(super) fn set(&self) -> BorrowedFd<'_> {
        self.shared.set.as_fd()
    }

    /// Has the handler called for the event whose slot `reserve` takes.
    pub(super) fn add(
        &self,
        handler: Handler,
        reserve: impl FnOnce(&Slots) -> Option<u64>,
    ) -> Option<u64> {
        let mut handlers = fork::lock(&self.shared.handlers);
        let token = reserve(&self.shared.slots)?;
        handlers[token as u32 as usize] = Some(Arc::new(handler));
        Some(token)
    }

    /// The event with this token is not waited for any more.
    pub(super) fn remove(&self, token: u64) {
        let in_child = self.shared.slots.process != fork::process();
        let former = {
            let mut handlers = fork::lock(&self.shared.handlers);
            // First: as soon as the slot is closed, it may be another's.
            let former = handlers[token as u32 as usize].take();
            self.shared.slots.close(token, self.set(), in_child);
            former
        };
        // The domain may go with it, and what the host gave it.
        drop(former);
    }

    /// Looks what the handlers of this attachment ended with, from now on.
    pub(super) fn watch(&self, sender: UpcallSender) {
        let mut attached = fork::lock(&self.shared.attached);
        if attached.is_empty() && !self.shared.elsewhere.load(SeqCst) {
            self.is_told_by_waiter(true);
        }
        attached.push(sender);
    }

    /// Whether the waiter is woken by events, or the dispatcher is; for a moment both are.
    fn is_told_by_waiter(&self, is: bool) {
        let Some(waiter) = &self.waiter else {
            return;
        };
        let direct = |flags| {
            let (set, events) = (&self.shared.set, self.shared.slots.set());
            // Only of a descriptor that is not there.
            let _ = epoll::modify(set, events, EventData::new_u64(EVENT), flags);
        };
        if is {
            waiter.wakes(true);
            direct(EventFlags::ET);
        } else {
            direct(EventFlags::IN | EventFlags::ET);
            waiter.wakes(false);
        }
    }

    /// As long as that was watched.
    pub(super) fn unwatch(&self, sender: &UpcallSender) {
        let gone = {
            let mut attached = fork::lock(&self.shared.attached);
            let place = attached.iter().position(|other| other.is(sender));
            let gone = place.map(|place| attached.swap_remove(place));
            // In a forked child the sets are the parent's.
            let any = !attached.is_empty() || self.shared.elsewhere.load(SeqCst);
            if !any && self.shared.slots.process == fork::process() {
                self.is_told_by_waiter(false);
            }
            gone
        };
        drop(gone);
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.shared.over.store(true, SeqCst);
        // As of the waiter.
        let _ = rustix::io::write(&self.shared.end, &1u64.to_ne_bytes());
    }
}

/// What it takes to have the current thread interrupted.
fn waiting() -> Result<Arc<Waiting>, NoWay> {
    let signal = signal::upcall_signal();
    if signal == 0 {
        return Err(NoWay::Signal(AttachError::NoSignal));
    }
    let program = Program::of_process(signal).map_err(|e| NoWay::Bpf(e.to_string()))?;
    Waiting::new(&program).map(Arc::new).ok_or(NoWay::TooMany)
}

/// Why the calling thread has no real-time priority, if it should have one.
fn run_first(ways: Ways) -> Option<NoWay> {
    let priority = ways.real_time()?;
    let refused = kernel::run_first(priority).err();
    refused.map(|error| NoWay::RealTime {
        priority,
        reason: error.to_string(),
    })
}

impl Shared {
    fn serve(&self) {
        let mut claims = Claims::new(&self.slots, By::Dispatcher, None);
        loop {
            let happened = self.sleep(&mut claims);
            if self.over.load(SeqCst) {
                return;
            }
            if happened.ended {
                self.tell_ended();
            }
            while let Some(claimed) = claims.claim_found() {
                self.call(&mut claims, claimed);
            }
            while let Some(claimed) = happened.event.then(|| claims.claim()).flatten() {
                self.call(&mut claims, claimed);
                if self.over.load(SeqCst) {
                    return;
                }
            }
        }
    }

    /// Until something happens.
    fn sleep(&self, claims: &mut Claims) -> Happened {
        let nothing = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut found = [nothing; FOUND];
        let many = epoll::wait(&self.set, &mut found, None).unwrap_or(0);
        let mut happened = Happened::default();
        for event in &found[..many] {
            let (data, flags) = (event.data, event.flags);
            match data.u64() {
                EVENT => happened.event = true,
                ENDED => happened.ended = true,
                OVER => {}
                token => claims.add(token, flags.bits()),
            }
        }
        happened
    }

    /// Calls the handler of an event.
    fn call(&self, claims: &mut Claims, claimed: Claimed) {
        let place = self.slots.place(claimed.event);
        let handler = place.and_then(|place| fork::lock(&self.handlers)[place].clone());
        let pager = handler.as_ref().and_then(|handler| handler.pager.clone());
        let page = pager.as_ref().and_then(|pager| pager.next());
        let data = page.map_or(claimed.data, u64::from);
        let how = handler.map_or(Handled::Skipped, |handler| {
            let call = || handler.call(claimed.event, data);
            catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
                tracing::error!("a service of the handler of an event panicked");
                Handled::Ended
            })
        });
        // Whatever page it slept for in the handler.
        pages::goes_on(self.thread.load(SeqCst));
        if let (Some(pager), Some(page)) = (pager, page) {
            pager.settle(page);
        }
        claims.handled(claimed, how);
    }

    /// Tells the host how handlers ended in threads that were interrupted.
    fn tell_ended(&self) {
        self.slots.take_ended();
        let attached = fork::lock(&self.attached).clone();
        for sender in attached {
            let told = catch_unwind(AssertUnwindSafe(|| sender.take_fault()));
            if told.is_err() {
                tracing::error!("what the host does about a fault panicked");
            }
        }
    }
}

/// Why the dispatcher woke up.
#[derive(Default)]
struct Happened {
    event: bool,
    ended: bool,
}

impl Handler {
    fn call(&self, event: u32, data: u64) -> Handled {
        let inner = &self.function.domain().0;
        let life = inner.restarts.life();
        match self.function.call(event, data) {
            Ok(()) => Handled::Returned,
            Err(CallError::Fault(fault)) => {
                if self.limited && fault.kind == FaultKind::Interrupted {
                    inner.poison(life, false, false, FaultKind::Deadline);
                }
                Handled::Ended
            }
            Err(CallError::Exited(_)) => Handled::Ended,
            Err(_) => Handled::Skipped,
        }
    }
}
