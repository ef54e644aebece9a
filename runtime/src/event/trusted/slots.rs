//! The events of a domain: who waits for what, and who has taken what happened.
//!
//! Any attached thread may look, in a signal handler that interrupted anything, and the dispatcher
//! does. So nothing here allocates, frees or locks but what says so, and no read waits.
//!
//! **Each event is taken once.** The descriptors are in an epoll set that tells each edge to one of
//! those who look; what a descriptor counts, a read gives to one of them. Who finds nothing to read
//! has lost the race, and goes on.
//!
//! **A descriptor stays open while somebody uses it.** A slot's word has its phase, its generation
//! and how many use it. Only an open slot is entered; who leaves a closing one last closes the
//! descriptor, and only then the slot is free. What an epoll set said of a former generation enters
//! nothing.

use super::bpf::CLIENTS;
use super::lent::Lent;
use super::taking::{Taking, count_of, end_of, signal_of};
use crate::common::relay;
use crate::event::elsewhere::Elsewhere;
use postern_gates::machine;
use postern_gates::upcall::{Claimed, Handled, Mailbox};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Events that a domain can have at once.
pub(crate) const EVENTS: usize = relay::EVENTS;

/// A slot is nobody's.
const FREE: u64 = 0;
/// Its descriptor is waited for.
const OPEN: u64 = 1;
/// Whoever uses it may go on, and nobody else begins.
const CLOSING: u64 = 2;
/// It is being filled.
const MADE: u64 = 3;
const PHASE: u64 = 0xff;
/// One more who uses it.
const USER: u64 = 1 << 8;
const USERS: u64 = 0xff_ffff << 8;

/// Who calls a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A thread that was interrupted.
    Current,
    /// The dispatcher.
    Dispatcher,
}

struct Slot {
    /// Phase, users, and in the upper half the generation.
    word: AtomicU64,
    /// -1: it has none.
    descriptor: AtomicI32,
    /// What the descriptor is waited for.
    awaits: AtomicU32,
    taking: AtomicU32,
    /// What happens once has happened.
    over: AtomicBool,
    /// The handler.
    offset: AtomicU32,
    priority: AtomicU32,
    counters: [AtomicU64; COUNTERS],
}

impl Slot {
    fn new() -> Slot {
        Slot {
            word: AtomicU64::new(FREE),
            descriptor: AtomicI32::new(-1),
            awaits: AtomicU32::new(0),
            taking: AtomicU32::new(0),
            over: AtomicBool::new(false),
            offset: AtomicU32::new(0),
            priority: AtomicU32::new(0),
            counters: Default::default(),
        }
    }
}

const COUNTERS: usize = 6;

/// What is counted of an event.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    /// Handlers that returned in a thread that was interrupted …
    ByCurrent,
    /// … and in the dispatcher.
    ByDispatcher,
    /// Happened while an earlier one waited, and was told with it.
    Coalesced,
    /// There was no place for it.
    Dropped,
    /// The domain let nobody in.
    Skipped,
    /// The handler was ended.
    Faults,
}

/// A thread that is attached for all events.
#[derive(Default)]
pub(crate) struct ClientSlot {
    pub(crate) used: AtomicBool,
    /// The kernel's number of the thread; 0 while it is not attached.
    pub(crate) tid: AtomicU32,
    /// Handlers may change how nice it is.
    pub(crate) niceness: AtomicBool,
    /// How often it was woken, and has not asked yet; of a common domain that stands where all
    /// processes have it.
    woken: AtomicU32,
    pub(crate) mailbox: OnceLock<Arc<Mailbox>>,
}

/// All events and attached threads of one domain.
pub(crate) struct Slots {
    /// Of the events.
    set: OwnedFd,
    /// Becomes readable when a handler was ended.
    ended: OwnedFd,
    /// Events have come since somebody looked and found none.
    left: AtomicBool,
    /// [`Lent`]
    lent: AtomicU32,
    slots: [Slot; EVENTS],
    /// Of a common domain: what other processes have to do with these.
    elsewhere: Option<Arc<Elsewhere>>,
    pub(crate) clients: [ClientSlot; CLIENTS],
    /// [`crate::fork::process`]
    pub(crate) process: u64,
}

/// In use by whoever has it, until [`Slots::leave`].
#[derive(Clone, Copy)]
pub(super) struct Entered(pub(super) usize);

/// What a look at the set found.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) token: u64,
    pub(super) flags: u32,
}

pub(super) fn token(index: usize, generation: u64) -> u64 {
    generation << 32 | index as u64
}

impl Slots {
    pub(crate) fn new(process: u64, elsewhere: Option<Arc<Elsewhere>>) -> std::io::Result<Slots> {
        use rustix::event::{EventfdFlags, eventfd};
        Ok(Slots {
            set: epoll::create(CreateFlags::CLOEXEC)?,
            ended: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            left: AtomicBool::new(false),
            lent: AtomicU32::new(0),
            slots: std::array::from_fn(|_| Slot::new()),
            elsewhere,
            clients: std::array::from_fn(|_| ClientSlot::default()),
            process,
        })
    }

    /// Becomes readable with an event.
    pub(crate) fn set(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }

    /// Becomes readable when a handler was ended, and stays so until that is taken.
    pub(crate) fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Events have come.
    pub(crate) fn are_left(&self) {
        self.left.store(true, SeqCst);
    }

    /// Waits until this thread, which has the calling one's priority meanwhile, has looked and
    /// found no more, or for so long.
    pub(crate) fn lend(&self, thread: u32, longest: Duration) {
        Lent::here(&self.lent).lend(thread, longest, || self.is_left());
    }

    /// The same with a thread of another process, which is given events of this one.
    pub(crate) fn lend_elsewhere(&self, thread: u32, longest: Duration) {
        if let Some(elsewhere) = &self.elsewhere {
            let lent = Lent::anywhere(elsewhere.relay.lent());
            lent.lend(thread, longest, || self.is_left());
        }
    }

    /// The calling thread has looked, and found no more.
    pub(super) fn looked(&self) {
        self.left.store(false, SeqCst);
        Lent::here(&self.lent).give_back();
    }

    /// The same of the events of all processes.
    pub(super) fn looked_elsewhere(&self) {
        if let Some(elsewhere) = &self.elsewhere {
            Lent::anywhere(elsewhere.relay.lent()).give_back();
        }
    }

    /// Whether nobody has looked, and found no more, since [`Slots::are_left`], or an event waits
    /// for a thread of another process.
    pub(crate) fn is_left(&self) -> bool {
        let waits = |elsewhere: &Arc<Elsewhere>| elsewhere.relay.waits(elsewhere.seat());
        self.left.load(SeqCst) || self.elsewhere.as_ref().is_some_and(waits)
    }

    /// What other processes have to do with the events, if it is a common domain's.
    pub(crate) fn elsewhere(&self) -> Option<&Arc<Elsewhere>> {
        self.elsewhere.as_ref()
    }

    /// The number of the first event, and of the first client.
    pub(crate) fn first(&self) -> u32 {
        self.elsewhere
            .as_ref()
            .map_or(0, |elsewhere| elsewhere.first())
    }

    /// The place of an event or client with this number, if it is this process's.
    pub(crate) fn place(&self, number: u32) -> Option<usize> {
        let place = number.checked_sub(self.first())? as usize;
        (place < EVENTS).then_some(place)
    }

    /// How often a client of this process was woken since this was asked last, which is waited for
    /// so long.
    pub(crate) fn await_waking(&self, client: usize, longest: Duration) -> u32 {
        let word = self.woken(client);
        match word.swap(0, SeqCst) {
            0 if !longest.is_zero() => {
                match &self.elsewhere {
                    None => machine::wait_at_most(word, 0, longest),
                    Some(_) => machine::wait_at_most_shared(word, 0, longest),
                }
                word.swap(0, SeqCst)
            }
            times => times,
        }
    }

    fn woken(&self, client: usize) -> &AtomicU32 {
        match &self.elsewhere {
            Some(elsewhere) => elsewhere.relay.woken(self.first() / EVENTS as u32, client),
            None => &self.clients[client % CLIENTS].woken,
        }
    }

    /// Wakes the client with this number, in whatever process. False: there is none.
    pub(crate) fn wake(&self, number: u32) -> bool {
        match &self.elsewhere {
            Some(elsewhere) => {
                let (seat, client) = (number / CLIENTS as u32, number as usize % CLIENTS);
                let is_one = seat < relay::SEATS && elsewhere.relay.is_client(seat, client);
                if is_one {
                    let word = elsewhere.relay.woken(seat, client);
                    word.fetch_add(1, SeqCst);
                    machine::wake_all_shared(word);
                }
                is_one
            }
            None => {
                let client = self.clients.get(number as usize);
                let client = client.filter(|client| client.tid.load(SeqCst) != 0);
                if let Some(client) = client {
                    client.woken.fetch_add(1, SeqCst);
                    machine::wake_all(&client.woken);
                }
                client.is_some()
            }
        }
    }

    /// Nobody has taken it since the last time that this was asked.
    pub(crate) fn take_ended(&self) -> bool {
        count_of(self.ended.as_fd()).is_some()
    }

    /// Takes a free slot, for an event that is not waited for yet; `None`: there is none. Ordinary
    /// threads call this.
    pub(crate) fn reserve(
        &self,
        descriptor: Option<OwnedFd>,
        awaits: EventFlags,
        taking: Taking,
        (offset, priority): (u32, u8),
    ) -> Option<u64> {
        let (index, slot) = self.slots.iter().enumerate().find(|(_, slot)| {
            let word = slot.word.load(SeqCst);
            let mine = |word| {
                let taken = slot
                    .word
                    .compare_exchange(word, word | MADE, SeqCst, SeqCst);
                taken.is_ok()
            };
            word & PHASE == FREE && mine(word)
        })?;
        let generation = slot.word.load(SeqCst) >> 32;
        slot.awaits.store(awaits.bits(), Relaxed);
        slot.taking.store(taking as u32, Relaxed);
        slot.over.store(false, Relaxed);
        slot.offset.store(offset, Relaxed);
        slot.priority.store(u32::from(priority), Relaxed);
        for counter in &slot.counters {
            counter.store(0, Relaxed);
        }
        let number = descriptor.map_or(-1, IntoRawFd::into_raw_fd);
        self.announce(index, Some((offset, priority)));
        slot.descriptor.store(number, SeqCst);
        slot.word.store(generation << 32 | OPEN, SeqCst);
        Some(token(index, generation))
    }

    /// It is waited for from now on, by the dispatcher alone if this is its set.
    ///
    /// # Errors
    /// The kernel does not wait for such a descriptor.
    pub(crate) fn begin(&self, token: u64, alone: Option<BorrowedFd<'_>>) -> std::io::Result<()> {
        let Some(entered) = self.enter(token) else {
            return Ok(());
        };
        let mut done = Ok(());
        if let Some(descriptor) = self.descriptor(entered) {
            let slot = &self.slots[entered.0];
            let mut awaits = EventFlags::from_bits_retain(slot.awaits.load(Relaxed));
            // Of what is taken one by one the next is found with the others' next.
            if Taking::of(slot.taking.load(Relaxed)) != Taking::Each {
                awaits |= EventFlags::ET;
            }
            let set = alone.unwrap_or(self.set.as_fd());
            done = epoll::add(set, descriptor, EventData::new_u64(token), awaits);
        }
        self.leave(entered);
        Ok(done?)
    }

    /// The event is not waited for any more, in `alone`, the dispatcher's set, neither. In a forked
    /// child the sets are the parent's, and are left as they are.
    pub(crate) fn close(&self, token: u64, alone: BorrowedFd<'_>, in_child: bool) {
        let Some(entered) = self.enter(token) else {
            return;
        };
        let slot = &self.slots[entered.0];
        if !in_child {
            self.announce(entered.0, None);
        }
        let word = slot.word.fetch_add(CLOSING - OPEN, SeqCst);
        debug_assert_eq!(word & PHASE, OPEN);
        if let Some(descriptor) = self.descriptor(entered).filter(|_| !in_child) {
            // It is in one of them, which would not forget it while a child has the descriptor.
            let _ = epoll::delete(&self.set, descriptor);
            let _ = epoll::delete(alone, descriptor);
        }
        self.leave(entered);
    }

    /// Tells other processes the handler of an event.
    fn announce(&self, index: usize, handler: Option<(u32, u8)>) {
        if let Some(elsewhere) = &self.elsewhere {
            let export = |(offset, priority)| Some((elsewhere.export(offset)?, priority));
            let seat = self.first() / EVENTS as u32;
            let handler = handler.and_then(export);
            elsewhere.relay.set_handler(seat, index, handler);
        }
    }

    pub(super) fn enter(&self, token: u64) -> Option<Entered> {
        let (index, generation) = (token as u32 as usize, token >> 32);
        let word = &self.slots.get(index)?.word;
        let mut now = word.load(SeqCst);
        while now & PHASE == OPEN && now >> 32 == generation && now & USERS != USERS {
            match word.compare_exchange_weak(now, now + USER, SeqCst, SeqCst) {
                Ok(_) => return Some(Entered(index)),
                Err(other) => now = other,
            }
        }
        None
    }

    /// The slot of the event with this number, whatever its generation: itself, and its token.
    pub(super) fn enter_number(&self, number: u32) -> Option<(Entered, u64)> {
        let place = self.place(number)?;
        let token = token(place, self.slots[place].word.load(SeqCst) >> 32);
        Some((self.enter(token)?, token))
    }

    pub(super) fn leave(&self, Entered(index): Entered) {
        let slot = &self.slots[index];
        let before = slot.word.fetch_sub(USER, SeqCst);
        if before & (PHASE | USERS) != CLOSING | USER {
            return;
        }
        let number = slot.descriptor.swap(-1, SeqCst);
        if number >= 0 {
            // SAFETY: the slot has owned it since `open`, and nobody uses it any more, nor does
            // anybody begin to: the phase is not OPEN. A close is all that this does.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
        let generation = ((before >> 32) + 1) & 0xffff_ffff;
        slot.word.store(generation << 32 | FREE, SeqCst);
    }

    pub(super) fn descriptor(&self, Entered(index): Entered) -> Option<BorrowedFd<'_>> {
        let number = self.slots[index].descriptor.load(SeqCst);
        // SAFETY: whoever has entered the slot keeps its descriptor open; those that are given this
        // use it before they leave.
        (number >= 0).then(|| unsafe { BorrowedFd::borrow_raw(number) })
    }

    /// Another descriptor for what an event waits for.
    pub(crate) fn duplicate(&self, token: u64) -> std::io::Result<OwnedFd> {
        let entered = self.enter(token).ok_or(rustix::io::Errno::BADF)?;
        let copied = self
            .descriptor(entered)
            .map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 0));
        self.leave(entered);
        Ok(copied.ok_or(rustix::io::Errno::BADF)??)
    }

    pub(crate) fn set_priority(&self, token: u64, priority: u8) {
        if let Some(entered) = self.enter(token) {
            let slot = &self.slots[entered.0];
            slot.priority.store(u32::from(priority), Relaxed);
            self.announce(entered.0, Some((slot.offset.load(Relaxed), priority)));
            self.leave(entered);
        }
    }

    /// Which handler an event has, of any process, and its priority.
    pub(crate) fn handler(&self, number: u32) -> Option<(u32, u8)> {
        if self.place(number).is_none() {
            let elsewhere = self.elsewhere.as_ref()?;
            let (_, priority) = elsewhere.relay.handler(number)?;
            return Some((elsewhere.handler(number)?, priority));
        }
        let (entered, _) = self.enter_number(number)?;
        let slot = &self.slots[entered.0];
        let found = (slot.offset.load(Relaxed), slot.priority.load(Relaxed) as u8);
        self.leave(entered);
        Some(found)
    }

    pub(crate) fn count(&self, token: u64, what: Count, by: u64) {
        if let Some(slot) = self.slots.get(token as u32 as usize) {
            slot.counters[what as usize].fetch_add(by, Relaxed);
        }
    }

    /// Of the event that has this number now, if it is this process's.
    pub(crate) fn count_number(&self, number: u32, what: Count) {
        if let Some(place) = self.place(number) {
            self.count(token(place, 0), what, 1);
        }
    }

    /// Counts what other processes have done with this one's events.
    pub(crate) fn collect(&self) {
        let Some((elsewhere, seat)) = self.elsewhere.as_ref().and_then(|e| Some((e, e.seat()?)))
        else {
            return;
        };
        elsewhere.relay.collect(seat, |event, how| {
            let what = match how {
                relay::Outcome::Returned => Count::ByCurrent,
                relay::Outcome::Skipped => Count::Skipped,
                relay::Outcome::Ended => Count::Faults,
                relay::Outcome::Dropped => Count::Dropped,
            };
            self.count_number(event, what);
        });
    }

    pub(crate) fn counted(&self, token: u64, what: Count) -> u64 {
        self.collect();
        let slot = self.slots.get(token as u32 as usize);
        slot.map_or(0, |slot| slot.counters[what as usize].load(Relaxed))
    }

    pub(super) fn priority(&self, token: u64) -> u32 {
        let slot = self.slots.get(token as u32 as usize);
        slot.map_or(0, |slot| slot.priority.load(Relaxed))
    }

    /// Takes what happened, unless somebody else has. The slot is in use until the handler was
    /// called.
    pub(super) fn take(&self, found: Found) -> Option<Claimed> {
        let entered = self.enter(found.token)?;
        let slot = &self.slots[entered.0];
        let data = self.descriptor(entered).and_then(|descriptor| {
            match Taking::of(slot.taking.load(Relaxed)) {
                Taking::Flags => Some(u64::from(found.flags)),
                Taking::Count | Taking::Each => count_of(descriptor),
                // Its reaping is another edge.
                Taking::End => {
                    let end = end_of(descriptor);
                    end.filter(|_| !slot.over.swap(true, SeqCst))
                }
                Taking::Signal => signal_of(descriptor),
            }
        });
        let Some(data) = data else {
            self.leave(entered);
            return None;
        };
        if Taking::of(slot.taking.load(Relaxed)) == Taking::Count {
            self.count(found.token, Count::Coalesced, data.saturating_sub(1));
        }
        Some(Claimed {
            event: self.first() + entered.0 as u32,
            data,
            offset: slot.offset.load(Relaxed),
            token: found.token,
        })
    }

    pub(super) fn handled(&self, token: u64, by: By, how: Handled) {
        self.count_handled(token, by, how);
        self.leave(Entered(token as u32 as usize));
    }

    /// The same of one that came by another process's queue, or went there.
    pub(super) fn count_handled(&self, token: u64, by: By, how: Handled) {
        let what = match (how, by) {
            (Handled::Returned | Handled::Promoted, By::Current) => Count::ByCurrent,
            (Handled::Returned | Handled::Promoted, By::Dispatcher) => Count::ByDispatcher,
            (Handled::Skipped, _) => Count::Skipped,
            (Handled::Ended, _) => Count::Faults,
        };
        self.count(token, what, 1);
        self.tell_ended(by, how);
    }

    /// An ordinary thread is to tell how a handler ended in one that was interrupted.
    pub(super) fn tell_ended(&self, by: By, how: Handled) {
        if how == Handled::Ended && by == By::Current {
            let _ = rustix::io::write(&self.ended, &1u64.to_ne_bytes());
        }
    }

    /// Where the handler of an event is that this process has, by its slot.
    pub(super) fn offset(&self, Entered(index): Entered) -> u32 {
        self.slots[index].offset.load(Relaxed)
    }

    /// What an event in use is waited for.
    pub(super) fn awaits(&self, Entered(index): Entered) -> EventFlags {
        EventFlags::from_bits_retain(self.slots[index].awaits.load(Relaxed))
    }

    /// Whether more may have come with one edge.
    pub(super) fn queues(&self, token: u64) -> bool {
        let slot = self.slots.get(token as u32 as usize);
        slot.is_some_and(|slot| Taking::of(slot.taking.load(Relaxed)) == Taking::Signal)
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        for slot in &self.slots {
            let number = slot.descriptor.swap(-1, SeqCst);
            if number >= 0 {
                // SAFETY: the slot's own, and nobody is left who uses it.
                drop(unsafe { OwnedFd::from_raw_fd(number) });
            }
        }
    }
}
