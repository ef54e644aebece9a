//! Positions of the processors' vectors of time slices.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::{Error, SLICES};

use crate::{books, calls};

/// A position of a processor's vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The processor's number.
    pub processor: usize,
    /// The position, below [`SLICES`].
    pub position: usize,
}

/// How many processors run.
pub fn processors() -> usize {
    books::machine().processors.load(Relaxed) as usize
}

/// Takes the first free position of a processor's vector.
pub fn take(processor: usize) -> Result<Slice, Error> {
    let vector = books::machine()
        .slices
        .get(processor)
        .ok_or(Error::Argument)?;
    for (position, slice) in vector.iter().enumerate().take(SLICES) {
        if slice.owner.load(Relaxed) == 0 {
            match calls::take_slice(processor, position) {
                // Somebody was faster.
                Err(Error::Taken) => {}
                result => {
                    return result.map(|_| Slice {
                        processor,
                        position,
                    });
                }
            }
        }
    }
    Err(Error::Exhausted)
}

/// The positions that an environment owns.
pub fn of(environment: u16) -> impl Iterator<Item = Slice> {
    (0..processors()).flat_map(move |processor| {
        let vector = &books::machine().slices[processor];
        (0..SLICES)
            .filter(move |position| vector[*position].owner.load(Relaxed) == environment)
            .map(move |position| Slice {
                processor,
                position,
            })
    })
}

/// Ticks of a processor so far.
pub fn ticks(processor: usize) -> u64 {
    books::machine()
        .processor
        .get(processor)
        .map_or(0, |record| record.ticks.load(Relaxed))
}
