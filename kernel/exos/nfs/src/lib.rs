//! A client of NFS version 3 (RFC 1813) over messages that somebody else sends and receives.
//! `no_std`, without a network: tested on the host, against nfs-ganesha and against a server
//! that lies.
//!
//! | file | what |
//! |---|---|
//! | [`xdr`] | how data stands in messages (RFC 4506) |
//! | [`record`] | messages in a stream (RFC 5531, section 11) |
//! | [`rpc`] | calls and their answers (RFC 5531): numbers, credentials, patience |
//! | [`mount`] | from a host and a folder's name to a file handle (RFC 1833; RFC 1813, appendix I) |
//! | [`attributes`] | what a server says of a file, checked |
//! | [`procedures`] | the procedures of NFS |
//! | `table` | the files that have numbers here |
//! | `blocks` | bytes that were read |
//! | `retained` | bytes that the server may still lose |
//! | [`files`] | all of it as [`postern_exos_abi::file::Files`] |
//! | [`read_only`] | the same without changing anything |
//!
//! A server is believed in nothing that it can get wrong: lengths, counts, names, cookies, kinds
//! and sizes are compared with what was asked and with what there can be, nothing here panics,
//! every wait and every loop has an end, and memory has bounds whatever is answered.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod attributes;
mod blocks;
pub mod files;
pub mod mount;
pub mod procedures;
pub mod read_only;
pub mod record;
mod retained;
pub mod rpc;
mod table;
#[cfg(test)]
mod tests;
pub mod xdr;

pub use files::Mounted;
pub use mount::{Host, MountError, Options};
pub use read_only::ReadOnly;
pub use rpc::{Patience, Transport};
