//! Descriptors of the loader's own, and of the agent's, which the next program of this process
//! needs: programs that close all they do not know find these not there.

use crate::agent::places;
use crate::calls;
use crate::start;
use crate::stubs::Kind;
use crate::system::{self, error, number};
use crate::trap::Call;
use alloc::vec::Vec;

/// The numbers of the loader's, and of those that are the agent's.
fn all() -> impl Iterator<Item = i32> {
    let told = start::told();
    let loaders = [
        told.loader,
        told.agent,
        told.window,
        told.output,
        told.alive,
        told.keeper,
    ];
    let all = loaders.into_iter().chain(places::kept());
    all.filter(|number| *number >= 0)
}

/// The numbers, in order.
fn own() -> Vec<u64> {
    let mut all: Vec<u64> = all().map(|number| number as u64).collect();
    all.sort_unstable();
    all
}

/// Whether a word names one of them.
pub fn is_own(number: u64) -> bool {
    all().any(|own| own == number as i32)
}

/// The calls `close`, `dup2` and `dup3`, whose word with this index is a descriptor that is closed.
pub fn closed(call: &mut Call<'_>, words: [u64; 6], index: usize) {
    match is_own(words[index]) {
        true => call.answer(EBADF),
        false => calls::pass(call, words, Kind::Plain),
    }
}

/// The calls `fcntl` and `ioctl`: no flag closes the loader's when a program is executed.
pub fn flagged(call: &mut Call<'_>, words: [u64; 6]) {
    match is_flagged(call.number, words[0], words[1]) {
        true => call.answer(0),
        false => calls::pass(call, words, Kind::Plain),
    }
}

/// Whether it is one of the loader's whose flags such a call sets.
pub fn is_flagged(number: u64, file: u64, request: u64) -> bool {
    const SET_FLAGS: u64 = 2;
    const CLOSES: u64 = 0x5451;
    let sets = match number {
        number::FCNTL => request == SET_FLAGS,
        _ => request == CLOSES,
    };
    sets && is_own(file)
}

/// The call `close_range`: what lies between the loader's.
pub fn range(call: &mut Call<'_>, [first, last, flags, ..]: [u64; 6]) {
    let (mut from, last) = (first & 0xffff_ffff, last & 0xffff_ffff);
    if from > last {
        return call.answer(error::EINVAL);
    }
    for end in own()
        .into_iter()
        .filter(|own| (first & 0xffff_ffff..=last).contains(own))
        .chain([last + 1])
    {
        if from < end {
            // SAFETY: descriptors of the program's, which it closes.
            let result =
                unsafe { system::call(number::CLOSE_RANGE, [from, end - 1, flags, 0, 0, 0]) };
            if result < 0 {
                return call.answer(result);
            }
        }
        from = from.max(end + 1);
    }
    call.answer(0);
}

const EBADF: i64 = -9;
