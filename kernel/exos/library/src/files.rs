//! Descriptors of files: the console, files of the archive (read only), pipes. They are this
//! process's own; what parent and child have in common of an open file, its offset, stands in pages
//! that both bind.
//!
//! | module | what |
//! |---|---|
//! | [`offsets`] | those pages |
//! | [`console`] | lines from the console, bytes to it |
//! | [`descriptors`] | numbers, and what they stand for |
//! | [`ready`] | what can be done without waiting |

pub mod console;
pub mod descriptors;
pub mod offsets;
pub mod ready;
mod trusted;

use postern_aegis::Error;
use postern_exos_abi::start::{Handed, Head};
use postern_exos_load::space::Space;

/// What is to be in common with a copy or a new program can be bound by it from now on.
pub fn share() -> Result<(), Error> {
    offsets::share()
}

/// Binds in a copy's space what it has in common with this process.
pub fn inherit(space: &Space) -> Result<(), Error> {
    offsets::bind(space)?;
    crate::ipc::inherit(space.target)
}

/// Hands descriptors on to another program, which has them at the same numbers.
pub fn hand_on(
    space: &Space,
    head: &mut Head,
    mut hand: impl FnMut(&Handed) -> Result<(), Error>,
) -> Result<(), Error> {
    for handed in descriptors::to_hand_on(space)? {
        if handed.kind != 0 {
            hand(&handed)?;
            head.descriptors += 1;
        }
    }
    offsets::bind(space)?;
    (head.offsets, head.offsets_capability) = offsets::pages();
    Ok(())
}
