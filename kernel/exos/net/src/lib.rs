//! What the network library of ExOS decides: addresses, ports, names, connections. `no_std`,
//! without a network: tested on the host.
//!
//! | module | what |
//! |---|---|
//! | [`frame`] | headers of Ethernet and IP, the sum of the Internet's protocols |
//! | [`arp`] | questions and answers of ARP and RARP |
//! | [`neighbours`] | who has which address: a table that forgets |
//! | [`dhcp`] | an address from a server, and its lease |
//! | [`settings`] | the archive's file `net` |
//! | [`pieces`] | datagrams that come in pieces |
//! | [`nobody`] | answers for what nobody has, and to echoes |
//! | [`station`] | this machine's address, however it is had, and its neighbours |
//! | [`ports`] | whose ports are whose, and the filters' texts |
//! | [`dns`] | questions for names, and answers that are not believed |
//! | [`stack`] | sockets over smoltcp, for one process |
//!
//! Nothing here panics on what comes from the network, and nothing grows with it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod arp;
pub mod dhcp;
pub mod dns;
pub mod frame;
pub mod neighbours;
pub mod nobody;
pub mod pieces;
pub mod ports;
pub mod settings;
pub mod stack;
pub mod station;

/// An address of Ethernet.
pub type Hardware = [u8; 6];

/// Everybody on the Ethernet.
pub const EVERYBODY: Hardware = [0xff; 6];
