//! A web server whose bytes go from the file cache to the network: TCP for servers whose segments
//! name pages, and sums that are computed once. `no_std`, without a network: tested on the host.
#![no_std]
#![forbid(unsafe_code)]
