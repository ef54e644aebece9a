//! Where the program stands in its own space: its image, as the link script says, and what belongs
//! to its entries in the second segment. Rust's memory is there and nowhere else, so calls that put
//! pages elsewhere cannot change it.

mod trusted;

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::address::{GUARANTEED, ROOT_PROGRAM};

/// Addresses of the second segment that a program has for itself: the page of contexts and, linked
/// behind it, its entries and their memory.
pub const SECOND: Range<u64> = GUARANTEED..GUARANTEED + 0x10_0000;

/// The package that came with the root, if this is the root; otherwise empty.
pub fn package() -> Range<u64> {
    let length = crate::books::machine().package.load(Relaxed);
    let end = if trusted::is_root() {
        ROOT_PROGRAM + u64::from(length)
    } else {
        ROOT_PROGRAM
    };
    ROOT_PROGRAM..end
}

/// The program's text and data, and the package around it.
pub fn first() -> Range<u64> {
    let image = trusted::image();
    image.start..image.end.max(package().end)
}

/// Whether the page of an address belongs to the program.
pub fn own(address: u64) -> bool {
    let page = address & !0xfff;
    SECOND.contains(&page) || first().contains(&page)
}
