//! Symbols of the link scripts.

use core::ops::Range;

unsafe extern "C" {
    static image_start: u8;
    static image_end: u8;
    /// Its address is 1 in a root program, 0 in others.
    static image_is_root: u8;
}

/// What is linked in the first segment, in whole pages.
pub fn image() -> Range<u64> {
    // Addresses only: nothing is read there.
    (&raw const image_start) as u64..(&raw const image_end) as u64
}

/// Whether this program is linked as a root.
pub fn is_root() -> bool {
    (&raw const image_is_root) as u64 != 0
}
