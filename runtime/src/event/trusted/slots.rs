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

use super::bpf::{CLIENTS, Signals};
use super::lent::Lent;
use postern_gates::upcall::{Claimed, Handled, Mailbox, Sources};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Events that a domain can have at once.
pub(crate) const EVENTS: usize = 64;
/// Of events that are found in one look.
const BATCH: usize = 16;

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

/// How what happened is taken from a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Taking {
    /// The data is what it says of itself: `EPOLLIN` and so on.
    Flags,
    /// It counts: the data is the number.
    Count,
    /// Of a process: how it ended, and what `waitid` says of that in the upper half.
    End,
    /// It queues signals: number, and the value in the upper half.
    Signal,
    /// It counts, and each one is an event.
    Each,
}

impl Taking {
    fn of(number: u32) -> Taking {
        let all = [
            Taking::Flags,
            Taking::Count,
            Taking::End,
            Taking::Signal,
            Taking::Each,
        ];
        all[number as usize % all.len()]
    }
}

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
    /// How often it was woken, and has not asked yet.
    pub(crate) woken: AtomicU32,
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
    lent: Lent,
    slots: [Slot; EVENTS],
    pub(crate) clients: [ClientSlot; CLIENTS],
    /// [`crate::fork::process`]
    pub(crate) process: u64,
}

/// In use by whoever has it, until [`Slots::leave`].
#[derive(Clone, Copy)]
struct Entered(usize);

fn token(index: usize, generation: u64) -> u64 {
    generation << 32 | index as u64
}

impl Slots {
    pub(crate) fn new(process: u64) -> std::io::Result<Slots> {
        use rustix::event::{EventfdFlags, eventfd};
        Ok(Slots {
            set: epoll::create(CreateFlags::CLOEXEC)?,
            ended: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            left: AtomicBool::new(false),
            lent: Lent::default(),
            slots: std::array::from_fn(|_| Slot::new()),
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
        self.lent.lend(thread, longest, || self.is_left());
    }

    /// Whether nobody has looked, and found no more, since [`Slots::are_left`].
    pub(crate) fn is_left(&self) -> bool {
        self.left.load(SeqCst)
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
        let word = slot.word.fetch_add(CLOSING - OPEN, SeqCst);
        debug_assert_eq!(word & PHASE, OPEN);
        if let Some(descriptor) = self.descriptor(entered).filter(|_| !in_child) {
            // It is in one of them, which would not forget it while a child has the descriptor.
            let _ = epoll::delete(&self.set, descriptor);
            let _ = epoll::delete(alone, descriptor);
        }
        self.leave(entered);
    }

    fn enter(&self, token: u64) -> Option<Entered> {
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

    /// The slot with this number, whatever its generation.
    fn enter_number(&self, number: u32) -> Option<Entered> {
        let word = self.slots.get(number as usize)?.word.load(SeqCst);
        self.enter(token(number as usize, word >> 32))
    }

    fn leave(&self, Entered(index): Entered) {
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

    fn descriptor(&self, Entered(index): Entered) -> Option<BorrowedFd<'_>> {
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
            self.leave(entered);
        }
    }

    /// Which handler an event has, and its priority.
    pub(crate) fn handler(&self, number: u32) -> Option<(u32, u8)> {
        let entered = self.enter_number(number)?;
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

    /// Of the event that has this number now.
    pub(crate) fn count_number(&self, number: u32, what: Count) {
        self.count(token(number as usize, 0), what, 1);
    }

    pub(crate) fn counted(&self, token: u64, what: Count) -> u64 {
        let slot = self.slots.get(token as u32 as usize);
        slot.map_or(0, |slot| slot.counters[what as usize].load(Relaxed))
    }

    fn priority(&self, token: u64) -> u32 {
        let slot = self.slots.get(token as u32 as usize);
        slot.map_or(0, |slot| slot.priority.load(Relaxed))
    }

    /// Takes what happened, unless somebody else has. The slot is in use until the handler was
    /// called.
    fn take(&self, found: Found) -> Option<Claimed> {
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
            event: entered.0 as u32,
            data,
            offset: slot.offset.load(Relaxed),
            token: found.token,
        })
    }

    fn handled(&self, token: u64, by: By, how: Handled) {
        let what = match (how, by) {
            (Handled::Returned | Handled::Promoted, By::Current) => Count::ByCurrent,
            (Handled::Returned | Handled::Promoted, By::Dispatcher) => Count::ByDispatcher,
            (Handled::Skipped, _) => Count::Skipped,
            (Handled::Ended, _) => Count::Faults,
        };
        self.count(token, what, 1);
        self.leave(Entered(token as u32 as usize));
        if how == Handled::Ended && by == By::Current {
            // An ordinary thread is to tell it.
            let _ = rustix::io::write(&self.ended, &1u64.to_ne_bytes());
        }
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

/// What a counting descriptor has counted, which nobody else gets; `None` for nothing. Whoever has
/// it, too, may have made it one that waits: so this says for itself that it does not.
fn count_of(descriptor: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes = [0; 8];
    let mut buffers = [IoSliceMut::new(&mut bytes)];
    // An offset of -1 is the file's own.
    let read = preadv2(descriptor, &mut buffers, u64::MAX, ReadWriteFlags::NOWAIT);
    let read = match read {
        // Timers do not know the flag before Linux 6.10; and nobody else has those.
        Err(rustix::io::Errno::OPNOTSUPP) => rustix::io::read(descriptor, &mut bytes),
        read => read,
    };
    (read == Ok(8)).then(|| u64::from_ne_bytes(bytes))
}

/// How a process ended. It stays for whoever has started it.
fn end_of(descriptor: BorrowedFd<'_>) -> Option<u64> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let (code, status) = match waitid(WaitId::PidFd(descriptor), how) {
        Ok(Some(status)) => (
            status.raw_code(),
            status.exit_status().or(status.terminating_signal()),
        ),
        Ok(None) => return None,
        // It is no child of this process, or was waited for already: it has ended all the same.
        Err(_) => (0, None),
    };
    Some(u64::from(code as u32) << 32 | u64::from(status.unwrap_or(0) as u32))
}

/// A signal that was queued.
fn signal_of(descriptor: BorrowedFd<'_>) -> Option<u64> {
    /// Of `struct signalfd_siginfo`: its length, and where its `ssi_int` is.
    const INFO: usize = 128;
    const VALUE: usize = 44;
    let mut bytes = [0; INFO];
    let read = rustix::io::read(descriptor, &mut bytes);
    let word = |at: usize| {
        let word = bytes[at..].first_chunk().copied().unwrap_or_default();
        u64::from(u32::from_ne_bytes(word))
    };
    (read == Ok(INFO)).then(|| word(VALUE) << 32 | word(0))
}

#[derive(Clone, Copy)]
struct Found {
    token: u64,
    flags: u32,
}

/// One of those who look: a thread that is attached, or the dispatcher.
pub(crate) struct Claims {
    slots: Arc<Slots>,
    by: By,
    /// Found in the last look and not taken yet: the next one is the last.
    batch: [Found; BATCH],
    left: usize,
    /// By which the kernel's program says that there is something.
    signals: Option<Signals>,
}

impl Claims {
    pub(crate) fn new(slots: &Arc<Slots>, by: By, signals: Option<Signals>) -> Claims {
        Claims {
            slots: slots.clone(),
            by,
            batch: [Found { token: 0, flags: 0 }; BATCH],
            left: 0,
            signals,
        }
    }

    /// The dispatcher was told of an event by its own set.
    pub(crate) fn add(&mut self, token: u64, flags: u32) {
        if self.left < BATCH {
            self.batch[self.left] = Found { token, flags };
            self.left += 1;
        }
    }

    /// Looks, without waiting. False if there is nothing.
    fn look(&mut self) -> bool {
        let nothing = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut found = [nothing; BATCH];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let many = epoll::wait(&self.slots.set, &mut found, Some(&now)).unwrap_or(0);
        if many == 0 {
            self.slots.left.store(false, SeqCst);
            self.slots.lent.give_back();
            return false;
        }
        // Each priority is read once: it may change meanwhile, and a sort needs one order.
        let mut keys = [0; BATCH];
        for (at, event) in found[..many].iter().enumerate() {
            let (flags, data) = (event.flags, event.data);
            let one = Found {
                token: data.u64(),
                flags: flags.bits(),
            };
            let key = self.slots.priority(one.token);
            let place = keys[..at].partition_point(|&other| other <= key);
            keys.copy_within(place..at, place + 1);
            self.batch.copy_within(place..at, place + 1);
            (keys[place], self.batch[place]) = (key, one);
        }
        self.left = many;
        true
    }
}

impl Claims {
    /// As [`Sources::claim`], of what was found already.
    pub(crate) fn claim_found(&mut self) -> Option<Claimed> {
        while self.left > 0 {
            self.left -= 1;
            let found = self.batch[self.left];
            if let Some(claimed) = self.slots.take(found) {
                let taking = &self.slots.slots[claimed.event as usize].taking;
                if Taking::of(taking.load(Relaxed)) == Taking::Signal {
                    // More may be queued, for which there is no other edge.
                    self.left += 1;
                }
                return Some(claimed);
            }
        }
        None
    }
}

impl Sources for Claims {
    fn signalled(&mut self) -> bool {
        self.signals.as_ref().is_some_and(Signals::taken)
    }

    fn claim(&mut self) -> Option<Claimed> {
        loop {
            let claimed = self.claim_found();
            if claimed.is_some() || !self.look() {
                return claimed;
            }
        }
    }

    fn posted(&mut self, event: u32, data: u64) -> Claimed {
        let entered = self.slots.enter_number(event);
        let slot = entered.map(|Entered(index)| &self.slots.slots[index]);
        Claimed {
            event,
            data,
            offset: slot.map_or(u32::MAX, |slot| slot.offset.load(Relaxed)),
            token: slot.map_or(u64::MAX, |slot| {
                token(event as usize, slot.word.load(SeqCst) >> 32)
            }),
        }
    }

    fn handled(&mut self, claimed: Claimed, how: Handled) {
        if claimed.token != u64::MAX {
            self.slots.handled(claimed.token, self.by, how);
        }
    }
}

impl Drop for Claims {
    /// What was found and not taken is found again by others.
    fn drop(&mut self) {
        if self.slots.process != crate::fork::process() {
            return;
        }
        for found in &self.batch[..self.left] {
            let Some(entered) = self.slots.enter(found.token) else {
                continue;
            };
            if let Some(descriptor) = self.slots.descriptor(entered) {
                let awaits = self.slots.slots[entered.0].awaits.load(Relaxed);
                let flags = EventFlags::from_bits_retain(awaits) | EventFlags::ET;
                let data = EventData::new_u64(found.token);
                let _ = epoll::modify(&self.slots.set, descriptor, data, flags);
            }
            self.slots.leave(entered);
        }
    }
}
