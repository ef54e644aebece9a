//! A file system in memory: names and attributes in the heap, bytes in [`Pages`] that whoever
//! serves it owns. `no_std`, without a processor: tested on the host.
//!
//! | module | what |
//! |---|---|
//! | [`pages`] | memory for bytes, which may be lent |
//! | [`memory`] | the file system: [`Memory`] is a [`Files`](postern_exos_abi::file::Files) |
//! | `node` | files by their numbers |
//! | `folder` | names, in the order in which they came |
//! | `bytes` | the pages of a file |
//!
//! A page that is lent is never written again: the bytes that change stand in another one then.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bytes;
mod folder;
pub mod memory;
mod node;
pub mod pages;

pub use memory::Memory;
pub use pages::{Owned, Pages};
