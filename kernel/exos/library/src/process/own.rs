//! What this process is: its number and its parent's, its pages, its times.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::{books, slices};
use postern_exos_abi::start::Head;

use crate::process::{registry, trusted};

/// What it was started with.
pub fn head() -> &'static Head {
    trusted::head()
}

/// Its number.
pub fn pid() -> u32 {
    head().pid
}

/// Its parent's number now.
pub fn parent() -> u32 {
    registry::find(pid()).map_or(0, |record| record.parent.load(Relaxed))
}

/// Its name.
pub fn name() -> [u64; 2] {
    let mut bytes = [0; 16];
    if let Some(record) = registry::find(pid()) {
        for (to, from) in bytes.iter_mut().zip(&record.name) {
            *to = from.load(Relaxed);
        }
    }
    words_of(&bytes)
}

/// A name's first bytes as two words; at most 15 of them.
pub fn words_of(name: &[u8]) -> [u64; 2] {
    let mut bytes = [0; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name[..length]);
    let all = u128::from_le_bytes(bytes);
    [all as u64, (all >> 64) as u64]
}

/// Slices that this process had, and those of its children that were waited for.
pub fn times() -> [u64; 2] {
    let own = books::environment(books::own_number()).ran.load(Relaxed);
    let record = registry::find(pid());
    record.map_or([own, 0], |record| {
        let before = record.ran_before.load(Relaxed);
        [own + before, record.children_ran.load(Relaxed)]
    })
}

/// Slices that went by on the first processor.
pub fn ticks() -> u64 {
    slices::ticks(0)
}

/// Pages that this process may have.
pub fn room() -> u64 {
    let record = books::environment(books::own_number());
    record.pages_limit.load(Relaxed).into()
}

/// Pages that it has.
pub fn pages() -> u64 {
    let record = books::environment(books::own_number());
    record.pages.load(Relaxed).into()
}
