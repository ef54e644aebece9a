//! The tests of this crate in one program, for one is linked in a fraction of the time of many.

mod errors;
mod features;
mod hostile;
mod kernel;
mod language;
mod mutation;
mod random;
mod reference;
mod support;
mod torture;
