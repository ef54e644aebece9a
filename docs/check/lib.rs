//! The documentation's code, compiled and run: no page may show what does not work.
//!
//! Three kinds of code blocks are checked, in the pages of the book and in README.md:
//! - `rust`: compiled and run as documentation tests ([`enter`] puts each into a directory with its
//!   page's extensions);
//! - `c file=NAME` (and `cpp`, `asm`): sources that the page's other blocks use;
//! - `console`: every line that begins with `$` is run, and what it prints is compared with what
//!   the page shows.
//!
//! A block with the word `norun` is not run (it installs something, say).
#![forbid(unsafe_code)]

mod extensions;
pub mod output;
pub mod page;

pub use extensions::{enter, scratch, workspace};

#[cfg(doctest)]
include!(concat!(env!("OUT_DIR"), "/blocks.rs"));
