//! Pipes: a ring in pages that both ends bind. Whoever finds it empty, or full, gives the processor
//! to the other end. Counts in the ring are the other's word: they are cut to what there is.
//!
//! **Nobody is woken**, so no wake-up is lost: who waits has slices, or somebody who gives it some,
//! and looks at the ring again in each. That the other end is known makes it fast, no more: an end
//! says who it is whenever it reads or writes, before it waits for the first time, so the one that
//! waits gives the rest of its slice to the one that has something to do. A number that is old, or
//! nonsense, costs a slice.
//!
//! **On several processors** a count is stored (release) after the bytes, and loaded (acquire)
//! before them: who sees that bytes are there sees them, and who sees that there is room knows that
//! they were read. Each count has one side that stores it. Whether the other end is there is asked
//! before the counts are believed to be the last ones: its last store comes before its end.

use core::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use postern_aegis::calls::Target;
use postern_aegis::{Error, PAGE, books};

use crate::ipc::area::PIPES;
use crate::ipc::ring::{Ring, SIZE};
use crate::ipc::slots::{self, READS, WRITES};
use crate::ipc::trusted;
use crate::ipc::wait::{Lock, Wait};

/// Bytes that are written without others' between.
pub const WHOLE: usize = PAGE;

/// Why nothing was done: numbers as C has them.
pub mod error {
    /// A signal came.
    pub const INTERRUPTED: i32 = 4;
    /// The counts are nonsense, which somebody who has the ring has written.
    pub const IO: i32 = 5;
    /// It would have to wait.
    pub const AGAIN: i32 = 11;
    /// This end is the other one.
    pub const BAD: i32 = 9;
    /// Nobody reads any more.
    pub const PIPE: i32 = 32;
}

/// An end of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    slot: usize,
    end: usize,
}

/// A new pipe: the end to read from, and the end to write to.
pub fn create() -> Result<[End; 2], Error> {
    let slot = slots::make()?;
    Ok([READS, WRITES].map(|end| End { slot, end }))
}

impl End {
    /// Whether it is read from.
    pub fn reads(&self) -> bool {
        self.end == READS
    }

    /// One more descriptor has it.
    pub fn again(&self) -> End {
        slots::add(self.slot, self.end);
        *self
    }

    /// One fewer has it.
    pub fn close(&self) {
        slots::remove(self.slot, self.end);
    }

    /// It as words, for descriptors.
    pub fn words(&self) -> [u64; 2] {
        [self.slot as u64, self.end as u64]
    }

    /// What [`End::words`] gave.
    pub fn of(words: [u64; 2]) -> End {
        let [slot, end] = words.map(|word| word as usize);
        End { slot, end: end & 1 }
    }

    /// Hands it to the program that replaces this one.
    pub fn pass(&self, to: Target) -> Result<[u64; 4], Error> {
        slots::pass(self.slot, self.end, to)
    }

    /// What was handed on.
    pub fn taken(words: [u64; 4]) -> Option<End> {
        slots::taken(words).map(|(slot, end)| End { slot, end })
    }

    /// Where its ring stands.
    pub fn address(&self) -> u64 {
        slots::address(self.slot)
    }

    /// Its place, and which end it is.
    pub fn place(&self) -> (usize, usize) {
        (self.slot, self.end)
    }

    /// The end of a place, whoever has it.
    pub fn at(slot: usize, end: usize) -> End {
        let slot = slot % PIPES;
        let end = end & 1;
        End { slot, end }
    }

    /// Gives the processor to the other end until there is something to do. False: there is no
    /// other end, and nothing to do. `looks` is called whenever this process has the processor.
    pub fn waits(&self, looks: impl Fn()) -> bool {
        let mut wait = Wait::default();
        loop {
            self.turn(&mut wait);
            looks();
            // Who writes has nothing to do without somebody who reads, whatever the counts say.
            if self.has_some() && (self.reads() || self.has_peer()) {
                return true;
            }
            if !self.has_peer() {
                // It may have written last.
                return self.reads() && self.has_some();
            }
        }
    }

    fn has_some(&self) -> bool {
        let ring = self.ring();
        let used = used(ring.head.load(Relaxed), ring.tail.load(Acquire));
        if self.reads() { used > 0 } else { used < SIZE }
    }

    fn ring(&self) -> &'static Ring {
        trusted::ring(self.slot)
    }

    /// Whether somebody has the other end.
    pub fn has_peer(&self) -> bool {
        slots::is_there(self.slot, 1 - self.end)
    }

    /// Whether an operation would not wait.
    pub fn is_ready(&self) -> bool {
        self.has_some() || !self.has_peer()
    }

    /// Gives the processor to the other end, which has said who it is.
    fn turn(&self, wait: &mut Wait) {
        let ring = self.ring();
        let peer = if self.reads() {
            &ring.writer
        } else {
            &ring.reader
        };
        wait.turn(peer.load(Relaxed) as u16);
    }

    /// Reads some bytes; 0: nobody writes any more. It waits for the first, unless `stops` says no.
    pub fn read(
        &self,
        to: *mut u8,
        length: usize,
        stops: impl Fn() -> Option<i32>,
    ) -> Result<usize, i32> {
        if !self.reads() {
            return Err(error::BAD);
        }
        let (ring, mut wait) = (self.ring(), Wait::default());
        ring.reader.store(books::own_number().into(), Relaxed);
        loop {
            let lock = Lock::take(&ring.reading, || stops().is_some());
            let Some(lock) = lock else {
                return Err(stops().unwrap_or(error::AGAIN));
            };
            let head = ring.head.load(Relaxed);
            let mut there = counted(head, ring.tail.load(Acquire))?;
            if there == 0 && length > 0 && !self.has_peer() {
                // It may have written last.
                there = counted(head, ring.tail.load(Acquire))?;
                if there == 0 {
                    return Ok(0);
                }
            }
            let count = there.min(length);
            if count > 0 || length == 0 {
                for (offset, index, bytes) in pieces(head, count) {
                    trusted::copy_out(self.slot, offset, to.wrapping_add(index), bytes);
                }
                ring.head.store(head.wrapping_add(count as u64), Release);
                return Ok(count);
            }
            drop(lock);
            if let Some(error) = stops() {
                return Err(error);
            }
            self.turn(&mut wait);
        }
    }

    /// Writes all bytes, or some, if `stops` says that it is not to wait for room.
    pub fn write(
        &self,
        from: *const u8,
        length: usize,
        stops: impl Fn() -> Option<i32>,
    ) -> Result<usize, i32> {
        if self.reads() {
            return Err(error::BAD);
        }
        let (ring, mut wait, mut done) = (self.ring(), Wait::default(), 0);
        ring.writer.store(books::own_number().into(), Relaxed);
        let least = if length <= WHOLE { length } else { 1 };
        let some = |done, error| if done > 0 { Ok(done) } else { Err(error) };
        while done < length {
            let Some(lock) = Lock::take(&ring.writing, || stops().is_some()) else {
                return some(done, stops().unwrap_or(error::AGAIN));
            };
            if !self.has_peer() {
                return some(done, error::PIPE);
            }
            let tail = ring.tail.load(Relaxed);
            let used = counted(ring.head.load(Acquire), tail);
            let room = SIZE - used.or_else(|error| some(done, error))?;
            if room >= least {
                let count = room.min(length - done);
                for (offset, index, bytes) in pieces(tail, count) {
                    trusted::copy_in(self.slot, offset, from.wrapping_add(done + index), bytes);
                }
                ring.tail.store(tail.wrapping_add(count as u64), Release);
                done += count;
                continue;
            }
            drop(lock);
            if let Some(error) = stops() {
                return some(done, error);
            }
            self.turn(&mut wait);
        }
        Ok(done)
    }
}

/// Bytes in the ring, whatever the counts say.
fn used(head: u64, tail: u64) -> usize {
    tail.wrapping_sub(head).min(SIZE as u64) as usize
}

/// The same, unless they are nonsense: then there would be bytes for ever, and no end.
fn counted(head: u64, tail: u64) -> Result<usize, i32> {
    let there = tail.wrapping_sub(head);
    match there > SIZE as u64 {
        true => Err(error::IO),
        false => Ok(there as usize),
    }
}

/// The one or two parts of the ring that so many bytes take: offset, bytes before it, bytes.
fn pieces(at: u64, count: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let offset = at as usize % SIZE;
    let first = count.min(SIZE - offset);
    let both = [(offset, 0, first), (0, first, count - first)];
    both.into_iter().filter(|(.., bytes)| *bytes > 0)
}
