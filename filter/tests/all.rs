//! The tests of this crate in one program, for one is linked in a fraction of the time of many.

mod bounded;
mod classic;
mod classifier;
mod cliffs;
mod differential;
mod errors;
mod kernel;
mod links;
mod lists;
mod set;
mod support;
