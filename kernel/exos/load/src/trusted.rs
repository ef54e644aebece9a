//! Memory at addresses that no reference of Rust covers: windows, and the registry's public pages.

use postern_aegis::PAGE;
use postern_exos_abi::address::{DIRECTORY, NUMBERS, NUMBERS_PAGES, WINDOWS};
use postern_exos_abi::directory::Entry;

/// Copies bytes between windows.
///
/// Both ranges are inside of windows, which the caller has bound.
pub fn copy(to: u64, from: u64, length: usize) {
    debug_assert!(to >= WINDOWS && from >= WINDOWS);
    // SAFETY: windows are memory of nobody's but of who binds them, at addresses that no image and
    // no reference covers; two of them do not overlap.
    unsafe {
        core::arch::asm!("rep movsb", inout("rcx") length & 7 => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
        let done = (length & 7) as u64;
        core::arch::asm!("rep movsq", inout("rcx") length >> 3 => _, inout("rdi") to + done => _,
            inout("rsi") from + done => _, options(nostack, preserves_flags));
    }
}

/// Copies bytes out of a window.
pub fn copy_out(to: &mut [u8], from: u64) {
    // SAFETY: as above; the bytes are the caller's.
    unsafe { core::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), to.len()) }
}

/// Copies bytes into a window.
pub fn copy_in(to: u64, from: &[u8]) {
    // SAFETY: as above.
    unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, from.len()) }
}

/// Copies a page from anywhere in the own space into a window.
///
/// The address is bound, to be read.
pub fn copy_page(to: u64, from: u64) {
    // SAFETY: a page that the caller has seen in its tables, which is read as bytes; what changes
    // in it meanwhile is the caller's affair.
    unsafe {
        core::arch::asm!("rep movsq", inout("rcx") PAGE / 8 => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
}

/// The directory, from its head on.
pub fn directory() -> &'static [Entry] {
    // SAFETY: the registry has the pages bound there in every process before that runs, to be read
    // for as long as it lives, and writes them before there is a process. The head says how many
    // entries follow.
    unsafe {
        let head = DIRECTORY as *const Entry;
        core::slice::from_raw_parts(head, (*head).length as usize + 1)
    }
}

/// Numbers of the archive's pages.
pub fn numbers() -> &'static [u32] {
    let count = directory().first().map_or(0, |head| {
        (head.offset as usize).min(NUMBERS_PAGES * PAGE / 4)
    });
    // SAFETY: as above; so many as the head's second word says.
    unsafe { core::slice::from_raw_parts(NUMBERS as *const u32, count) }
}
