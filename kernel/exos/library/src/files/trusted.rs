//! Words of pages that several processes bind, and bytes of C's.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::{ptr, slice};

use postern_aegis::PAGE;
use postern_exos_abi::file::NAME;
use postern_exos_abi::protocol::{Answers, DATA, Entry};

use crate::memory::walk;

/// A word of a page of offsets, which is bound as long as a file is open whose it is.
pub fn word(at: u64) -> &'static AtomicU64 {
    // SAFETY: `offsets` gives places of bound pages only; others change the word at any time, so it
    // is an atomic. If the page is not there, to touch it is an exception and no other memory.
    unsafe { &*(at as *const AtomicU64) }
}

/// The bytes of a page of a pool, which has it bound there for as long as the process lives.
pub fn page<'a>(at: u64) -> &'a [u8] {
    // SAFETY: pools bind pages of their own where no image and nobody else's reference is, and never
    // take them away; their borrow keeps others from writing.
    unsafe { slice::from_raw_parts(at as *const u8, PAGE) }
}

/// The same, to be written.
pub fn page_mut<'a>(at: u64) -> &'a mut [u8] {
    // SAFETY: as above; a pool lends one at a time, by its own borrow.
    unsafe { slice::from_raw_parts_mut(at as *mut u8, PAGE) }
}

/// Whether there is a table for the entry of an address, so that it can be read.
pub fn has_table(at: u64) -> bool {
    walk::has_table(at)
}

/// A word of a server's answer, in the area that it has in common with this process.
pub fn answer(at: u64, index: usize) -> u64 {
    answers(at)
        .words
        .get(index)
        .map_or(0, |word| word.load(Relaxed))
}

fn answers(at: u64) -> &'static Answers {
    // SAFETY: `mounts` names a place where it has bound the page of answers of an area, which the
    // registry keeps as long as it is bound; all words are atomics, since the server stores to them.
    unsafe { &*(at as *const Answers) }
}

/// What a server is told when it gets an area: its pages, and what this process has open.
pub fn bring(at: u64, numbers: &[u32], held: &[u64]) {
    let answers = answers(at);
    for (to, number) in answers.numbers.iter().zip(numbers) {
        to.store(*number, Relaxed);
    }
    for (to, node) in answers.held.iter().zip(held) {
        to.store(*node, Relaxed);
    }
}

/// Copies bytes into an area; those that have no place there are left out.
pub fn copy_in(area: u64, from: &[u8]) {
    let length = from.len().min(DATA);
    // SAFETY: an area's pages of bytes, as above, which no reference of Rust's covers. What the
    // server stores there meanwhile is its own affair.
    unsafe { ptr::copy_nonoverlapping(from.as_ptr(), area as *mut u8, length) }
}

/// Copies bytes out of an area.
pub fn copy_out(area: u64, to: &mut [u8]) {
    let length = to.len().min(DATA);
    // SAFETY: as above.
    unsafe { ptr::copy_nonoverlapping(area as *const u8, to.as_mut_ptr(), length) }
}

/// The first entry of a folder that stands in an area, and its name, ended by a zero.
pub fn entry(area: u64) -> (Entry, [u8; NAME + 1]) {
    // SAFETY: as above: any bytes are an entry.
    let entry = unsafe { (area as *const Entry).read_volatile() };
    let mut name = [0; NAME + 1];
    let length = (entry.length as usize).min(NAME);
    copy_out(area + size_of::<Entry>() as u64, &mut name[..length]);
    (entry, name)
}
