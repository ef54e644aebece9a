//! What C calls.

mod trusted;
