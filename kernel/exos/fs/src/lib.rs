//! A crash-safe file system over blocks that an application owns, with a cache that it controls.
//! `no_std`, without a processor: tested on the host.
#![no_std]
#![forbid(unsafe_code)]
