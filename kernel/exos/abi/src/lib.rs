//! What processes of ExOS and the registry (`init`) agree on, whichever version of the library
//! each is linked with: requests, the table of processes, what a process finds when it starts.
//!
//! | module | what |
//! |---|---|
//! | [`address`] | where things are in a process's space |
//! | [`request`] | what a process asks of the registry |
//! | [`table`] | the table of processes, which everybody reads |
//! | [`start`] | the pages of arguments, environment and descriptors |
//! | [`mailbox`] | the page that a process shares with the registry |
//! | [`directory`] | what the archive has |
//! | [`disk`] | which blocks of the disk are files' |
//! | [`file`] | what a file system is for those who use it |
//! | [`protocol`] | how processes ask a server of files |
//! | [`service`] | what processes offer to all others |
//! | [`network`] | what the service `net` says of the network |
//! | [`errno`], [`signal`] | numbers as C's library has them |
#![no_std]
#![forbid(unsafe_code)]

pub mod address;
pub mod directory;
pub mod disk;
pub mod errno;
pub mod file;
pub mod mailbox;
pub mod network;
pub mod protocol;
pub mod request;
pub mod service;
pub mod signal;
pub mod start;
pub mod table;

/// The version of all this: in the upper half of a request's first word, in the start page, and in
/// the flags of a program's [`HEADER`].
pub const VERSION: u32 = 1;

/// The type of the header in a program's file whose flags are the version of the start page that
/// the program reads: `exos` as bytes.
pub const HEADER: u32 = 0x6578_6f73;
