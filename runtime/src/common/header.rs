//! What stands in front of a common domain's memory, in its file: for the runtimes of the processes
//! that have it. No window shows it, so no extension writes it.
//!
//! Whoever has the file can write anything here at any time. So what is read is an allegation:
//! numbers of which a former reading says nothing, each checked where it is used. A forged one can
//! close the domain, or leave it open after what should have closed it; a process that has the file
//! can do the same with the domain's own memory. It reaches nothing else of a process.
//!
//! ```text
//!   0      header: what is below, then one seat for each process
//!   4 KiB  who is inside: for each seat and thread the offset of the function that was entered, or 0
//!   LEDGER what each process has counted, for those who look from outside: ledger.rs
//!   RELAY  events of one process for threads of others: relay.rs
//!   DATA   the window from the image's data to the end of the heap
//! ```

use super::ledger::{self, Ledger};
use super::relay::{self, Relay};
use postern_gates::block::Inside;
use postern_gates::control::MAX_THREADS;
use postern_gates::machine;
use postern_gates::map::SharedWords;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Processes that can have the memory at once.
pub(crate) const SEATS: u32 = relay::SEATS;
/// Words of the header's page.
const PAGE_WORDS: usize = 1024;
/// Words that a seat has to say who is inside.
const INSIDE_WORDS: usize = 4096;
const _: () = assert!(MAX_THREADS <= INSIDE_WORDS);
/// The ledger's first word.
const LEDGER: usize = PAGE_WORDS + SEATS as usize * INSIDE_WORDS;
/// The relay's first word.
const RELAY: usize = LEDGER + ledger::WORDS;
/// Where the window's data begins in the file.
pub(crate) const DATA: u64 = 4 * (RELAY + relay::WORDS) as u64;

/// The first word of every such file. It changes with the form of the rest.
const MAGIC: u32 = u32::from_le_bytes(*b"pcm3");

/// Numbers of words.
const PHASE: usize = 1;
const GENERATION: usize = 2;
const EVENTS: usize = 3;
const LEADER: usize = 4;
const ATTEMPT: usize = 5;
const HURT: usize = 6;
const END_INSIDE: usize = 7;
const WHY: usize = 8;
const SURVIVED: usize = 11;
const LAYOUT: usize = 16;
const DIGEST: usize = 32;
const FIRST_SEAT: usize = 64;
/// Words of a seat.
const SEAT: usize = 4;
const _: () = assert!(FIRST_SEAT + SEATS as usize * SEAT <= PAGE_WORDS);

/// A process that has a seat, or had it: when its end is told, the seat may be another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    pub(crate) seat: u32,
    pub(crate) pid: u32,
}

/// What all processes agree on about the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum CommonPhase {
    /// Its static constructors have not run.
    New = 0,
    /// They run, in one process.
    Constructing = 1,
    /// Calls are let in.
    Open = 2,
    /// Nobody enters before a reset.
    Poisoned = 3,
    /// One process resets it; the others keep their threads out, and say so.
    Resetting = 4,
}

impl CommonPhase {
    /// The phase with this number; those that there are not are forged.
    fn of(number: u32) -> CommonPhase {
        match number {
            0 => CommonPhase::New,
            1 => CommonPhase::Constructing,
            2 => CommonPhase::Open,
            4 => CommonPhase::Resetting,
            _ => CommonPhase::Poisoned,
        }
    }
}

/// What becomes of a common domain when a process ends while one of its threads is inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndInside {
    /// It is poisoned until somebody resets it: nobody knows what is half done.
    #[default]
    Poison,
    /// It goes on, and the end is counted: for extensions whose every step leaves their data whole.
    /// A lock that the thread had stays locked.
    Survive,
}

/// Where things lie in the window, the same in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommonLayout {
    /// Where common memory begins: the image's data.
    pub(crate) data: u32,
    /// End of what the image's file has of it.
    pub(crate) data_file_end: u32,
    /// First offset of the heap.
    pub(crate) heap_start: u32,
    /// End of the heap, and of common memory.
    pub(crate) heap_end: u32,
    /// Bytes of each data stack.
    pub(crate) stack_size: u32,
    /// Where the data stacks of the first seat begin.
    pub(crate) stacks: u32,
    /// Bytes for the data stacks of each seat.
    pub(crate) span: u32,
}

impl CommonLayout {
    /// Bytes of common memory in the window.
    pub(crate) fn bytes(&self) -> u32 {
        self.heap_end - self.data
    }

    /// Length of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        DATA + u64::from(self.bytes())
    }

    /// Where the data stacks of a seat lie.
    pub(crate) fn zone(&self, seat: u32) -> (u32, u32) {
        let start = self.stacks + seat * self.span;
        (start, start + self.span)
    }

    fn words(&self) -> [u32; 7] {
        [
            self.data,
            self.data_file_end,
            self.heap_start,
            self.heap_end,
            self.stack_size,
            self.stacks,
            self.span,
        ]
    }
}

/// Why a common domain is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A process ended while one of its threads was inside this function.
    Killed { pid: u32, function: u32 },
    /// A call of this process ended in a fault; the number is the kind's.
    Fault { pid: u32, kind: u32 },
    /// The static constructors did not return.
    Constructors { pid: u32 },
    /// A process ended, or failed, while it reset the domain.
    Reset { pid: u32 },
    /// Nobody said.
    Unknown,
}

impl Why {
    fn words(self) -> [u32; 3] {
        match self {
            Why::Killed { pid, function } => [1, pid, function],
            Why::Fault { pid, kind } => [2, pid, kind],
            Why::Constructors { pid } => [3, pid, 0],
            Why::Reset { pid } => [4, pid, 0],
            Why::Unknown => [0; 3],
        }
    }

    fn of(words: [u32; 3]) -> Why {
        let pid = words[1];
        match words[0] {
            1 => Why::Killed {
                pid,
                function: words[2],
            },
            2 => Why::Fault {
                pid,
                kind: words[2],
            },
            3 => Why::Constructors { pid },
            4 => Why::Reset { pid },
            _ => Why::Unknown,
        }
    }
}

/// The words, as one process has them.
#[derive(Debug)]
pub(crate) struct Header(Arc<SharedWords>);

impl Header {
    /// Bytes in front of the window's data.
    pub(crate) const BYTES: usize = DATA as usize;

    /// Takes the words of a file.
    pub(crate) fn new(words: SharedWords) -> Header {
        Header(Arc::new(words))
    }

    /// Fills in those of a new file.
    pub(crate) fn fill(&self, layout: &CommonLayout, digest: &[u8; 32]) {
        for (at, word) in layout.words().into_iter().enumerate() {
            self.put(LAYOUT + at, word);
        }
        for (at, bytes) in digest.chunks_exact(4).enumerate() {
            let word = bytes.try_into().map_or(0, u32::from_le_bytes);
            self.put(DIGEST + at, word);
        }
        self.put(0, MAGIC);
    }

    /// Whether the file says that it is one of these.
    pub(crate) fn is_known(&self) -> bool {
        self.get(0) == MAGIC
    }

    /// What it says about where things lie: nothing is checked.
    pub(crate) fn layout(&self) -> CommonLayout {
        let word = |at| self.get(LAYOUT + at);
        CommonLayout {
            data: word(0),
            data_file_end: word(1),
            heap_start: word(2),
            heap_end: word(3),
            stack_size: word(4),
            stacks: word(5),
            span: word(6),
        }
    }

    /// The hash of the image whose state it is.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut digest = [0; 32];
        for (at, bytes) in digest.chunks_exact_mut(4).enumerate() {
            bytes.copy_from_slice(&self.get(DIGEST + at).to_le_bytes());
        }
        digest
    }

    fn word(&self, number: usize) -> &AtomicU32 {
        // All numbers here are below the length that the words were taken with.
        self.0.word(number).expect("a word of the header")
    }

    fn get(&self, number: usize) -> u32 {
        self.word(number).load(SeqCst)
    }

    fn put(&self, number: usize, value: u32) {
        self.word(number).store(value, SeqCst);
    }

    pub(crate) fn phase(&self) -> CommonPhase {
        CommonPhase::of(self.get(PHASE))
    }

    /// Changes the phase, and tells all processes.
    pub(crate) fn set_phase(&self, phase: CommonPhase) {
        self.put(PHASE, phase as u32);
        self.tell();
    }

    fn change(&self, from: CommonPhase, to: CommonPhase) -> bool {
        let word = self.word(PHASE);
        let done = word.compare_exchange(from as u32, to as u32, SeqCst, SeqCst);
        done.is_ok()
    }

    /// Open, New, Constructing → Poisoned, with the reason. True if this call did it. While
    /// somebody resets it, it is noted, for the case that nothing comes of the reset.
    pub(crate) fn poison(&self, why: Why) -> bool {
        use CommonPhase::{Poisoned, Resetting};
        /// More changes in between are made by whoever wants to keep this from being done.
        const TRIES: u32 = 100;
        for _ in 0..TRIES {
            match self.phase() {
                Poisoned => return false,
                Resetting => {
                    self.because(why);
                    self.put(HURT, 1);
                    if self.phase() == Resetting {
                        return false;
                    }
                }
                phase if self.change(phase, Poisoned) => {
                    self.because(why);
                    self.tell();
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    /// Says what becomes of it when a process ends inside.
    pub(crate) fn set_end_inside(&self, what: EndInside) {
        self.put(END_INSIDE, what as u32);
    }

    /// How many ends of processes inside it has survived.
    pub(crate) fn survived(&self) -> u32 {
        self.get(SURVIVED)
    }

    /// Whether it goes on when a process has ended inside.
    pub(crate) fn survives(&self) -> bool {
        self.get(END_INSIDE) == EndInside::Survive as u32
    }

    /// A process has ended inside.
    pub(crate) fn ended_inside(&self, why: Why) {
        if self.survives() {
            self.word(SURVIVED).fetch_add(1, SeqCst);
        } else {
            self.poison(why);
        }
    }

    /// Open, Poisoned → Resetting, by whoever has the turn: the phase before. Any other one is
    /// forged, as is a number that is none, for nobody else has the turn; a reset ends that.
    pub(crate) fn begin_reset(&self) -> Option<CommonPhase> {
        use CommonPhase::{Open, Poisoned, Resetting};
        const TRIES: u32 = 100;
        self.put(HURT, 0);
        let word = self.word(PHASE);
        (0..TRIES).find_map(|_| {
            let from = self.get(PHASE);
            let done = word.compare_exchange(from, Resetting as u32, SeqCst, SeqCst);
            done.ok().map(|_| match CommonPhase::of(from) {
                Open => Open,
                _ => Poisoned,
            })
        })
    }

    /// Resetting → as it was; Poisoned if it should have become that meanwhile.
    pub(crate) fn undo_reset(&self, before: CommonPhase) {
        self.set_phase(before);
        if self.word(HURT).swap(0, SeqCst) != 0 {
            self.poison(self.why());
        }
    }

    /// Notes why it is closed. The word that says what the others mean comes last.
    pub(crate) fn because(&self, why: Why) {
        for (at, word) in why.words().into_iter().enumerate().rev() {
            self.put(WHY + at, word);
        }
    }

    /// Why it is closed. Whoever closed it notes that just after; so it is waited for a moment.
    pub(crate) fn why(&self) -> Why {
        const LOOKS: u32 = 100;
        for _ in 0..LOOKS {
            let why = Why::of([0, 1, 2].map(|at| self.get(WHY + at)));
            if why != Why::Unknown {
                return why;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        Why::Unknown
    }

    /// How often it was reset.
    pub(crate) fn generation(&self) -> u32 {
        self.get(GENERATION)
    }

    /// One more reset.
    pub(crate) fn next_generation(&self) {
        self.word(GENERATION).fetch_add(1, SeqCst);
    }

    /// The process whose turn it was last.
    pub(crate) fn leader(&self) -> u32 {
        self.get(LEADER)
    }

    /// Says whose turn it is.
    pub(crate) fn set_leader(&self, pid: u32) {
        self.put(LEADER, pid);
    }

    /// Which attempt to reset it this is, or the last one was.
    pub(crate) fn attempt(&self) -> u32 {
        self.get(ATTEMPT)
    }

    /// One more attempt, which is no former one: its number.
    pub(crate) fn next_attempt(&self) -> u32 {
        self.word(ATTEMPT).fetch_add(1, SeqCst).wrapping_add(1)
    }

    /// How many events there were: changes with each.
    pub(crate) fn events(&self) -> u32 {
        self.get(EVENTS)
    }

    /// Wakes all who sleep in [`Header::await_event`], in every process.
    pub(crate) fn tell(&self) {
        self.word(EVENTS).fetch_add(1, SeqCst);
        machine::wake_all_shared(self.word(EVENTS));
    }

    /// Sleeps at most so long, until there is another event than `seen`.
    pub(crate) fn await_event(&self, seen: u32, longest: Duration) {
        machine::wait_at_most_shared(self.word(EVENTS), seen, longest);
    }

    /// The process that has a seat: its number there, which means nothing elsewhere.
    pub(crate) fn pid(&self, seat: u32) -> u32 {
        self.get(Self::seat(seat))
    }

    /// Says whose seat it is, and in which namespace that is its number.
    pub(crate) fn set_pid(&self, seat: u32, pid: u32, namespace: u32) {
        self.put(Self::seat(seat) + 2, namespace);
        self.put(Self::seat(seat), pid);
    }

    /// Where the number of a seat's process is its number; 0 is unknown.
    pub(crate) fn namespace(&self, seat: u32) -> u32 {
        self.get(Self::seat(seat) + 2)
    }

    /// What the process with this seat says about the reset that is being made.
    pub(crate) fn answer(&self, seat: u32) -> u32 {
        self.get(Self::seat(seat) + 1)
    }

    /// Says that.
    pub(crate) fn set_answer(&self, seat: u32, answer: u32) {
        self.put(Self::seat(seat) + 1, answer);
        self.tell();
    }

    fn seat(seat: u32) -> usize {
        FIRST_SEAT + seat.min(SEATS - 1) as usize * SEAT
    }

    fn first_inside(seat: u32) -> usize {
        PAGE_WORDS + seat.min(SEATS - 1) as usize * INSIDE_WORDS
    }

    /// The function that a thread of this seat is inside, if one is.
    pub(crate) fn inside(&self, seat: u32) -> Option<u32> {
        let first = Self::first_inside(seat);
        let mut words = (first..first + INSIDE_WORDS).map(|number| self.get(number));
        words.find(|&function| function != 0)
    }

    /// How many threads of this seat are inside which function.
    pub(crate) fn all_inside(&self, seat: u32) -> BTreeMap<u32, u32> {
        let first = Self::first_inside(seat);
        let mut threads = BTreeMap::new();
        for number in first..first + INSIDE_WORDS {
            match self.get(number) {
                0 => {}
                function => *threads.entry(function).or_insert(0) += 1,
            }
        }
        threads
    }

    /// What the processes have counted.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::new(&self.0, LEDGER)
    }

    /// By which events of one process get to threads of others.
    pub(crate) fn relay(&self) -> Relay {
        Relay::new(&self.0, RELAY)
    }

    /// The words of a seat by which the gates say who is inside.
    pub(crate) fn words_inside(&self, seat: u32) -> Option<Inside> {
        Inside::new(&self.0, Self::first_inside(seat))
    }

    /// As if the first thread of this seat were inside this function.
    #[cfg(test)]
    pub(crate) fn set_inside(&self, seat: u32, function: u32) {
        self.put(Self::first_inside(seat), function);
    }

    /// Nobody of this seat is inside.
    pub(crate) fn clear_inside(&self, seat: u32) {
        let first = Self::first_inside(seat);
        for number in first..first + INSIDE_WORDS {
            // What was never written shall cost no cache line.
            if self.get(number) != 0 {
                self.put(number, 0);
            }
        }
    }
}
