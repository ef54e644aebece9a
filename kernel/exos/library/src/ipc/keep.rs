//! Pages that several processes bind: whoever has the capability may.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::{Error, Mapping, books, entry, memory, pages};
use postern_exos_abi::errno;

use crate::ipc::area;
use crate::memory::room;
use crate::process::{registry, signals};

/// Pages that were made together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept {
    /// The capability to read them.
    pub read: u64,
    /// To write them, too.
    pub write: u64,
    /// Their name in the kernel's books.
    pub name: u32,
}

/// Times that pages are taken again which the registry may be about to free.
const ATTEMPTS: u32 = 16;

/// Takes fresh pages of zeros and binds them at addresses, to be written. They are the registry's
/// then, and kept until nobody binds them, whoever ends. None is left if that fails.
pub fn fresh(at: impl Iterator<Item = u64> + Clone, numbers: &mut [u32]) -> Result<Kept, Error> {
    for _ in 0..ATTEMPTS {
        match take(at.clone(), numbers) {
            // What others have left is free when they are gone, and the registry has looked.
            Err(Error::Quota | Error::Exhausted) => {
                room::sweep();
                entry::yield_slice();
            }
            result => return result,
        }
    }
    take(at, numbers)
}

fn take(at: impl Iterator<Item = u64> + Clone, numbers: &mut [u32]) -> Result<Kept, Error> {
    room::ahead(numbers.len() as u64)?;
    let mut taken = 0;
    let bind = |(at, number): (u64, &mut u32)| {
        *number = room::patiently(|| memory::map_fresh(at, Mapping::WRITE))?;
        taken += 1;
        Ok(())
    };
    let bound = at.clone().zip(numbers.iter_mut()).try_for_each(bind);
    let kept = bound.and_then(|()| keep(numbers));
    if kept.is_err() {
        for (at, number) in at.zip(numbers.iter()).take(taken) {
            area::clear(at, 1);
            // Those that the registry has by now it frees, since nobody binds them.
            let _ = pages::free(*number);
        }
    }
    kept
}

fn keep(numbers: &[u32]) -> Result<Kept, Error> {
    let _busy = signals::hold();
    let [read, write] = registry::keep(numbers, true).map_err(|error| match error {
        errno::NOMEM => Error::Quota,
        _ => Error::Denied,
    })?;
    let first = numbers.first().and_then(|number| books::page(*number));
    let name = first.ok_or(Error::Argument)?.write.load(Relaxed);
    Ok(Kept { read, write, name })
}

/// Whether anybody binds a page that was kept under a name. Another page may have its number later.
pub fn is_bound(page: u32, name: u32) -> bool {
    books::page(page).is_some_and(|record| {
        record.write.load(Relaxed) == name && record.bindings.load(Relaxed) > 0
    })
}
