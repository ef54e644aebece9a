//! Offsets of open files, in pages that are bound at the same addresses by all who have the files
//! open in common. Who has a page alone knows which places are in use. While others have it, too, each
//! place is given out once, by a count in the page itself: nobody counts who uses a place, and
//! nobody's crash leaves a count behind.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, books, memory};
use postern_exos_abi::address::OFFSETS;
use postern_exos_abi::start::Head;
use postern_exos_load::space::Space;

use crate::files::trusted;
use crate::memory::room;
use crate::process::{registry, signals};

/// Pages at most.
const PAGES: usize = 4;
/// Words of a page: the first is the count of places that were given out, the others are places.
const PLACES: u64 = (PAGE / 8) as u64;

/// Numbers of pages, plus 1, and the capabilities of those that are shared.
static NUMBERS: [AtomicU64; PAGES] = [const { AtomicU64::new(0) }; PAGES];
static CAPABILITIES: [AtomicU64; PAGES] = [const { AtomicU64::new(0) }; PAGES];

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

/// Places of a page that are in use, as bits.
struct Used([u64; (PLACES / 64) as usize]);

impl Used {
    fn of(page: usize, places: impl Iterator<Item = u64>) -> Used {
        let mut used = Used([0; _]);
        // The count's.
        used.0[0] = 1;
        for place in places.filter(|place| page_of(*place) == page) {
            let within = place % PLACES;
            used.0[(within / 64) as usize] |= 1 << (within % 64);
        }
        used
    }

    fn first_free(&self) -> Option<u64> {
        let (index, word) = (0..).zip(self.0).find(|(_, word)| *word != u64::MAX)?;
        Some(index * 64 + u64::from(word.trailing_ones()))
    }

    /// The one behind the last that is in use.
    fn end(&self) -> u64 {
        let last = (0..).zip(self.0).filter(|(_, word)| *word != 0).last();
        last.map_or(1, |(index, word)| {
            index * 64 + 64 - u64::from(word.leading_zeros())
        })
    }
}

/// Whether nobody else has a page.
fn is_alone(page: usize) -> bool {
    let number = NUMBERS[page].load(Relaxed).wrapping_sub(1) as u32;
    CAPABILITIES[page].load(Relaxed) == 0
        || books::page(number).is_some_and(|record| record.bindings.load(Relaxed) == 1)
}

fn count(page: usize) -> &'static AtomicU64 {
    word(page as u64 * PLACES)
}

/// A place for an offset, which is 0. `places` are those that this process has.
pub fn take(places: impl Iterator<Item = u64> + Clone) -> Result<u64, Error> {
    for page in 0..PAGES {
        let used = Used::of(page, places.clone());
        let is_there = NUMBERS[page].load(Relaxed) != 0;
        let free = match is_there && !is_alone(page) {
            false => used.first_free(),
            true => {
                Some(count(page).fetch_add(1, Relaxed)).filter(|place| (1..PLACES).contains(place))
            }
        };
        let place = match free {
            Some(place) => place,
            // All its places were given out, and this process has none of them.
            None if used.end() == 1 => {
                let _ = calls::unmap(at(page), Target::SELF);
                NUMBERS[page].store(0, Relaxed);
                CAPABILITIES[page].store(0, Relaxed);
                1
            }
            None => continue,
        };
        if NUMBERS[page].load(Relaxed) == 0 {
            let number = room::patiently(|| memory::map_fresh(at(page), Mapping::WRITE))?;
            NUMBERS[page].store(u64::from(number) + 1, Relaxed);
        }
        let place = page as u64 * PLACES + place;
        word(place).store(0, Relaxed);
        return Ok(place);
    }
    Err(Error::Exhausted)
}

/// The page of a place.
fn page_of(place: u64) -> usize {
    (place / PLACES) as usize % PAGES
}

/// The offset at a place.
pub fn word(place: u64) -> &'static AtomicU64 {
    trusted::word(OFFSETS + place % (PLACES * PAGES as u64) * 8)
}

/// Has others be able to bind the pages that there are, and take places there.
pub fn share(places: impl Iterator<Item = u64> + Clone) -> Result<(), Error> {
    let _busy = signals::hold();
    for page in 0..PAGES {
        let number = NUMBERS[page].load(Relaxed);
        if number == 0 || !is_alone(page) {
            continue;
        }
        if CAPABILITIES[page].load(Relaxed) == 0 {
            let kept = registry::keep(&[(number - 1) as u32], true);
            let [_, write] = kept.map_err(|_| Error::Denied)?;
            CAPABILITIES[page].store(write, Relaxed);
        }
        count(page).store(Used::of(page, places.clone()).end(), Relaxed);
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
