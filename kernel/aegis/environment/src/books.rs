//! The kernel's bookkeeping, read: who owns what, what is free, what is bound where.

mod trusted;

use core::sync::atomic::{AtomicU16, Ordering::Relaxed};

use postern_aegis_abi::records::{Environment, Kind, Machine, NONE, Page, claim, stopping};
use postern_aegis_abi::{ENVIRONMENTS, address};

pub use trusted::{machine, pages};

static OWN: AtomicU16 = AtomicU16::new(0);

/// Looks the own number up again: for a program whose memory is a copy of another environment's.
pub fn forget_own_number() {
    OWN.store(0, Relaxed);
}

/// The number of this environment: the one whose page of contexts stands in this space.
///
/// The processor would say it, too, but a number read there may be another's by the time it is
/// used: an environment can move to another processor between two instructions.
pub fn own_number() -> u16 {
    // It never changes, so it is looked up once.
    let mut own = OWN.load(Relaxed);
    if own == 0 {
        own = trusted::own_number();
        OWN.store(own, Relaxed);
    }
    own
}

/// Whether this is the caller's number.
pub fn is_self(environment: u16) -> bool {
    environment == own_number()
}

/// An environment's record.
pub fn environment(number: u16) -> &'static Environment {
    &machine().environments[usize::from(number) % ENVIRONMENTS]
}

/// Whether an environment of this number lives.
pub fn lives(number: u16) -> bool {
    let record = environment(number);
    let dead = [claim::FREE, claim::ENDING, claim::CHANGING];
    let state = record.claim.load(Relaxed);
    !dead.contains(&state) && record.stopping.load(Relaxed) != stopping::END
}

/// A page's record.
pub fn page(number: u32) -> Option<&'static Page> {
    pages().get(number as usize)
}

/// What a page is used for.
pub fn kind(page: &Page) -> Option<Kind> {
    Kind::of(page.kind.load(Relaxed))
}

/// Numbers of free pages in the order of the free list. It may change while it is read: a number
/// is a hint, and the call that takes it says whether it was free.
pub fn free_pages() -> impl Iterator<Item = u32> {
    list(
        machine().first_free.load(Relaxed),
        machine().free.load(Relaxed),
    )
}

/// Numbers of an environment's pages.
pub fn pages_of(environment: &Environment) -> impl Iterator<Item = u32> {
    list(
        environment.first.load(Relaxed),
        environment.pages.load(Relaxed),
    )
}

/// A list of at most so many pages, by the links of their records.
fn list(first: u32, most: u32) -> impl Iterator<Item = u32> {
    let mut next = first;
    core::iter::from_fn(move || {
        let number = next;
        next = page(number).filter(|_| number != NONE)?.next.load(Relaxed);
        Some(number)
    })
    .take(most as usize)
}

/// Whether the books are there, and of the version that this was built with.
pub fn valid() -> bool {
    machine().magic.load(Relaxed) == Machine::MAGIC
}

/// The page of contexts of an environment, by its physical address.
pub fn context_page(environment: &Environment) -> u32 {
    (environment.context.load(Relaxed) >> 12) as u32
}

/// Where this environment's own page of contexts stands.
pub const CONTEXT: u64 = address::GUARANTEED;
