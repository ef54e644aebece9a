//! Positions of the processors' vectors of time slices.

mod trusted;

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

/// Whose slice this is, if it is another's.
pub fn giver() -> Option<u16> {
    let own = books::own_number();
    // Who runs has its processor's number in its claim.
    let claim = books::environment(own).claim.load(Relaxed);
    let processor = (claim as usize).checked_sub(1)?;
    let position = books::machine()
        .processor
        .get(processor)?
        .position
        .load(Relaxed) as usize;
    let slice = books::machine().slices[processor].get(position)?;
    // Given with its future: of an asynchronous transfer only the rest of the slice is here.
    let given = slice.runs.load(Relaxed) == own;
    let owner = slice.owner.load(Relaxed);
    (given && owner != own && owner != 0).then_some(owner)
}

/// Whether this environment has slices of others with their future, which it has to give back. Where
/// requests are served while others are, an answer can go with another slice than the one that the
/// request came with.
pub fn has_others() -> bool {
    let own = books::own_number();
    (0..processors()).any(|processor| {
        let vector = &books::machine().slices[processor];
        let mut left = books::machine().processor[processor].owned.load(Relaxed);
        while left != 0 {
            let slice = &vector[left.trailing_zeros() as usize];
            left &= left - 1;
            if slice.runs.load(Relaxed) == own && slice.owner.load(Relaxed) != own {
                return true;
            }
        }
        false
    })
}

/// The processor's own clock: cycles, or instructions under an emulator that counts them.
pub fn clock() -> u64 {
    trusted::clock()
}

/// Ticks of a processor so far.
pub fn ticks(processor: usize) -> u64 {
    books::machine()
        .processor
        .get(processor)
        .map_or(0, |record| record.ticks.load(Relaxed))
}
