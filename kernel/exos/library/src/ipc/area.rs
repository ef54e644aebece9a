//! Where shared pages stand in a process's space. What a parent has there its copies have at the
//! same addresses: bound, not copied.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::records::Page;
use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, books, memory};

use crate::process::registry;

/// From here on.
pub const START: u64 = 0x7b00_0000_0000;
/// Up to here.
pub const END: u64 = 0x7c00_0000_0000;
/// Bytes of a pipe's place.
pub const PIPE: u64 = 16 * PAGE as u64;
/// Pipes at most.
pub const PIPES: usize = 32;
/// Where shared memory begins, behind the pipes.
pub const SHARED: u64 = START + 0x4000_0000;
/// Bytes of a segment's place: its pages, and behind them the page of their numbers.
pub const SEGMENT: u64 = 2 * memory::TABLE_SPAN;
/// Segments at most.
pub const SEGMENTS: usize = 32;
/// Pages of a segment at most.
pub const SEGMENT_PAGES: usize = 512;

/// The page bound at an address of a place that is in use.
pub fn page_at(at: u64) -> Option<u32> {
    // Where nothing was ever bound there is no table whose entry could be read.
    memory::page_at(at)
}

/// Binds a kept page at an address of a space.
pub fn bind(at: u64, page: u32, flags: u64, capability: u64, of: Target) -> Result<(), Error> {
    memory::map(at, Mapping::new(page, flags), capability, of)
}

/// Takes what is bound away, from an address on.
pub fn clear(from: u64, pages: usize) {
    for index in 0..pages {
        let _ = calls::unmap(from + (index * PAGE) as u64, Target::SELF);
    }
}

/// Binds in another space what is bound in this one, at the same addresses.
pub fn inherit(from: u64, pages: usize, capability: u64, to: Target) -> Result<(), Error> {
    for at in (from..).step_by(PAGE).take(pages) {
        if let Some(page) = page_at(at) {
            bind(at, page, memory::flags_at(at), capability, to)?;
        }
    }
    Ok(())
}

/// This process has taken its binding of a kept page away: if it was the last one, all that was
/// kept with it is free.
pub fn left(page: Option<u32>) {
    let unbound = |record: &Page| record.bindings.load(Relaxed) == 0;
    if page.and_then(books::page).is_some_and(unbound) {
        registry::look();
    }
}
