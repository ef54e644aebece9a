//! Communication between processes (*Exokernel*, sections 6.1 and 7.1), in memory that they share
//! and by giving each other the processor.
//!
//! | module | what |
//! |---|---|
//! | [`pipe`] | bytes in a ring |
//! | [`shared`] | memory |
//! | [`doorbell`] | words that wake who sleeps at them |
//! | [`wait`] | turns, and locks in shared memory |
//! | [`keep`] | pages that several bind, by capability |
//! | [`area`], [`slots`], [`ring`] | where they stand, and how |
//! | [`c`] | what C calls |
//!
//! Calls of procedures (lrpc, tlrpc) are registers alone: `procedure.s` of Aegis' environments.

pub mod area;
pub mod c;
pub mod doorbell;
pub mod keep;
pub mod pipe;
pub mod ring;
pub mod shared;
pub mod slots;
mod trusted;
pub mod wait;

use postern_aegis::calls::Target;
use postern_aegis::{Error, entry};

/// Binds everything that is shared in the space of a copy of this process, before it runs.
pub fn inherit(to: Target) -> Result<(), Error> {
    slots::inherit(to)?;
    shared::inherit(to)
}

/// Lets transfers of others arrive: called once by every process, copies too.
pub fn begin() {
    wait::begin();
    c::begin();
    entry::accept();
}
