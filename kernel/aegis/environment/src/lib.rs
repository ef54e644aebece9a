//! What environments of Aegis link: the kernel's interface as functions and types of Rust. It
//! manages nothing by itself either; what it has is what every library operating system needs.
//!
//! | module | what |
//! |---|---|
//! | [`calls`] | the calls, typed |
//! | [`image`] | where the program itself stands, which no call may move |
//! | [`books`] | the kernel's bookkeeping, read |
//! | [`context`] | the page where the kernel delivers events |
//! | [`entry`] | exceptions, requests, events, as functions; yields and transfers |
//! | [`pages`] | pages by number, from the public free list |
//! | [`memory`] | addresses, tables, words; pages that come when they are touched |
//! | [`slices`] | positions of the processors' vectors |
//! | [`ring`] | pages in which the kernel tells what came |
//! | [`disk`] | the disk: requests, and what became of them |
//! | [`handler`] | handlers of messages, of images |
//! | [`archive`], [`load`] | programs that came with the root, as environments |
//! | [`mailbox`] | a page that maker and child share |
//! | [`console`] | printing |
//! | [`time`] | the time of day, and the alarm |
//! | [`start`] | how a program begins and ends, panics too |
//!
//! `unsafe` is in modules named `trusted` and in assembly, each block with its argument.
#![no_std]

pub mod archive;
pub mod books;
pub mod calls;
pub mod console;
pub mod context;
pub mod disk;
pub mod entry;
pub mod handler;
pub mod image;
pub mod load;
pub mod mailbox;
pub mod memory;
pub mod pages;
pub mod ring;
pub mod slices;
pub mod start;
pub mod time;

pub use postern_aegis_abi as abi;
pub use postern_aegis_abi::{Error, Mapping, PAGE, ROOT, address, records};
