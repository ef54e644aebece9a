//! Windows: addresses of the kernel at which code that the verifier has accepted finds all that it
//! can reach, behind fs. Window 0 is the filters': their code, twice, so that one is changed while
//! the other is used, what it reads, a stack, and the pages in which frames arrive.
//!
//! Invariant: window 0 is mapped once, at the start; text in it is not written by its addresses,
//! all but the stack is only read.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use postern_aegis_abi::PAGE;

use super::memory::{self, GLOBAL, NO_EXECUTE, Taken, WRITE};

/// Where window 0 begins. Each is followed by twice what code can name.
pub const WINDOWS: u64 = 0xffff_a000_0000_0000;

/// Pages of the network's in which frames arrive.
pub const BUFFERS: u32 = 256;
/// Pages of a text of filters, and of tables.
const TEXT: u32 = 32;
const TABLES: u32 = 32;

/// Places in window 0, in pages. Nothing is at its beginning.
const STACK: u32 = 2;
const BUFFER: u32 = 16;
const CALLS: u32 = BUFFER + BUFFERS;
const TEXTS: u32 = CALLS + 1;
const TABLE: u32 = TEXTS + 2 * TEXT;

/// Pages that window 0 is made of; the page for frames of calls is behind the network's.
const PAGES: u32 = 1 + BUFFERS + 1 + 2 * TEXT + 2 * TABLES;
/// Pages that [`make`] takes, tables among them.
pub const TAKEN: u32 = PAGES + 4;

/// The first page of window 0.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Makes window 0, behind the kernel's tables.
pub fn make(taken: &mut Taken) {
    let first = (taken.next / PAGE as u64) as u32;
    FIRST.store(first, Ordering::Relaxed);
    let parts = [
        (STACK, 1, NO_EXECUTE | WRITE | GLOBAL),
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
}

/// The pages in which frames arrive.
#[allow(dead_code)] // Until frames arrive.
pub fn buffers() -> Range<u32> {
    let first = FIRST.load(Ordering::Relaxed) + 1;
    first..first + BUFFERS
}
