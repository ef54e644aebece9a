//! Offsets of open files, in pages that are bound at the same addresses by all who have the files
//! open in common. A place is used once, unless its page was never shared: so nobody counts who
//! uses it, and nobody's crash leaves a count behind.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, memory};
use postern_exos_abi::address::OFFSETS;
use postern_exos_abi::start::Head;
use postern_exos_load::space::Space;

use crate::files::trusted;
use crate::memory::room;
use crate::process::{registry, signals};

/// Pages at most.
const PAGES: usize = 4;
const PLACES: u64 = (PAGE / 8) as u64;

/// Numbers of pages, plus 1, and the capabilities of those that are shared.
static NUMBERS: [AtomicU64; PAGES] = [const { AtomicU64::new(0) }; PAGES];
static CAPABILITIES: [AtomicU64; PAGES] = [const { AtomicU64::new(0) }; PAGES];
/// Places of each that were given out.
static USED: [AtomicU32; PAGES] = [const { AtomicU32::new(0) }; PAGES];

fn at(page: usize) -> u64 {
    OFFSETS + (page * PAGE) as u64
}

/// The pages that a process was started with.
pub fn open(head: &Head) {
    for page in 0..PAGES {
        NUMBERS[page].store(head.offsets[page], Relaxed);
        CAPABILITIES[page].store(head.offsets_capability[page], Relaxed);
    }
}

/// A place for an offset, which is 0. `in_use` says which pages have places of open files.
pub fn take(in_use: impl Fn(usize) -> bool) -> Result<u64, Error> {
    for page in 0..PAGES {
        let shared = CAPABILITIES[page].load(Relaxed) != 0;
        if shared && !in_use(page) {
            let _ = calls::unmap(at(page), Target::SELF);
            NUMBERS[page].store(0, Relaxed);
            CAPABILITIES[page].store(0, Relaxed);
        }
    }
    let own = |page: &usize| CAPABILITIES[*page].load(Relaxed) == 0;
    let page = (0..PAGES).find(own).ok_or(Error::Exhausted)?;
    if NUMBERS[page].load(Relaxed) == 0 {
        let number = room::patiently(|| memory::map_fresh(at(page), Mapping::WRITE))?;
        NUMBERS[page].store(u64::from(number) + 1, Relaxed);
        USED[page].store(0, Relaxed);
    }
    let place = u64::from(USED[page].fetch_add(1, Relaxed)) % PLACES;
    let place = page as u64 * PLACES + place;
    word(place).store(0, Relaxed);
    Ok(place)
}

/// The page of a place.
pub fn page_of(place: u64) -> usize {
    (place / PLACES) as usize % PAGES
}

/// The offset at a place.
pub fn word(place: u64) -> &'static AtomicU64 {
    trusted::word(OFFSETS + place % (PLACES * PAGES as u64) * 8)
}

/// Has others be able to bind the pages that there are.
pub fn share() -> Result<(), Error> {
    let _busy = signals::hold();
    for page in 0..PAGES {
        let number = NUMBERS[page].load(Relaxed);
        if number == 0 || CAPABILITIES[page].load(Relaxed) != 0 {
            continue;
        }
        let kept = registry::keep(&[(number - 1) as u32], true);
        let [_, write] = kept.map_err(|_| Error::Denied)?;
        CAPABILITIES[page].store(write, Relaxed);
    }
    Ok(())
}

/// Binds them in another space.
pub fn bind(space: &Space) -> Result<(), Error> {
    let (numbers, capabilities) = pages();
    for (page, (number, capability)) in numbers.into_iter().zip(capabilities).enumerate() {
        if number != 0 && capability != 0 {
            let mapping = Mapping::new((number - 1) as u32, Mapping::WRITE);
            memory::map(at(page), mapping, capability, space.target)?;
        }
    }
    Ok(())
}

/// Numbers, plus 1, and capabilities.
pub fn pages() -> ([u64; PAGES], [u64; PAGES]) {
    let all = |words: &[AtomicU64; PAGES]| core::array::from_fn(|page| words[page].load(Relaxed));
    (all(&NUMBERS), all(&CAPABILITIES))
}
