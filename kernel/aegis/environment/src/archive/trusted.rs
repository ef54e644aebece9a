//! The package that the root was started with: it stands around the root's own program.

use postern_aegis_abi::address::ROOT_PROGRAM;

use crate::image;

/// The archive of the package, which its header page says where it is; empty if there is none.
pub fn package_archive() -> &'static [u8] {
    let package = image::package();
    if package.is_empty() {
        return &[];
    }
    // SAFETY: this is the root, and the kernel maps the package there for as long as the root lives,
    // its header page first. Nobody writes to that page.
    let header = unsafe { &*(ROOT_PROGRAM as *const [u64; 6]) };
    let [magic, _, offset, length, ..] = *header;
    let end = ROOT_PROGRAM.saturating_add(offset).saturating_add(length);
    if magic != u64::from_le_bytes(*b"AEGISPKG") || end > package.end {
        return &[];
    }
    // SAFETY: inside the package, behind the program's own memory, and never written.
    unsafe { core::slice::from_raw_parts((ROOT_PROGRAM + offset) as *const u8, length as usize) }
}
