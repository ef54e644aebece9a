//! What events need `unsafe` for: descriptors that several threads read until the last one lets go,
//! system calls that have no safe face, and the program that the kernel runs.

mod assembler;
pub(crate) mod bpf;
pub(crate) mod claims;
pub(crate) mod kernel;
mod lent;
pub(crate) mod slots;
pub(crate) mod taking;
