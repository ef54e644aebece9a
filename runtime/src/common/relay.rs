//! How an event of one process gets to a thread of another that has the same common domain: words
//! in front of its memory, in which threads are made known and events wait.
//!
//! ```text
//!   0        for each seat and client: the kernel's numbers of its thread, the thread's own number,
//!            how often it was woken
//!   16384    for each seat and event: the handler's export (plus one), its priority
//!   20480    for each seat: life, clients' places in use, signal for upcalls
//!   20736    the queue: state, event, life of its process, data, place in the order
//!   21248    next place in the order, the lock by which priority is lent
//! ```
//!
//! A process that ends leaves its seat to another one: the seat's *life* is another then, and what
//! the queue has of the former is nobody's.
//!
//! What stands here is an allegation, as everything there. It names no address and no offset: who
//! takes an event calls the handler of that number by its own image, whose type it has checked, and
//! who signals a thread has seen for itself that its process expects it
//! ([`crate::event`]). A forged event is one more call of a handler, which whoever can forge it can
//! make anyhow.

use postern_gates::map::SharedWords;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

/// Processes that can have the memory at once.
pub(crate) const SEATS: u32 = 64;
/// Words of all of it, whole pages.
pub(crate) const WORDS: usize = 21 * 1024;
/// Threads of one process that can be attached at once.
pub(crate) const CLIENTS: usize = 64;
/// Events that one process can have at once.
pub(crate) const EVENTS: usize = 64;
/// Events that wait at once.
pub(crate) const QUEUE: usize = 64;

const THREAD: usize = 4;
const HANDLERS: usize = SEATS as usize * CLIENTS * THREAD;
const SEAT: usize = HANDLERS + SEATS as usize * EVENTS;
const SEAT_WORDS: usize = 4;
const FIRST: usize = SEAT + SEATS as usize * SEAT_WORDS;
const SLOT: usize = 8;
const ORDER: usize = FIRST + QUEUE * SLOT;
const LENT: usize = ORDER + 1;
const _: () = assert!(LENT < WORDS);

/// Words of a seat.
const LIFE: usize = 0;
const PLACES: usize = 1;
const SIGNAL: usize = 2;
/// Words of the queue's slots.
const STATE: usize = 0;
const EVENT: usize = 1;
const ITS_LIFE: usize = 2;
const DATA: usize = 3;
const PLACE: usize = 5;

/// States of a slot. What there is besides is forged, and the slot is lost for good.
const FREE: u32 = 0;
/// A process fills it: with its seat.
const MADE: u32 = 1;
/// An event waits.
const FULL: u32 = 2;
/// A process has taken it: with its seat.
const TAKEN: u32 = 3;
/// How it ended waits for the event's process: with that.
const DONE: u32 = 4;

fn state(number: u32, with: u32) -> u32 {
    number | with << 8
}

/// A thread of some process that is attached, as is said there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    pub(crate) seat: u32,
    /// Its number, where its process runs.
    pub(crate) thread: u32,
}

/// What became of an event that another process took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Outcome {
    /// Its handler returned.
    Returned = 0,
    /// The domain let nobody in.
    Skipped = 1,
    /// The handler was ended.
    Ended = 2,
    /// Who had taken it is no more.
    Dropped = 3,
}

impl Outcome {
    fn of(number: u32) -> Outcome {
        match number {
            0 => Outcome::Returned,
            1 => Outcome::Skipped,
            2 => Outcome::Ended,
            _ => Outcome::Dropped,
        }
    }
}

/// An event that was taken, until it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The queue's slot.
    pub(crate) slot: usize,
    /// Its number among those of all processes.
    pub(crate) event: u32,
    pub(crate) data: u64,
}

/// The words, as one process has them.
#[derive(Clone, Debug)]
pub(crate) struct Relay {
    words: Arc<SharedWords>,
    first: usize,
}

impl Relay {
    /// The words from the one with this number on.
    pub(crate) fn new(words: &Arc<SharedWords>, first: usize) -> Relay {
        Relay {
            words: Arc::clone(words),
            first,
        }
    }

    fn word(&self, number: usize) -> &AtomicU32 {
        // All numbers here are below WORDS, and so many were taken.
        let word = self.words.word(self.first + number);
        word.expect("a word of the relay")
    }

    fn get(&self, number: usize) -> u32 {
        self.word(number).load(SeqCst)
    }

    fn put(&self, number: usize, value: u32) {
        self.word(number).store(value, SeqCst);
    }

    fn change(&self, number: usize, from: u32, to: u32) -> bool {
        let word = self.word(number);
        word.compare_exchange(from, to, SeqCst, SeqCst).is_ok()
    }

    fn seat(seat: u32, word: usize) -> usize {
        SEAT + (seat % SEATS) as usize * SEAT_WORDS + word
    }

    fn thread(seat: u32, client: usize) -> usize {
        ((seat % SEATS) as usize * CLIENTS + client % CLIENTS) * THREAD
    }

    fn slot(slot: usize) -> usize {
        FIRST + slot % QUEUE * SLOT
    }

    /// A thread of this seat's process is attached. It has the kernel's own numbers, of process and
    /// thread, and one where it runs.
    pub(crate) fn attach(&self, seat: u32, client: usize, numbers: u64, thread: u32) {
        let first = Self::thread(seat, client);
        self.put(first, numbers as u32);
        self.put(first + 1, (numbers >> 32) as u32);
        self.put(first + 2, thread);
        let places = client as u32 + 1;
        let word = self.word(Self::seat(seat, PLACES));
        word.fetch_max(places, SeqCst);
    }

    /// It is not any more.
    pub(crate) fn detach(&self, seat: u32, client: usize) {
        let first = Self::thread(seat, client);
        self.put(first + 2, 0);
        self.put(first, 0);
        self.put(first + 1, 0);
        let is_left = |client| self.get(Self::thread(seat, client) + 2) != 0;
        let places = (0..CLIENTS).rfind(|&client| is_left(client));
        let places = places.map_or(0, |client| client as u32 + 1);
        self.put(Self::seat(seat, PLACES), places);
    }

    fn places(&self, seat: u32) -> usize {
        (self.get(Self::seat(seat, PLACES)) as usize).min(CLIENTS)
    }

    /// Whether threads of this seat's process are attached.
    pub(crate) fn is_attached(&self, seat: u32) -> bool {
        self.places(seat) != 0
    }

    /// Which attached thread of another process than that of `own` the kernel numbers so.
    pub(crate) fn find(&self, own: u32, numbers: u64) -> Option<Attached> {
        let is_it = |first: usize| {
            self.get(first) == numbers as u32 && self.get(first + 1) == (numbers >> 32) as u32
        };
        (0..SEATS).filter(|&seat| seat != own).find_map(|seat| {
            let threads = 0..self.places(seat);
            let mut threads = threads.map(|client| Self::thread(seat, client));
            let found = threads.find(|&first| is_it(first))?;
            let thread = self.get(found + 2);
            (thread != 0).then_some(Attached { seat, thread })
        })
    }

    /// The signal by which the process of this seat is told.
    pub(crate) fn signal(&self, seat: u32) -> u32 {
        self.get(Self::seat(seat, SIGNAL))
    }

    /// Says which it is.
    pub(crate) fn set_signal(&self, seat: u32, signal: u32) {
        self.put(Self::seat(seat, SIGNAL), signal);
    }

    /// How often a client was woken and has not asked yet: a word to sleep at, of all processes.
    pub(crate) fn woken(&self, seat: u32, client: usize) -> &AtomicU32 {
        self.word(Self::thread(seat, client) + 3)
    }

    /// Whether a thread of any process is there as this client.
    pub(crate) fn is_client(&self, seat: u32, client: usize) -> bool {
        self.get(Self::thread(seat, client) + 2) != 0
    }

    /// Says which export handles an event of this seat's, and its priority; `None`: there is no
    /// such event any more.
    pub(crate) fn set_handler(&self, seat: u32, event: usize, handler: Option<(usize, u8)>) {
        let number = HANDLERS + (seat % SEATS) as usize * EVENTS + event % EVENTS;
        let word = handler.map_or(0, |(export, priority)| {
            (export as u32 + 1) & 0xff_ffff | u32::from(priority) << 24
        });
        self.put(number, word);
    }

    /// Which export handles the event with this number among those of all processes, and its
    /// priority.
    pub(crate) fn handler(&self, event: u32) -> Option<(usize, u8)> {
        let events = SEATS as usize * EVENTS;
        let word = self.get(HANDLERS + Some(event as usize).filter(|&event| event < events)?);
        let export = (word & 0xff_ffff).checked_sub(1)?;
        Some((export as usize, (word >> 24) as u8))
    }

    fn life(&self, seat: u32) -> u32 {
        self.get(Self::seat(seat, LIFE))
    }

    /// Whether the process whose event a slot has, or had, is no more.
    fn is_of_the_dead(&self, first: usize) -> bool {
        self.life(self.get(first + EVENT) / EVENTS as u32) != self.get(first + ITS_LIFE)
    }

    /// Takes a slot to fill, which is then [`Relay::fill`]ed or [`Relay::leave`]d.
    pub(crate) fn reserve(&self, by: u32) -> Option<usize> {
        (0..QUEUE).find(|&slot| {
            let first = Self::slot(slot);
            let now = self.get(first + STATE);
            let is_free =
                now == FREE || (now & 0xff == DONE || now == FULL) && self.is_of_the_dead(first);
            is_free && self.change(first + STATE, now, state(MADE, by))
        })
    }

    /// Nothing came of it.
    pub(crate) fn leave(&self, slot: usize, by: u32) {
        self.change(Self::slot(slot) + STATE, state(MADE, by), FREE);
    }

    /// The event waits from now on, which is one of this seat's.
    pub(crate) fn fill(&self, slot: usize, event: u32, data: u64) {
        let first = Self::slot(slot);
        self.put(first + EVENT, event);
        self.put(first + ITS_LIFE, self.life(event / EVENTS as u32));
        self.put(first + DATA, data as u32);
        self.put(first + DATA + 1, (data >> 32) as u32);
        let place = self.word(ORDER).fetch_add(1, SeqCst);
        self.put(first + PLACE, place);
        self.change(first + STATE, state(MADE, event / EVENTS as u32), FULL);
    }

    fn waiting(&self, of: Option<u32>) -> impl Iterator<Item = usize> {
        (0..QUEUE).filter(move |&slot| {
            let first = Self::slot(slot);
            let of_whom = |seat| self.get(first + EVENT) / EVENTS as u32 == seat;
            self.get(first + STATE) == FULL && of.is_none_or(of_whom) && !self.is_of_the_dead(first)
        })
    }

    /// Whether an event waits, of this seat or of any.
    pub(crate) fn waits(&self, of: Option<u32>) -> bool {
        self.waiting(of).next().is_some()
    }

    /// The process of a seat takes the event of the highest priority, of those the oldest.
    pub(crate) fn take(&self, by: u32, of: Option<u32>) -> Option<Taken> {
        /// Others may be faster, or keep this from being done.
        const TRIES: usize = 2 * QUEUE;
        for _ in 0..TRIES {
            let now = self.get(ORDER);
            let slot = self.waiting(of).max_by_key(|&slot| {
                let first = Self::slot(slot);
                let handler = self.handler(self.get(first + EVENT));
                let age = now.wrapping_sub(self.get(first + PLACE));
                (handler.map_or(0, |(_, priority)| priority), age)
            })?;
            let first = Self::slot(slot);
            if self.change(first + STATE, FULL, state(TAKEN, by)) {
                let word = |number| u64::from(self.get(first + number));
                return Some(Taken {
                    slot,
                    event: self.get(first + EVENT),
                    data: word(DATA) | word(DATA + 1) << 32,
                });
            }
        }
        None
    }

    /// What became of an event that the process of a seat had taken.
    pub(crate) fn settle(&self, slot: usize, by: u32, how: Outcome) {
        let to = state(DONE, how as u32);
        self.change(Self::slot(slot) + STATE, state(TAKEN, by), to);
    }

    /// The event's own process had taken it, and knows what became of it.
    pub(crate) fn forget(&self, slot: usize, by: u32) {
        self.change(Self::slot(slot) + STATE, state(TAKEN, by), FREE);
    }

    /// What became of the events of a seat since this was asked last.
    pub(crate) fn collect(&self, seat: u32, mut each: impl FnMut(u32, Outcome)) {
        for first in (0..QUEUE).map(Self::slot) {
            let now = self.get(first + STATE);
            let event = self.get(first + EVENT);
            let is_mine = event / EVENTS as u32 == seat && now & 0xff == DONE;
            if is_mine && !self.is_of_the_dead(first) && self.change(first + STATE, now, FREE) {
                each(event, Outcome::of(now >> 8));
            }
        }
    }

    /// The process of a seat is no more. The caller has the seat.
    pub(crate) fn bury(&self, seat: u32) {
        self.word(Self::seat(seat, LIFE)).fetch_add(1, SeqCst);
        for client in 0..self.places(seat) {
            self.put(Self::thread(seat, client) + 2, 0);
        }
        self.put(Self::seat(seat, PLACES), 0);
        (0..EVENTS).for_each(|event| self.set_handler(seat, event, None));
        for slot in 0..QUEUE {
            self.leave(slot, seat);
            self.settle(slot, seat, Outcome::Dropped);
        }
    }

    /// The lock by which whoever relays an event lends its priority.
    pub(crate) fn lent(&self) -> &AtomicU32 {
        self.word(LENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postern_gates::machine;
    use std::os::fd::AsFd;

    fn relay() -> Relay {
        let file = machine::memory_file(c"postern-test", false).unwrap();
        machine::size(&file, 4 * WORDS as u64).unwrap();
        machine::seal_size(&file).unwrap();
        let words = SharedWords::of(file.as_fd(), 4 * WORDS).unwrap();
        Relay::new(&Arc::new(words), 0)
    }

    fn add(relay: &Relay, event: u32, data: u64) {
        relay.fill(relay.reserve(event / 64).unwrap(), event, data);
    }

    #[test]
    fn threads_are_found_by_the_kernels_numbers() {
        let relay = relay();
        let numbers = 7 << 32 | 8;
        relay.attach(3, 5, numbers, 80);
        relay.attach(3, 1, 7 << 32 | 9, 90);
        let found = Attached {
            seat: 3,
            thread: 80,
        };
        assert_eq!(relay.find(0, numbers), Some(found));
        assert_eq!((relay.find(3, numbers), relay.find(0, 8)), (None, None));
        relay.detach(3, 5);
        assert_eq!((relay.find(0, numbers), relay.places(3)), (None, 2));
        relay.bury(3);
        assert_eq!(
            (relay.find(0, 7 << 32 | 9), relay.is_attached(3)),
            (None, false)
        );
    }

    #[test]
    fn events_are_taken_once_by_priority_and_age() {
        let relay = relay();
        relay.set_handler(2, 1, Some((4, 0)));
        relay.set_handler(2, 3, Some((5, 9)));
        assert_eq!(relay.handler(2 * 64 + 3), Some((5, 9)));
        add(&relay, 2 * 64 + 1, 10);
        add(&relay, 2 * 64 + 1, u64::MAX);
        add(&relay, 2 * 64 + 3, 12);
        assert!(relay.waits(Some(2)) && !relay.waits(Some(0)));
        let taken: Vec<_> = std::iter::from_fn(|| relay.take(1, None)).collect();
        let data: Vec<_> = taken.iter().map(|taken| taken.data).collect();
        assert_eq!(data, [12, 10, u64::MAX]);
        relay.settle(taken[0].slot, 1, Outcome::Returned);
        relay.settle(taken[1].slot, 1, Outcome::Ended);
        // One that has it no more says nothing of it.
        relay.settle(taken[2].slot, 5, Outcome::Returned);
        let mut told = Vec::new();
        relay.collect(2, |event, how| told.push((event, how)));
        told.sort_by_key(|(_, how)| *how as u32);
        assert_eq!(told, [(131, Outcome::Returned), (129, Outcome::Ended)]);
        // Who has the third is killed.
        relay.bury(1);
        relay.collect(2, |event, how| {
            assert_eq!((event, how), (129, Outcome::Dropped))
        });
        let free = || {
            (0..2 * QUEUE)
                .filter(|_| relay.reserve(9).is_some())
                .count()
        };
        assert_eq!((free(), free()), (QUEUE, 0));
        relay.bury(9);
        assert_eq!(free(), QUEUE);
    }

    #[test]
    fn events_of_a_process_that_is_no_more_are_nobodys() {
        let relay = relay();
        (0..QUEUE as u64).for_each(|data| add(&relay, 64, data));
        assert_eq!(relay.reserve(0), None);
        let taken = relay.take(0, None).unwrap();
        relay.bury(1);
        assert_eq!((relay.take(0, None), relay.waits(None)), (None, false));
        relay.settle(taken.slot, 0, Outcome::Returned);
        relay.collect(1, |_, _| panic!("of a former one"));
        (0..QUEUE as u64).for_each(|data| add(&relay, 64, data));
        assert_eq!(relay.reserve(0), None);
    }

    #[test]
    fn whatever_stands_there_is_read() {
        let relay = relay();
        for value in [u32::MAX, 2, 0x0203, 0xffff_ff04, 0x0100_0000] {
            (0..WORDS).for_each(|number| relay.put(number, value));
            let _ = relay.find(1, u64::from(value) << 32 | u64::from(value));
            let _ = (relay.reserve(0), relay.take(0, None), relay.handler(value));
            relay.collect(3, |_, _| {});
            relay.settle(usize::MAX, u32::MAX, Outcome::Ended);
            relay.bury(u32::MAX);
            relay.detach(u32::MAX, usize::MAX);
        }
    }
}
