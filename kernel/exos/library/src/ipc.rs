//! Communication between processes (*Exokernel*, sections 6.1 and 7.1), in memory that they share
//! and by giving each other the processor.
//!
//! | module | what |
//! |---|---|
//! | [`pipe`] | bytes in a ring |
//! | [`wait`] | turns, and locks in shared memory |
//! | [`keep`] | pages that several bind, by capability |
//! | [`area`], [`slots`] | where they stand |

pub mod area;
pub mod keep;
pub mod pipe;
pub mod slots;
mod trusted;
pub mod wait;

use postern_aegis::Error;
use postern_aegis::calls::Target;

/// Binds everything that is shared in the space of a copy of this process, before it runs.
pub fn inherit(to: Target) -> Result<(), Error> {
    slots::inherit(to)
}
