//! The host's side of ExOS.
//!
//! | module | what |
//! |---|---|
//! | [`place`] | where things lie |
//! | [`build`] | the library, the root environment, and programs |
//! | [`software`] | what a machine boots |
#![forbid(unsafe_code)]

pub mod build;
pub mod place;
pub mod software;
