//! The only place for `unsafe`: a packet socket's calls, the words of a ring that the kernel
//! writes, too, a signal's handler, and the C library's calendar and users.

pub(crate) mod ahead;
pub(crate) mod clock;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod user;
pub(crate) mod word;
