//! Split virtqueues (section 2.7): buffers that are lent to a device, and come back.
//!
//! Invariant: which descriptors are free, which chain begins where and how much a device may write
//! to it stands in [`Queue`], never read from the shared pages. From those only the count of what
//! came back, and the entries up to it, are read, and both are compared with what is under way.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU64, fence};

/// Descriptors of a queue at most.
pub const SIZE: usize = 256;
/// Answers without sense after which a queue is dead.
pub const PATIENCE: u64 = 1000;

/// The words of a page, which the device reaches, too.
pub type Words = [AtomicU64; 512];

/// The three pages of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Pages<'a> {
    /// Buffers: 16 bytes each.
    pub descriptors: &'a Words,
    /// Chains that the device may use.
    pub available: &'a Words,
    /// Chains that it is done with.
    pub used: &'a Words,
}

/// A part of a chain: memory by its physical address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// The first byte.
    pub address: u64,
    /// How many.
    pub length: u32,
    /// Whether the device writes to it; otherwise it reads.
    pub written: bool,
}

/// A chain that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The chain, as [`Queue::add`] named it.
    pub chain: u16,
    /// Bytes that the device says it has written: not more than there was room for.
    pub length: u32,
}

/// A chain that is under way; no descriptors: none begins here.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    descriptors: u16,
    room: u32,
}

/// A queue.
#[derive(Debug)]
pub struct Queue<'a> {
    pages: Pages<'a>,
    size: u16,
    /// Of a free descriptor and of one in a chain the next one.
    next: [u16; SIZE],
    chains: [Chain; SIZE],
    free: u16,
    free_count: u16,
    /// Chains that were made available so far, and that came back.
    made: u16,
    seen: u16,
    under_way: u16,
    nonsense: u64,
    quiet: bool,
}

const NEXT: u64 = 1 << 32;
const WRITTEN: u64 = 1 << 33;
/// Of the available chains' flags: do not interrupt.
const QUIET: u64 = 1;

impl<'a> Queue<'a> {
    /// An empty queue of so many descriptors, a power of two up to [`SIZE`], in pages that no
    /// device uses.
    pub fn new(pages: Pages<'a>, size: u16) -> Option<Queue<'a>> {
        if !size.is_power_of_two() || usize::from(size) > SIZE {
            return None;
        }
        for page in [pages.descriptors, pages.available, pages.used] {
            page.iter().for_each(|word| word.store(0, Relaxed));
        }
        let mut next = [0; SIZE];
        for (index, next) in next.iter_mut().enumerate() {
            *next = (index as u16 + 1) % size;
        }
        Some(Queue {
            pages,
            size,
            next,
            chains: [Chain::default(); SIZE],
            free: 0,
            free_count: size,
            made: 0,
            seen: 0,
            under_way: 0,
            nonsense: 0,
            quiet: false,
        })
    }

    /// How many descriptors there are.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Descriptors that no chain has.
    pub fn room(&self) -> usize {
        self.free_count.into()
    }

    /// Chains that have not come back.
    pub fn under_way(&self) -> usize {
        self.under_way.into()
    }

    /// Answers that made no sense so far.
    pub fn nonsense(&self) -> u64 {
        self.nonsense
    }

    /// Whether the device talks so much nonsense that it is asked nothing more. Who has reset it
    /// takes back what is under way by [`Queue::end`].
    pub fn is_dead(&self) -> bool {
        self.nonsense >= PATIENCE
    }

    /// Lends a chain of buffers: those that the device reads first. Its name, below [`SIZE`], is
    /// the first descriptor's; `None` if there is no room, or nothing to lend. The device is to be
    /// told then.
    pub fn add(&mut self, buffers: &[Buffer]) -> Option<u16> {
        let (count, first) = (buffers.len(), self.free);
        if count == 0 || count > self.room() || self.is_dead() {
            return None;
        }
        let mut index = first;
        let mut room = 0u32;
        for (place, buffer) in buffers.iter().enumerate() {
            let next = self.next[usize::from(index)];
            let mut word = u64::from(buffer.length);
            if place + 1 < count {
                word |= NEXT | u64::from(next) << 48;
            }
            if buffer.written {
                word |= WRITTEN;
                room = room.saturating_add(buffer.length);
            }
            let at = 2 * usize::from(index);
            self.pages.descriptors[at].store(buffer.address, Relaxed);
            self.pages.descriptors[at + 1].store(word, Relaxed);
            index = next;
        }
        self.free = index;
        self.free_count -= count as u16;
        self.chains[usize::from(first)] = Chain {
            descriptors: count as u16,
            room,
        };
        self.publish(first);
        self.under_way += 1;
        Some(first)
    }

    /// Makes a chain available: its number first, then the count.
    fn publish(&mut self, chain: u16) {
        let place = 4 + 2 * usize::from(self.made % self.size);
        let (word, shift) = (&self.pages.available[place / 8], place % 8 * 8);
        let others = word.load(Relaxed) & !(0xffff << shift);
        word.store(others | u64::from(chain) << shift, Relaxed);
        self.made = self.made.wrapping_add(1);
        self.tell();
    }

    /// Writes count and flags of the available chains. Only this side writes to the page, and two
    /// chains' numbers stand in the same word, so all of it is written.
    fn tell(&self) {
        let word = &self.pages.available[0];
        let chains = word.load(Relaxed) & !0xffff_ffff;
        let quiet = if self.quiet { QUIET } else { 0 };
        let count = u64::from(self.made) << 16;
        word.store(chains | count | quiet, Release);
        // The device looks at this before it sleeps, and is looked at afterwards.
        fence(SeqCst);
    }

    /// Asks the device for no interrupts, or for some again: what came meanwhile is looked for
    /// then.
    pub fn set_quiet(&mut self, quiet: bool) {
        if self.quiet != quiet {
            self.quiet = quiet;
            self.tell();
        }
    }

    /// Whether something may have come back.
    pub fn is_due(&self) -> bool {
        self.count() != self.seen
    }

    fn count(&self) -> u16 {
        (self.pages.used[0].load(Acquire) >> 16) as u16
    }

    /// The next chain that came back; its descriptors are free.
    pub fn take(&mut self) -> Option<Done> {
        let ahead = self.count().wrapping_sub(self.seen);
        if ahead > self.under_way {
            self.nonsense += 1;
            return None;
        }
        // Entries that name no chain are passed by: not more than were told.
        for _ in 0..ahead {
            let place = usize::from(self.seen % self.size);
            self.seen = self.seen.wrapping_add(1);
            // An entry is two halves, and begins in the middle of a word.
            let chain = self.pages.used[place].load(Relaxed) >> 32;
            let length = self.pages.used[place + 1].load(Relaxed) as u32;
            let Some(known) = self.chains.get(chain as usize).copied() else {
                self.nonsense += 1;
                continue;
            };
            let chain = chain as u16;
            if known.descriptors == 0 {
                self.nonsense += 1;
                continue;
            }
            self.release(chain);
            if length > known.room {
                self.nonsense += 1;
                return Some(Done { chain, length: 0 });
            }
            return Some(Done { chain, length });
        }
        None
    }

    /// Takes back a chain that the device was not done with: it has been reset. `None` if nothing
    /// is under way.
    pub fn end(&mut self) -> Option<u16> {
        let begins = |chain: &Chain| chain.descriptors != 0;
        let chain = self.chains.iter().position(begins)? as u16;
        self.release(chain);
        Some(chain)
    }

    /// Makes a chain's descriptors free.
    fn release(&mut self, chain: u16) {
        let count = core::mem::take(&mut self.chains[usize::from(chain)]).descriptors;
        let mut last = chain;
        for _ in 1..count {
            last = self.next[usize::from(last)];
        }
        self.next[usize::from(last)] = self.free;
        self.free = chain;
        self.free_count += count;
        self.under_way -= 1;
    }
}
