//! A row: the least of some measurements, said in a form that the host reads.

use postern_aegis::abi::{Call, Error};
use postern_aegis::{entry, println};

use crate::trusted;

/// Measurements of each row. Ends of slices come between; the first one meets what is not there yet.
const TRIES: usize = 12;

/// Why a row cannot be measured.
#[derive(Clone, Copy, Debug)]
pub struct Refused(pub &'static str, pub i64);

/// What rows are made of.
pub type Outcome = Result<(), Refused>;

/// Refusals with words of what was to be done.
pub trait Named<T> {
    /// Says what it was.
    fn named(self, what: &'static str) -> Result<T, Refused>;
}

impl<T> Named<T> for Result<T, Error> {
    fn named(self, what: &'static str) -> Result<T, Refused> {
        self.map_err(|error| Refused(what, error as i64))
    }
}

/// Says the least of what is measured, which was done so many times in each measurement.
pub fn row(
    name: &'static str,
    repeats: u64,
    mut measure: impl FnMut() -> Result<u64, Refused>,
) -> Outcome {
    let mut least = u64::MAX;
    // A whole slice is before us.
    entry::yield_slice();
    for _ in 0..TRIES {
        least = least.min(measure()?);
    }
    trusted::end_row();
    println!("figure {name} {} {repeats}", least / repeats);
    Ok(())
}

/// A call that must be done: how many instructions, and the result.
pub fn call(name: &'static str, call: Call, arguments: &[u64]) -> Result<(u64, u64), Refused> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    match trusted::call(call, all) {
        (_, result) if result < 0 => Err(Refused(name, result)),
        (took, result) => Ok((took, result as u64)),
    }
}

/// A row of a call that can be made again and again.
pub fn call_row(name: &'static str, which: Call, arguments: &[u64]) -> Outcome {
    row(name, 1, || {
        call(name, which, arguments).map(|(took, _)| took)
    })
}
