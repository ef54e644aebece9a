//! What the network library of ExOS decides: addresses, ports, names. `no_std`, without a network:
//! tested on the host.
#![no_std]
#![forbid(unsafe_code)]
