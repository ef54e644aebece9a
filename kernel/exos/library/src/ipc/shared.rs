//! Memory that several processes have: pages with a name of their own, and a page with their
//! numbers, which who has the capability attaches by.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use postern_aegis::calls::Target;
use postern_aegis::{Error, Mapping, PAGE, memory};

use crate::ipc::area::{self, SEGMENT, SEGMENT_PAGES, SEGMENTS, SHARED};
use crate::ipc::keep;

/// Who may have a segment: what is passed to others.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The page with the numbers of the others.
    pub page: u64,
    /// The capability.
    pub capability: u64,
    /// Twice the number of pages, plus 1 if they may be written.
    pub count: u64,
}

/// Segments that this process has: pages, and capabilities to read and to write.
struct Segment {
    pages: AtomicU32,
    read: AtomicU64,
    write: AtomicU64,
}

static ALL: [Segment; SEGMENTS] = [const {
    Segment {
        pages: AtomicU32::new(0),
        read: AtomicU64::new(0),
        write: AtomicU64::new(0),
    }
}; SEGMENTS];

fn address(number: usize) -> u64 {
    SHARED + number as u64 * SEGMENT
}

/// Where the page of numbers stands.
fn index_of(from: u64) -> u64 {
    from + memory::TABLE_SPAN
}

fn free() -> Result<(usize, &'static Segment), Error> {
    let found = ALL.iter().enumerate();
    let mut found = found.filter(|(_, segment)| segment.pages.load(Relaxed) == 0);
    found.next().ok_or(Error::Exhausted)
}

fn at(memory: u64) -> Option<(usize, &'static Segment)> {
    let number = memory.checked_sub(SHARED)? / SEGMENT;
    let segment = ALL.get(number as usize)?;
    let is = address(number as usize) == memory && segment.pages.load(Relaxed) != 0;
    is.then_some((number as usize, segment))
}

/// Makes a segment; where it stands.
pub fn create(length: usize) -> Result<(u64, Words), Error> {
    let pages = length.div_ceil(PAGE);
    if pages == 0 || pages > SEGMENT_PAGES {
        return Err(Error::Argument);
    }
    let (number, segment) = free()?;
    let from = address(number);
    let places = (from..).step_by(PAGE).take(pages);
    let mut numbers = [0; SEGMENT_PAGES + 1];
    let numbers = &mut numbers[..pages + 1];
    let kept = keep::fresh(places.chain([index_of(from)]), numbers)?;
    for (index, pair) in numbers[..pages].chunks(2).enumerate() {
        let high = pair.get(1).copied().unwrap_or(0);
        let word = u64::from(pair[0]) | u64::from(high) << 32;
        memory::write(index_of(from) + 8 * index as u64, word);
    }
    segment.read.store(kept.read, Relaxed);
    segment.write.store(kept.write, Relaxed);
    segment.pages.store(pages as u32, Relaxed);
    let words = Words {
        page: numbers[pages].into(),
        capability: kept.write,
        count: 2 * pages as u64 + 1,
    };
    Ok((from, words))
}

fn unbind(from: u64, pages: usize) {
    area::clear(from, pages);
    area::clear(index_of(from), 1);
}

/// Words with which others only read.
pub fn reader(memory: u64) -> Result<Words, Error> {
    let (_, segment) = at(memory).ok_or(Error::Argument)?;
    let capability = segment.read.load(Relaxed);
    let page = area::page_at(index_of(memory)).filter(|_| capability != 0);
    Ok(Words {
        page: page.ok_or(Error::Denied)?.into(),
        capability,
        count: 2 * u64::from(segment.pages.load(Relaxed)),
    })
}

/// Attaches what somebody else made; where it stands.
pub fn attach(words: &Words) -> Result<u64, Error> {
    let (pages, flags) = (words.count as usize / 2, (words.count & 1) * Mapping::WRITE);
    let page = u32::try_from(words.page).map_err(|_| Error::Argument)?;
    if pages == 0 || pages > SEGMENT_PAGES {
        return Err(Error::Argument);
    }
    let (number, segment) = free()?;
    let from = address(number);
    let bind = |at, page, flags| area::bind(at, page, flags, words.capability, Target::SELF);
    bind(index_of(from), page, 0)?;
    for index in 0..pages as u64 {
        let pair = memory::read(index_of(from) + index / 2 * 8);
        let page = (pair >> (index % 2 * 32)) as u32;
        let bound = bind(from + index * PAGE as u64, page, flags);
        bound.inspect_err(|_| unbind(from, pages))?;
    }
    let (read, write) = match flags {
        0 => (words.capability, 0),
        _ => (0, words.capability),
    };
    segment.read.store(read, Relaxed);
    segment.write.store(write, Relaxed);
    segment.pages.store(pages as u32, Relaxed);
    Ok(from)
}

/// Gives it up.
pub fn detach(memory: u64) -> Result<(), Error> {
    let (_, segment) = at(memory).ok_or(Error::Argument)?;
    let page = area::page_at(index_of(memory));
    unbind(memory, segment.pages.swap(0, Relaxed) as usize);
    area::left(page);
    Ok(())
}

/// Binds all segments in the space of a copy of this process.
pub fn inherit(to: Target) -> Result<(), Error> {
    for (number, segment) in ALL.iter().enumerate() {
        let pages = segment.pages.load(Relaxed) as usize;
        if pages != 0 {
            let capability = match segment.write.load(Relaxed) {
                0 => segment.read.load(Relaxed),
                write => write,
            };
            area::inherit(address(number), pages, capability, to)?;
            area::inherit(index_of(address(number)), 1, capability, to)?;
        }
    }
    Ok(())
}
