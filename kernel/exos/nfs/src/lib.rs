//! A client of NFS version 3 (RFC 1813) over datagrams that somebody else sends and receives.
//! `no_std`, without a network: tested on the host.
#![no_std]
#![forbid(unsafe_code)]
