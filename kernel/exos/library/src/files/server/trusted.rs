//! Areas as bytes, and the one server of this process.

use core::ptr;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

use postern_aegis::entry;
use postern_exos_abi::file::Files;
use postern_exos_abi::protocol::{Answers, Counters, DATA, Entry, HELD, PAGES};

use super::{Server, clients};

static SERVER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

extern "C" fn procedure<F: Files>(caller: u64, a: u64, b: u64, c: u64, d: u64) -> u64 {
    let server = SERVER.load(Relaxed).cast::<Server<'_, F>>();
    // SAFETY: `serve` has stored it, where it was borrowed, and lends it to nobody else until it comes
    // back; calls come one after the other.
    let server = unsafe { &mut *server };
    server.request(caller as u16, [a, b, c, d])
}

/// Serves until a word is not 0; whether it could.
pub fn serve<F: Files>(server: &mut Server<'_, F>, until: &AtomicU32) -> bool {
    SERVER.store(ptr::from_mut(server).cast(), Relaxed);
    let served = entry::serve_procedure(procedure::<F>, until);
    SERVER.store(ptr::null_mut(), Relaxed);
    served
}

/// Bytes of a client's area. The client may store to them at any time: whoever has them is not led
/// astray by what they are.
pub fn bytes<'a>(client: usize, at: usize, length: usize) -> &'a mut [u8] {
    let at = at.min(DATA);
    let length = length.min(DATA - at);
    let from = clients::address(client) + at as u64;
    // SAFETY: whoever is a client has its area bound there, whose pages the registry keeps as long
    // as they are bound: it is taken away only by the server itself, between requests. One request
    // is served at a time, and each takes these bytes once.
    unsafe { slice::from_raw_parts_mut(from as *mut u8, length) }
}

/// Copies bytes of a client's area.
pub fn copy_out(client: usize, at: usize, to: &mut [u8]) {
    let from = bytes(client, at, to.len());
    to[..from.len()].copy_from_slice(from);
}

/// Copies bytes to a client's area.
pub fn copy_in(client: usize, at: usize, from: &[u8]) {
    let to = bytes(client, at, from.len());
    let length = to.len();
    to.copy_from_slice(&from[..length]);
}

/// A string of a client's area, copied; `None` if it has no end.
pub fn string(client: usize, at: usize, to: &mut [u8]) -> Option<&[u8]> {
    copy_out(client, at, to);
    let length = to.iter().position(|byte| *byte == 0)?;
    to.get(..length)
}

/// Writes an entry of a folder.
pub fn write_entry(client: usize, at: usize, head: &Entry, name: &[u8]) {
    let mut words = [0; size_of::<Entry>()];
    words[..8].copy_from_slice(&head.node.to_le_bytes());
    words[8..16].copy_from_slice(&head.next.to_le_bytes());
    words[16..20].copy_from_slice(&head.kind.to_le_bytes());
    words[20..24].copy_from_slice(&head.length.to_le_bytes());
    copy_in(client, at, &words);
    copy_in(client, at + words.len(), name);
}

fn answers(client: usize) -> &'static Answers {
    let at = clients::address(client) + DATA as u64;
    // SAFETY: as above, and all words are atomics.
    unsafe { &*(at as *const Answers) }
}

/// Words for a client.
pub fn answer(client: usize, words: &[u64]) {
    for (to, word) in answers(client).words.iter().zip(words) {
        to.store(*word, Relaxed);
    }
}

/// Numbers of the pages of an area, of which that of answers is bound.
pub fn numbers(client: usize) -> [u32; PAGES] {
    let numbers = &answers(client).numbers;
    core::array::from_fn(|index| numbers[index].load(Relaxed))
}

/// What a client says that it has open.
pub fn held(client: usize) -> [u64; HELD] {
    let held = &answers(client).held;
    core::array::from_fn(|index| held[index].load(Relaxed))
}

/// The page of counts.
pub fn counters(at: u64) -> &'static Counters {
    // SAFETY: the server has bound a page of its own there, for good; all words are atomics.
    unsafe { &*(at as *const Counters) }
}
