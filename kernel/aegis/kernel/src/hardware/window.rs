//! Windows: addresses of the kernel at which code that the verifier has accepted finds all that it
//! can reach, behind fs. Window 0 is the filters': their code, twice, so that one is changed while
//! the other is used, what it reads, a stack, and the pages in which frames arrive.
//!
//! Every other one is the handler's whose number it has: the page that was given for that is the table
//! of its first 2 MiB, and nothing else is ever mapped.
//!
//! Invariant: window 0 is mapped once, at the start; text in it is not written by its addresses,
//! all but the stack is only read.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use postern_aegis_abi::{HOLDINGS, PAGE};

use super::memory::{self, GLOBAL, NO_EXECUTE, PRESENT, Taken, WRITE};

/// Where window 0 begins. Each is followed by twice what code can name.
pub const WINDOWS: u64 = 0xffff_a000_0000_0000;

/// Pages of the network's in which frames arrive.
pub const BUFFERS: u32 = 256;
/// Pages of a text of filters, of its tables, and of the stack.
pub(super) const TEXT: u32 = 40;
pub(super) const TABLES: u32 = 32;
pub(super) const DEPTH: u32 = 4;

/// Places in window 0, in pages. Nothing is at its beginning.
pub(super) const STACK: u32 = 2;
pub(super) const BUFFER: u32 = 16;
pub(super) const CALLS: u32 = BUFFER + BUFFERS;
pub(super) const TEXTS: u32 = CALLS + 1;
pub(super) const TABLE: u32 = TEXTS + 2 * TEXT;

/// Pages that window 0 is made of; the page for frames of calls is behind the network's.
const PAGES: u32 = DEPTH + BUFFERS + 1 + 2 * TEXT + 2 * TABLES;
/// Pages that [`make`] takes, tables among them.
pub const TAKEN: u32 = PAGES + 4 + HOLDINGS as u32;

/// From the beginning of a window to that of the next.
const STRIDE: u64 = 8 << 30;

/// The first page of window 0.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// The table of level 2 of each window, whose first entry is the window's table.
static ABOVE: [AtomicU64; HOLDINGS] = [const { AtomicU64::new(0) }; HOLDINGS];

/// Makes window 0 and room for all others, behind the kernel's tables.
pub fn make(taken: &mut Taken) {
    let first = (taken.next / PAGE as u64) as u32;
    FIRST.store(first, Ordering::Relaxed);
    let parts = [
        (STACK, DEPTH, NO_EXECUTE | WRITE | GLOBAL),
        (BUFFER, BUFFERS, NO_EXECUTE | GLOBAL),
        (CALLS, 1, NO_EXECUTE | GLOBAL),
        (TEXTS, 2 * TEXT, GLOBAL),
        (TABLE, 2 * TABLES, NO_EXECUTE | GLOBAL),
    ];
    // All pages first: they are one range.
    taken.pages(PAGES);
    let mut page = first;
    for (place, pages, flags) in parts {
        for index in 0..pages {
            let at = WINDOWS + u64::from(place + index) * PAGE as u64;
            memory::map(
                memory::root_table(),
                taken,
                at,
                u64::from(page) << 12,
                flags,
            );
            page += 1;
        }
    }
    for (number, above) in ABOVE.iter().enumerate().skip(1) {
        let table = memory::table(memory::root_table(), taken, base(number), 2, 0);
        above.store(table, Ordering::Relaxed);
    }
}

/// Where a window begins.
pub fn base(number: usize) -> u64 {
    WINDOWS + number as u64 * STRIDE
}

/// Which window's address this is, and which offset in it.
pub fn place(address: u64) -> Option<(usize, u64)> {
    let offset = address.checked_sub(WINDOWS)?;
    let number = (offset / STRIDE) as usize;
    (number < HOLDINGS).then_some((number, offset % STRIDE))
}

/// Gives a handler's window its table.
pub fn open(number: usize, table: u32) {
    set(number, u64::from(table) << 12 | PRESENT | WRITE);
}

/// Takes it away. Processor 0 may know what it had until it forgets it.
pub fn close(number: usize) {
    set(number, 0);
}

fn set(number: usize, entry: u64) {
    if let Some(above @ 1..) = ABOVE.get(number).map(|above| above.load(Ordering::Relaxed)) {
        memory::entry(above, 0).store(entry, Ordering::Release);
    }
}

/// The pages in which frames arrive.
pub fn buffers() -> Range<u32> {
    let first = page(BUFFER);
    first..first + BUFFERS
}

/// The page at a place of window 0 behind its stack.
pub(super) fn page(place: u32) -> u32 {
    FIRST.load(Ordering::Relaxed) + DEPTH + (place - BUFFER)
}
