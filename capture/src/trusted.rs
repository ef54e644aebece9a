//! The only place for `unsafe`: a packet socket's calls, the words of a ring that the kernel
//! writes, too, and a signal's handler.

pub(crate) mod ahead;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod word;
