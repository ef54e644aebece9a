//! What C calls.

mod trusted;

pub use trusted::begin;
