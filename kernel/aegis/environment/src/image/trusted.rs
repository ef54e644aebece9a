//! Symbols of the link script.

use core::ops::Range;

unsafe extern "C" {
    static image_start: u8;
    static image_end: u8;
}

/// What is linked in the first segment, in whole pages.
pub fn image() -> Range<u64> {
    // Addresses only: nothing is read there.
    (&raw const image_start) as u64..(&raw const image_end) as u64
}
