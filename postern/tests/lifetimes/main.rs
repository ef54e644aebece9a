//! Every function of the host's that an extension can be in, and every way in which the domain can
//! end under it, on one thread and on two: nothing that is still used is dropped, and all of it is
//! afterwards. Memory that was freed is not used again here, and holds no addresses, so a use after
//! the end faults.
#![allow(clippy::undocumented_unsafe_blocks)]

mod allocator;
mod callbacks;
mod cycles;
mod scene;
#[path = "../support/mod.rs"]
mod support;
