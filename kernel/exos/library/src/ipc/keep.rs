//! Pages that several processes bind: whoever has the capability may.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::call::{RIGHT_READ, RIGHT_WRITE};
use postern_aegis::{Error, Mapping, books, calls, memory};

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

/// Takes fresh pages of zeros and binds them at addresses, to be written. They are kept until
/// nobody binds them, whoever ends.
pub fn fresh(at: impl Iterator<Item = u64>, numbers: &mut [u32]) -> Result<Kept, Error> {
    for (at, number) in at.zip(numbers.iter_mut()) {
        *number = memory::map_fresh(at, Mapping::WRITE)?;
    }
    keep(numbers)
}

fn keep(numbers: &[u32]) -> Result<Kept, Error> {
    let name = numbers.first().map_or(2, |number| number + 2);
    for number in numbers {
        calls::rename(*number, name, name)?;
    }
    Ok(Kept {
        read: calls::capability(name, RIGHT_READ, 0)?,
        write: calls::capability(name, RIGHT_WRITE, 0)?,
        name,
    })
}

/// Whether anybody binds a page that was kept under a name. Another page may have its number later.
pub fn is_bound(page: u32, name: u32) -> bool {
    books::page(page).is_some_and(|record| {
        record.write.load(Relaxed) == name && record.bindings.load(Relaxed) > 0
    })
}
