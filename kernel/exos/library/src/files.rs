//! Descriptors of files: the console, files of the archive (read only), pipes. They are this
//! process's own; what parent and child have in common of an open file, its offset, stands in pages
//! that both bind.
//!
//! | module | what |
//! |---|---|
//! | [`server`], [`ram`] | serving files to others; those in memory |
//! | [`mounts`] | servers, and what this process has open of their files |
//! | [`paths`] | what a path stands for |
//! | [`folders`] | paths of folders that are open |
//! | [`served`] | what is done with files of servers |
//! | [`offsets`] | those pages |
//! | [`console`] | lines from the console, bytes to it |
//! | [`descriptors`] | numbers, and what they stand for |
//! | [`ready`] | what can be done without waiting |

pub mod console;
pub mod descriptors;
pub mod folders;
pub mod mounts;
pub mod offsets;
pub mod paths;
pub mod ram;
pub mod ready;
pub mod served;
pub mod server;
mod trusted;

use postern_aegis::{Error, slices, time};
use postern_exos_abi::errno::Errno;
use postern_exos_abi::start::{Handed, Head};
use postern_exos_load::space::Space;

use crate::process::own;

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let within = slices::clock() % time::frequency();
    let nano = u128::from(within) * 1_000_000_000 / u128::from(time::frequency());
    time::now() * 1_000_000_000 + nano as u64
}

/// What is to be in common with a copy or a new program can be bound by it from now on.
pub fn share() -> Result<(), Error> {
    offsets::share(descriptors::places())
}

/// A child that has not begun has open what this process has.
pub fn tell_child(pid: u32) -> Result<(), Errno> {
    mounts::tell_child(pid)
}

/// This process ends, and with the first one the machine: then all files are on the disk for good.
pub fn leave() {
    if own::pid() == 1 {
        mounts::synchronise();
    }
}

/// In a copy of a process.
pub fn in_copy() {
    mounts::in_copy();
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
