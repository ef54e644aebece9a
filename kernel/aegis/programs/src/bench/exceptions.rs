//! Exceptions to the program's own handler, and back without the kernel (Table 5).

use postern_aegis::{calls, memory, pages};

use crate::rows::{Named, Outcome, row};
use crate::trusted::{Handler, Raise, exception};

pub fn all() -> Outcome {
    let at = memory::reserve(1);
    // Only to be read.
    let page = memory::map_fresh(at, 0).named("mapping")?;
    calls::fpu(true).named("coprocessor on")?;
    both(
        "unaligned",
        "unaligned-trip",
        Raise::Unaligned,
        13,
        at + 8,
        true,
    )?;
    both("division", "division-trip", Raise::Division, 0, at, false)?;
    both(
        "coprocessor",
        "coprocessor-trip",
        Raise::Coprocessor,
        7,
        at,
        false,
    )?;
    both("protection", "protection-trip", Raise::Store, 14, at, false)?;
    pages::free(page).named("freeing")
}

/// To the handler, and the whole trip.
fn both(
    to: &'static str,
    trip: &'static str,
    raise: Raise,
    vector: usize,
    at: u64,
    coprocessor: bool,
) -> Outcome {
    for (name, handler) in [(to, Handler::Arrives), (trip, Handler::Returns)] {
        row(name, 1, || {
            calls::fpu(coprocessor).named("coprocessor")?;
            Ok(exception(raise, vector, at, handler))
        })?;
    }
    calls::fpu(false).named("coprocessor off").map(drop)
}
