//! Frames for a cache: pages of this process, which others may read while they are lent.

use postern_aegis::{Mapping, PAGE, books, entry, memory, slices, time};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_fs::{Block, Owner};

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::disk::trusted;
use crate::files::server::loans;
use crate::memory::room;

/// Where they stand.
const FRAMES: u64 = 0x7d60_0000_0000;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// So many frames; once in a process.
pub fn take(count: usize) -> Result<&'static mut [Block], Errno> {
    if TAKEN.swap(true, Relaxed) {
        return Err(errno::BUSY);
    }
    let memory = |_| errno::NOMEM;
    room::ahead(count as u64).map_err(memory)?;
    for index in 0..count {
        let at = FRAMES + (index * PAGE) as u64;
        room::patiently(|| memory::map_fresh(at, Mapping::WRITE)).map_err(memory)?;
    }
    Ok(trusted::blocks(FRAMES, count))
}

/// How many frames would be a quarter of the memory that is free, between two bounds.
pub fn some(least: usize, most: usize) -> usize {
    let free = books::machine().free.load(Relaxed) as usize;
    (free / 4).clamp(least, most)
}

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let (clock, frequency) = (u128::from(slices::clock()), u128::from(time::frequency()));
    let since = (clock * 1_000_000_000 / frequency) as u64;
    let epoch = books::machine().clock.epoch.load(Relaxed);
    epoch.saturating_mul(1_000_000_000).saturating_add(since)
}

/// Whose they are: this process.
#[derive(Debug)]
pub struct Frames;

fn page_of(frame: &Block) -> Option<u32> {
    memory::page_at(core::ptr::from_ref(frame) as u64)
}

impl Owner for Frames {
    fn now(&mut self) -> u64 {
        now()
    }

    fn lend(&mut self, frame: &Block) -> Result<(u32, u64), Errno> {
        let page = page_of(frame).ok_or(errno::IO)?;
        Ok((page, loans::lend(page)?))
    }

    fn take_back(&mut self, frame: &Block) {
        if let Some(page) = page_of(frame) {
            // Refused only while somebody else changes the bindings of it.
            while loans::take_back(page).is_err() {
                entry::yield_slice();
            }
        }
    }
}
