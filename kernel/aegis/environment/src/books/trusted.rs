//! The mapped bookkeeping.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::address::{BOOKS, TABLES, index};
use postern_aegis_abi::records::{Machine, Page, claim};
use postern_aegis_abi::{ENVIRONMENTS, address};

/// Processors, slices, environments.
pub fn machine() -> &'static Machine {
    // SAFETY: the kernel maps the records there in every space, to be read, for as long as the
    // space is; all words are atomics, since it stores to them.
    unsafe { &*(BOOKS as *const Machine) }
}

/// All pages, by number.
pub fn pages() -> &'static [Page] {
    let count = machine().pages.load(Relaxed) as usize;
    // SAFETY: the array stands behind the record, as long as the count says, which never changes.
    unsafe { core::slice::from_raw_parts((BOOKS as usize + Machine::PAGES) as *const Page, count) }
}

/// The number of the environment whose page of contexts is mapped in this space.
pub fn own_number() -> u16 {
    let entry = TABLES + (address::GUARANTEED >> 12) * 8;
    debug_assert!(index(entry, 4) == 254);
    // SAFETY: last-level entries of this space are readable there, where there is a table; that of
    // the page of contexts is: this program stores its handlers in it.
    let entry = unsafe { (entry as *const u64).read_volatile() };
    let context = entry & 0x000f_ffff_ffff_f000;
    (1..ENVIRONMENTS as u16)
        .find(|number| {
            let record = &machine().environments[usize::from(*number)];
            let claim = record.claim.load(Relaxed);
            record.context.load(Relaxed) == context
                && claim != claim::FREE
                && claim != claim::ENDING
        })
        .unwrap_or(0)
}
