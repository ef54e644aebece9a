//! Hands every system call of unmodified programs to an extension, the *agent*.
//!
//! Each program of a tree is loaded by a loader (`loader/`), which the kernel executes in its
//! place; the agent runs there, in the program's own process, in a window that all processes of the
//! tree have. What is here starts the first of them and waits for the last.
//!
//! **This is no boundary**: a program that means to can go around its agent. It is for seeing and
//! changing what programs do that do not know of it.
//!
//! With [`Interposer::enforce`] there is no loader. The agent runs in this process instead, and
//! decides about those calls alone that acquire something (`enforce/calls.rs`): these cannot be
//! made without it.

mod enforce;
mod files;
mod tree;
mod trusted;
mod watch;

pub use tree::{InterposeError, Interposer};
