//! The clock, over the pager's own words.

use core::ffi::c_ulong;

use crate::memory::c::chosen::exos_clean;
use crate::memory::c::{exos_dirty, exos_touched};

/// `struct exos_pager_frame`.
#[repr(C)]
struct Frame {
    page: usize,
    dirty: bool,
}

/// `struct exos_pager`.
#[repr(C)]
struct Pager {
    pages: usize,
    frames: usize,
    region: u64,
    physical: u64,
    store: u64,
    frame: *mut Frame,
    of: *mut usize,
    used: usize,
    wanted: usize,
    hand: usize,
    victim: usize,
    misses: c_ulong,
    written: c_ulong,
}

/// The frame that was not used for longest, nearly: `exos_pager_victim` if a program defines none.
///
/// # Safety
/// A pager that was begun.
#[unsafe(no_mangle)]
unsafe extern "C" fn exos_pager_clock(pager: *mut Pager) -> usize {
    // SAFETY: the caller says so; nobody else has it, since a fault of the program is being served.
    let pager = unsafe { &mut *pager };
    loop {
        let at = pager.hand;
        pager.hand = (at + 1) % pager.frames.max(1);
        // SAFETY: there are so many frames, and the hand goes over no others.
        let frame = unsafe { &mut *pager.frame.add(at) };
        let page = pager.region + (frame.page as u64) * 4096;
        if exos_touched(page) == 0 {
            return at;
        }
        frame.dirty |= exos_dirty(page) == 1;
        exos_clean(page);
    }
}
