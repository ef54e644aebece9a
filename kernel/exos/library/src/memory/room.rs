//! Pages: taken, with more room asked of the registry when there is none left.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::{Error, ROOT, books, entry, pages};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::request::Operation;

/// Pages that are asked for at least.
const STEP: u64 = 256;

/// Pages that a call needs at most: one, and tables of all levels with their links.
const LEAST: u64 = 8;

/// Slices that the registry is waited for. There is an end, since whoever asks may stand in the
/// middle of another request.
const PATIENCE: u32 = 4096;

/// Asks the registry for so many pages more, and some besides if there are.
pub fn ask(more: u64) -> Result<(), Error> {
    request(more.max(STEP)).or_else(|error| match more < STEP {
        true => request(more),
        false => Err(error),
    })
}

/// Has the registry free what nobody binds any more.
pub fn sweep() {
    let _ = request(0);
}

fn request(more: u64) -> Result<(), Error> {
    let words = [Operation::Room.word(), more, 0, 0, 0];
    for _ in 0..PATIENCE {
        match entry::request(ROOT, words) {
            Ok([0, ..]) => return Ok(()),
            // The registry serves somebody else, or runs on another processor.
            Ok([first, ..]) if Errno::of(first) == Some(errno::BUSY) => {}
            Err(Error::Busy) => {}
            _ => return Err(Error::Quota),
        }
        entry::yield_slice();
    }
    Err(Error::Quota)
}

/// Does what takes pages, again with more room if there was none.
pub fn patiently<T>(mut call: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    match call() {
        Err(Error::Quota) => {
            ask(LEAST)?;
            call()
        }
        result => result,
    }
}

/// A page.
pub fn take() -> Result<u32, Error> {
    patiently(pages::take)
}

/// Sees to room for so many pages beyond those that this process has, and their tables.
pub fn ahead(more: u64) -> Result<(), Error> {
    let record = books::environment(books::own_number());
    let has = u64::from(record.pages.load(Relaxed));
    let limit = u64::from(record.pages_limit.load(Relaxed));
    let all = has.saturating_add(more);
    // Tables of the processor's, and the library's own when it moves to one of twice the size.
    let wanted = all.saturating_add(all / 64 + 16);
    // What others have is not waited for: they are asked only where a page is needed now.
    let free = books::machine().free.load(Relaxed);
    if wanted.saturating_sub(has) > free.into() {
        return Err(Error::Exhausted);
    }
    if wanted <= limit {
        return Ok(());
    }
    ask(wanted - limit)
}
