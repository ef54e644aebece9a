//! Peers: one extension calls another.

mod calls;
mod ends;
mod guest;
mod registers;
mod stacks;
#[path = "../support/mod.rs"]
mod support;
