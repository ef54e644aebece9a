//! A web server whose bytes go from the file cache to the network: TCP for servers whose segments
//! name pages, and sums that are computed once (*Exokernel*, section 8, and the Cheetah server of
//! *Application performance and flexibility on exokernel systems*, section 7.2). `no_std`, without
//! a network and without memory of its own for what it sends: tested on the host.
//!
//! | module | what |
//! |---|---|
//! | [`sum`] | sums of the Internet's protocols |
//! | [`piece`] | bytes by their place in memory; what a platform has: memory, a wire |
//! | [`frame`] | headers of Ethernet, IPv4 and TCP |
//! | [`keyed`] | a keyed hash |
//! | [`objects`] | what is sent: pages, and the sums of their chunks |
//! | [`tcp`] | the server's side of TCP |
//! | [`http`] | requests and heads of answers |
//! | [`server`] | both together |
//! | [`program`] | what programs behind paths are told, and what they answer |
//! | [`picture`], [`plugin`], [`through`] | pictures, what plugins see of them, and which are asked for |
//! | [`json`], [`text`] | words |
//!
//! Everything that arrives is somebody else's: no frame and no request makes it panic, and what it
//! keeps for strangers is bounded.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod frame;
pub mod http;
pub mod json;
pub mod keyed;
pub mod objects;
pub mod picture;
pub mod piece;
pub mod plugin;
pub mod program;
pub mod server;
pub mod sum;
pub mod tcp;
pub mod text;
pub mod through;
