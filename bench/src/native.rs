//! The baselines of `postern bench` that are used here; all `unsafe` of this crate is in them.

#[path = "../../cli/src/bench/native/cycle.rs"]
#[allow(dead_code)]
pub mod cycle;
#[path = "../../cli/src/bench/native/library.rs"]
#[allow(dead_code)]
pub mod library;
