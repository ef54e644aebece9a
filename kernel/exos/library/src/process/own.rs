//! What this process is: its number and its parent's, its pages, its times.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::{books, slices, time};
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
    let own = books::environment(books::own_number()).whole.load(Relaxed);
    let record = registry::find(pid());
    record.map_or([own, 0], |record| {
        let before = record.ran_before.load(Relaxed);
        [own + before, record.children_ran.load(Relaxed)]
    })
}

/// What a process has used: `struct exos_usage` of `<exos/process.h>`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Slices that it had to their end: what it yielded is not among them.
    pub slices: u64,
    /// Slices of children of its that were waited for.
    pub children: u64,
    /// Pages that it has.
    pub pages: u32,
    /// Pages that it may have.
    pub room: u32,
}

/// What a process has used; none: there is no such process. Who has ended has no pages.
pub fn usage(pid: u32) -> Option<Usage> {
    let record = registry::find(pid)?;
    let number = record.environment.load(Relaxed);
    let body = books::environment(number);
    let lives = books::lives(number) && body.birth.load(Relaxed) == record.birth.load(Relaxed);
    let of_it = |word: u64| if lives { word } else { 0 };
    Some(Usage {
        slices: record.ran_before.load(Relaxed) + of_it(body.whole.load(Relaxed)),
        children: record.children_ran.load(Relaxed),
        pages: of_it(body.pages.load(Relaxed).into()) as u32,
        room: of_it(body.pages_limit.load(Relaxed).into()) as u32,
    })
}

/// What there is: `struct exos_machine` of `<exos/process.h>`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    /// Pages.
    pub pages: u32,
    /// Pages that nobody has.
    pub free: u32,
    /// Processors.
    pub processors: u32,
    /// Milliseconds since it began.
    pub ticks: u64,
}

/// What the machine has.
pub fn machine() -> Machine {
    Machine {
        pages: books::pages().len() as u32,
        free: books::machine().free.load(Relaxed),
        processors: slices::processors() as u32,
        ticks: ticks(),
    }
}

/// Milliseconds since the machine began: a slice's time is one.
pub fn ticks() -> u64 {
    let frequency = u128::from(time::frequency().max(1));
    (u128::from(slices::clock()) * 1000 / frequency) as u64
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
