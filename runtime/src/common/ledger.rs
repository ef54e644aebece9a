//! What the processes that have a common domain have counted in it: words in front of its memory,
//! for those who look at it from outside ([`super::CommonMemory::view`]). Nothing is decided by
//! them. What is read is an allegation, as everything there.
//!
//! Each process writes its own sums, now and then; those of processes that are gone are kept in one
//! place, so that no sum decreases.
//!
//! ```text
//!   0      for each seat: sequence, handlers attached, events that wait, since when, sums
//!   2048   moves begun, moves done, sums of those that are gone
//!   2080   the image's file: bytes of its path, the path
//! ```

use postern_gates::map::SharedWords;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant, SystemTime};

/// Words of a ledger, whole pages.
pub(crate) const WORDS: usize = 3 * 1024;
/// Words for each seat.
const SEAT: usize = 32;
const SEATS: usize = 64;
/// Words of a seat.
const SEQUENCE: usize = 0;
const ATTACHED: usize = 1;
const WAITING: usize = 2;
const SINCE: usize = 4;
const SUMS: usize = 6;
const _: () = assert!(SUMS + 2 * Tally::SUMS <= SEAT);
/// Words behind the seats.
const BEGUN: usize = SEATS * SEAT;
const DONE: usize = BEGUN + 1;
const GONE: usize = BEGUN + 2;
const PATH: usize = BEGUN + 32;
const _: () = assert!(GONE + 2 * Tally::SUMS <= PATH);
/// Longest path that is noted, in bytes.
const LONGEST_PATH: usize = 1020;
const _: () = assert!(PATH + 1 + LONGEST_PATH / 4 <= WORDS);
/// How often is looked for a moment at which nobody writes. One that was killed while it did leaves
/// none.
const LOOKS: u32 = 50;
/// How long is looked at most, and then once more: one that writes all the time leaves none,
/// either.
const LONGEST_LOOK: Duration = Duration::from_millis(20);

/// What a common domain's processes have counted. A process adds what it did about once a second,
/// and when it leaves; of one that is killed, the last part is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommonTally {
    /// Calls that entered.
    pub calls: u64,
    /// Calls and upcalls that ended in a fault.
    pub faults: u64,
    /// Upcalls whose handlers returned.
    pub delivered: u64,
    /// Events whose data took the place of an earlier one's.
    pub coalesced: u64,
    /// Events for which there was no place.
    pub dropped: u64,
    /// Events that came when the domain let nobody in.
    pub skipped: u64,
    /// Handlers that were ended.
    pub ended: u64,
}
type Tally = CommonTally;

impl CommonTally {
    const SUMS: usize = 7;

    fn sums(&self) -> [u64; Self::SUMS] {
        [
            self.calls,
            self.faults,
            self.delivered,
            self.coalesced,
            self.dropped,
            self.skipped,
            self.ended,
        ]
    }

    fn of(sums: [u64; Self::SUMS]) -> CommonTally {
        let [calls, faults, delivered, coalesced, dropped, skipped, ended] = sums;
        CommonTally {
            calls,
            faults,
            delivered,
            coalesced,
            dropped,
            skipped,
            ended,
        }
    }

    /// Both together. Forged ones may be as large as can be.
    #[must_use]
    pub fn plus(&self, other: &CommonTally) -> CommonTally {
        let other = other.sums();
        let mut sums = self.sums();
        for (sum, more) in sums.iter_mut().zip(other) {
            *sum = sum.saturating_add(more);
        }
        CommonTally::of(sums)
    }
}

/// What a process says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Threads that are attached to handlers.
    pub(crate) attached: u32,
    /// Events that wait for them.
    pub(crate) waiting: u32,
    /// Since it has its seat.
    pub(crate) since: Option<SystemTime>,
    pub(crate) tally: CommonTally,
}

/// The words, as one process has them.
#[derive(Debug)]
pub(crate) struct Ledger {
    words: Arc<SharedWords>,
    first: usize,
}

impl Ledger {
    /// The words from the one with this number on.
    pub(crate) fn new(words: &Arc<SharedWords>, first: usize) -> Ledger {
        Ledger {
            words: Arc::clone(words),
            first,
        }
    }

    fn word(&self, number: usize) -> &AtomicU32 {
        // All numbers here are below WORDS, and so many were taken.
        let word = self.words.word(self.first + number);
        word.expect("a word of the ledger")
    }

    fn get(&self, number: usize) -> u32 {
        self.word(number).load(SeqCst)
    }

    fn put(&self, number: usize, value: u32) {
        self.word(number).store(value, SeqCst);
    }

    fn get_long(&self, number: usize) -> u64 {
        u64::from(self.get(number)) | u64::from(self.get(number + 1)) << 32
    }

    fn put_long(&self, number: usize, value: u64) {
        self.put(number, value as u32);
        self.put(number + 1, (value >> 32) as u32);
    }

    fn seat(seat: u32) -> usize {
        (seat as usize % SEATS) * SEAT
    }

    fn sums(&self, first: usize) -> CommonTally {
        CommonTally::of(std::array::from_fn(|at| self.get_long(first + 2 * at)))
    }

    /// A process begins at a seat that is its own.
    pub(crate) fn begin(&self, seat: u32) {
        let first = Self::seat(seat);
        (first..first + SEAT).for_each(|number| self.put(number, 0));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.put_long(first + SINCE, now.map_or(0, |since| since.as_secs()));
    }

    /// The seat's owner says what it has done.
    pub(crate) fn publish(&self, seat: u32, (attached, waiting): (u32, u32), tally: &CommonTally) {
        let first = Self::seat(seat);
        let sequence = self.get(first + SEQUENCE) | 1;
        self.put(first + SEQUENCE, sequence);
        self.put(first + ATTACHED, attached);
        self.put(first + WAITING, waiting);
        for (at, sum) in tally.sums().into_iter().enumerate() {
            self.put_long(first + SUMS + 2 * at, sum);
        }
        self.put(first + SEQUENCE, sequence.wrapping_add(1));
    }

    /// A process is gone: what it did is kept with that of others. The caller has the seat.
    pub(crate) fn retire(&self, seat: u32) {
        let first = Self::seat(seat);
        self.word(BEGUN).fetch_add(1, SeqCst);
        for (at, sum) in self.sums(first + SUMS).sums().into_iter().enumerate() {
            // Others may add at the same time; who carries is who went past the end.
            let low = self
                .word(GONE + 2 * at)
                .fetch_add(sum as u32, SeqCst)
                .checked_add(sum as u32);
            let high = ((sum >> 32) as u32).wrapping_add(u32::from(low.is_none()));
            self.word(GONE + 2 * at + 1).fetch_add(high, SeqCst);
        }
        (first..first + SEAT).for_each(|number| self.put(number, 0));
        self.word(DONE).fetch_add(1, SeqCst);
    }

    /// What is said at a seat.
    pub(crate) fn entry(&self, seat: u32) -> Entry {
        let first = Self::seat(seat);
        let read = || Entry {
            attached: self.get(first + ATTACHED),
            waiting: self.get(first + WAITING),
            since: match self.get_long(first + SINCE) {
                0 => None,
                since => SystemTime::UNIX_EPOCH
                    .checked_add(Duration::from_secs(since))
                    .filter(|since| *since <= SystemTime::now()),
            },
            tally: self.sums(first + SUMS),
        };
        settled(
            || self.get(first + SEQUENCE),
            |sequence| sequence % 2 == 0,
            read,
        )
    }

    /// What `read` finds, and what those that are gone have done, with nobody leaving meanwhile.
    pub(crate) fn with_gone<T>(&self, read: impl Fn() -> T) -> (T, CommonTally) {
        settled(
            || (self.get(BEGUN), self.get(DONE)),
            |(begun, done)| begun == done,
            || (read(), self.sums(GONE)),
        )
    }

    /// Notes the path of the image's file, if it is not too long.
    pub(crate) fn set_path(&self, path: &Path) {
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.len() > LONGEST_PATH {
            return;
        }
        for (at, chunk) in bytes.chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.put(PATH + 1 + at, u32::from_le_bytes(word));
        }
        self.put(PATH, bytes.len() as u32);
    }

    /// Where the image's file is said to be: an absolute path, of whatever.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let length = self.get(PATH) as usize;
        if length > LONGEST_PATH {
            return None;
        }
        let words = (0..length.div_ceil(4)).map(|at| self.get(PATH + 1 + at));
        let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        bytes.truncate(length);
        let path = PathBuf::from(String::from_utf8(bytes).ok()?);
        path.is_absolute().then_some(path)
    }
}

/// What `read` finds while the state is at rest before, and the same behind it; after some looks,
/// whatever it finds.
fn settled<S: PartialEq + Copy, T>(
    state: impl Fn() -> S,
    rests: impl Fn(S) -> bool,
    read: impl Fn() -> T,
) -> T {
    let begun = Instant::now();
    for _ in 0..LOOKS {
        if begun.elapsed() > LONGEST_LOOK {
            break;
        }
        let before = state();
        if rests(before) {
            let found = read();
            if state() == before {
                return found;
            }
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    read()
}

#[cfg(test)]
mod tests {
    use super::*;
    use postern_gates::machine;
    use std::os::fd::AsFd;

    fn ledger() -> Ledger {
        let file = machine::memory_file(c"postern-test", false).unwrap();
        machine::size(&file, 4 * WORDS as u64).unwrap();
        machine::seal_size(&file).unwrap();
        let words = SharedWords::of(file.as_fd(), 4 * WORDS).unwrap();
        Ledger::new(&Arc::new(words), 0)
    }

    #[test]
    fn what_was_counted_stays_when_a_process_is_gone() {
        let ledger = ledger();
        ledger.begin(3);
        let tally = CommonTally {
            calls: u64::from(u32::MAX),
            delivered: 7,
            ..CommonTally::default()
        };
        ledger.publish(3, (1, 2), &tally);
        let entry = ledger.entry(3);
        assert_eq!((entry.attached, entry.waiting), (1, 2));
        assert!(entry.since.is_some() && entry.tally == tally);
        ledger.retire(3);
        assert_eq!(ledger.entry(3), Entry::default());
        ledger.begin(3);
        ledger.publish(3, (0, 0), &tally);
        ledger.retire(3);
        let ((), gone) = ledger.with_gone(|| ());
        assert_eq!((gone.calls, gone.delivered), (2 * tally.calls, 14));
    }

    /// All seats say that they are being written, and somebody is leaving all the time.
    #[test]
    fn nobody_who_writes_is_waited_for() {
        let ledger = ledger();
        (0..64).for_each(|seat| ledger.put(Ledger::seat(seat) + SEQUENCE, 1));
        let looks = std::cell::Cell::new(0);
        ledger.with_gone(|| {
            looks.set(looks.get() + 1);
            ledger.put(BEGUN, looks.get());
            ledger.put(DONE, looks.get());
            (0..64).for_each(|seat| _ = ledger.entry(seat));
        });
        // Each seat alone takes its looks' time.
        assert_eq!(looks.get(), 2);
    }

    #[test]
    fn whatever_stands_there_is_read() {
        let ledger = ledger();
        (0..WORDS).for_each(|number| ledger.put(number, u32::MAX));
        let entry = ledger.entry(63);
        assert_eq!((entry.since, entry.tally.calls), (None, u64::MAX));
        assert_eq!(entry.tally.plus(&entry.tally).ended, u64::MAX);
        assert_eq!(ledger.path(), None);
        ledger.put(PATH, 8);
        assert_eq!(ledger.path(), None);
        ledger.set_path(Path::new("relative"));
        assert_eq!(ledger.path(), None);
        ledger.set_path(Path::new("/a/path.px"));
        assert_eq!(ledger.path(), Some("/a/path.px".into()));
    }
}
