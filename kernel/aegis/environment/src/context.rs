//! This environment's own page of contexts, as atomic words: the kernel stores to it between any
//! two instructions. Entries are set by [`crate::entry`]; what a program may set itself without harm
//! to its memory is here.

mod trusted;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis_abi::context::{EXCEPTIONS, GUARANTEES, Place, Repossession};
use postern_aegis_abi::{Error, Mapping};

pub use trusted::{context, store_word};

/// [`postern_aegis_abi::context::Saved`] as it changes.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs, reason = "as in the interface")]
pub struct Saved {
    pub rax: AtomicU64,
    pub rcx: AtomicU64,
    pub r11: AtomicU64,
    pub rip: AtomicU64,
    pub rflags: AtomicU64,
    pub address: AtomicU64,
    pub code: AtomicU64,
    pub vector: AtomicU64,
}

/// [`postern_aegis_abi::Context`] as it changes: the same layout, word for word.
#[repr(C, align(4096))]
#[derive(Debug)]
#[allow(missing_docs, reason = "as in the interface")]
pub struct Context {
    pub(crate) exception: [AtomicU64; EXCEPTIONS],
    pub excepted: Saved,
    pub(crate) begin: AtomicU64,
    pub(crate) end: AtomicU64,
    pub(crate) notify: AtomicU64,
    pub interrupted: Saved,
    pub(crate) synchronous: AtomicU64,
    pub(crate) asynchronous: AtomicU64,
    pub fs: AtomicU64,
    pub gs: AtomicU64,
    fpu: AtomicU64,
    pub(crate) emergency: AtomicU64,
    pub emerged: Saved,
    pub events: AtomicU64,
    pub asked_pages: AtomicU64,
    pub asked_slices: AtomicU64,
    pub deadline: AtomicU64,
    pub clock: AtomicU64,
    guaranteed: [[AtomicU64; 2]; GUARANTEES],
    places: [[AtomicU64; 2]; GUARANTEES],
    repossessed: [[AtomicU64; 3]; GUARANTEES],
    pub repossessions: AtomicU64,
    pub emerged_others: [AtomicU64; 13],
    pub completions: AtomicU64,
    pub sent: AtomicU64,
    pub(crate) upcall: AtomicU64,
    pub upcalled: Saved,
    pub ignored: AtomicU64,
}

/// Frames of this environment's that the network is done with, so far.
pub fn sent() -> u64 {
    context().sent.load(Relaxed)
}

/// Whether the coprocessor is on when the environment is entered.
pub(crate) fn set_coprocessor(on: bool) {
    context().fpu.store(u64::from(on), Relaxed);
}

/// Names a mapping that the kernel restores. `None`: the entry is unused.
pub fn guarantee(entry: usize, what: Option<(u64, Mapping)>) -> Result<(), Error> {
    let (at, mapping) = what.unwrap_or((0, Mapping(0)));
    if entry >= GUARANTEES || what.is_some() && crate::image::own(at) {
        return Err(Error::Argument);
    }
    guarantee_own(entry, at, mapping);
    Ok(())
}

/// The same for what is mapped already.
pub(crate) fn guarantee_own(entry: usize, at: u64, what: Mapping) {
    let [to, mapping] = &context().guaranteed[entry];
    mapping.store(0, Relaxed);
    to.store(at, Relaxed);
    mapping.store(what.0, Relaxed);
}

/// Names a place for contents that are taken by force.
pub fn place(entry: usize, place: Place) -> Result<(), Error> {
    let [head, capability] = context().places.get(entry).ok_or(Error::Argument)?;
    capability.store(place.capability, Relaxed);
    head.store(
        u64::from(place.kind) | u64::from(place.number) << 32,
        Relaxed,
    );
    Ok(())
}

/// The n-th thing that was taken by force, as long as no more than 16 came after it.
pub fn repossessed(number: u64) -> Repossession {
    let [head, place, capability] = &context().repossessed[(number % GUARANTEES as u64) as usize];
    let halves = |word: &AtomicU64| (word.load(Relaxed) as u32, (word.load(Relaxed) >> 32) as u32);
    let ((kind, number), (place, page)) = (halves(head), halves(place));
    let capability = capability.load(Relaxed);
    Repossession {
        kind,
        number,
        place: Place {
            kind: place,
            number: page,
            capability,
        },
    }
}
