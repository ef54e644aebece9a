//! The pipes that this process has ends of: who may bind them, and how many descriptors there are.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use postern_aegis::calls::Target;
use postern_aegis::{Error, Mapping, PAGE};

use crate::ipc::area::{self, PIPE, PIPES};
use crate::ipc::keep::{self, Kept};

/// Pages of a pipe's bytes.
pub const DATA: usize = 4;
/// The page of its counts, bytes behind it.
const RING: usize = 1 + DATA;
/// Where the pages stand that say who reads ([`READS`]) and who writes: whoever has such an end
/// binds it.
const PRESENCE: [u64; 2] = [8 * PAGE as u64, 9 * PAGE as u64];

/// The reading end.
pub const READS: usize = 0;
/// The writing end.
pub const WRITES: usize = 1;

struct Slot {
    capability: AtomicU64,
    name: AtomicU32,
    presence: [AtomicU32; 2],
    /// Descriptors of this process; 0 of both: the place is free.
    ends: [AtomicU32; 2],
}

static SLOTS: [Slot; PIPES] = [const {
    Slot {
        capability: AtomicU64::new(0),
        name: AtomicU32::new(0),
        presence: [const { AtomicU32::new(0) }; 2],
        ends: [const { AtomicU32::new(0) }; 2],
    }
}; PIPES];

impl Slot {
    fn count(&self, end: usize) -> u32 {
        self.ends[end & 1].load(Relaxed)
    }
}

/// Where a pipe's ring stands.
pub fn address(slot: usize) -> u64 {
    area::START + slot as u64 * PIPE
}

/// A pipe of both ends, one descriptor each.
pub fn make() -> Result<usize, Error> {
    let free = |slot: &Slot| slot.count(READS) == 0 && slot.count(WRITES) == 0;
    let number = SLOTS.iter().position(free).ok_or(Error::Exhausted)?;
    let (slot, from) = (&SLOTS[number], address(number));
    let ring = (0..RING).map(|index| from + (index * PAGE) as u64);
    let mut numbers = [0; RING + 2];
    let all = ring.chain(PRESENCE.map(|offset| from + offset));
    let Kept { write, name, .. } = keep::fresh(all, &mut numbers)?;
    slot.capability.store(write, Relaxed);
    slot.name.store(name, Relaxed);
    for end in [READS, WRITES] {
        slot.presence[end].store(numbers[RING + end], Relaxed);
        slot.ends[end].store(1, Relaxed);
    }
    Ok(number)
}

fn unbind(number: usize) {
    area::clear(address(number), (PIPE / PAGE as u64) as usize);
}

/// One more descriptor of an end.
pub fn add(number: usize, end: usize) {
    SLOTS[number].ends[end].fetch_add(1, Relaxed);
}

/// One fewer.
pub fn remove(number: usize, end: usize) {
    let slot = &SLOTS[number];
    if slot.count(end) != 0 && slot.ends[end].fetch_sub(1, Relaxed) == 1 {
        area::clear(address(number) + PRESENCE[end], 1);
        if slot.count(1 - end) == 0 {
            let page = area::page_at(address(number));
            unbind(number);
            area::left(page);
        }
    }
}

/// Whether any process has this end.
pub fn is_there(number: usize, end: usize) -> bool {
    let slot = &SLOTS[number];
    let (page, name) = (&slot.presence[end], &slot.name);
    keep::is_bound(page.load(Relaxed), name.load(Relaxed))
}

/// Binds all pipes in the space of a copy of this process.
pub fn inherit(to: Target) -> Result<(), Error> {
    for (number, slot) in SLOTS.iter().enumerate() {
        if slot.count(READS) + slot.count(WRITES) > 0 {
            let capability = slot.capability.load(Relaxed);
            area::inherit(address(number), 10, capability, to)?;
        }
    }
    Ok(())
}

/// Binds one end in the space of a program that replaces this one, which gets the words.
pub fn pass(number: usize, end: usize, to: Target) -> Result<[u64; 4], Error> {
    let (slot, from) = (&SLOTS[number], address(number));
    let capability = slot.capability.load(Relaxed);
    area::inherit(from, RING, capability, to)?;
    let presence = [READS, WRITES].map(|end| slot.presence[end].load(Relaxed));
    let (at, page) = (from + PRESENCE[end], presence[end]);
    area::bind(at, page, Mapping::WRITE, capability, to)?;
    Ok([
        number as u64 | (end as u64) << 8,
        capability,
        u64::from(presence[0]) | u64::from(presence[1]) << 32,
        slot.name.load(Relaxed).into(),
    ])
}

/// What [`pass`] gave: the place and the end.
pub fn taken(words: [u64; 4]) -> Option<(usize, usize)> {
    let (number, end) = ((words[0] & 0xff) as usize, (words[0] >> 8 & 1) as usize);
    let slot = SLOTS.get(number)?;
    slot.capability.store(words[1], Relaxed);
    slot.presence[0].store(words[2] as u32, Relaxed);
    slot.presence[1].store((words[2] >> 32) as u32, Relaxed);
    slot.name.store(words[3] as u32, Relaxed);
    add(number, end);
    Some((number, end))
}
