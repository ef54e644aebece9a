//! The host's side of ExOS.
//!
//! | module | what |
//! |---|---|
//! | [`place`] | where things lie |
//! | [`build`] | the library and the root environment |
//! | [`cc`] | the compiler for programs |
//! | [`programs`] | the programs in C, compiled when something has changed |
//! | [`software`] | what a machine boots |
#![forbid(unsafe_code)]

pub mod build;
pub mod cc;
pub mod place;
pub mod programs;
pub mod software;
