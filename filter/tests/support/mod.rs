//! What the tests share: libpcap as the judge, and packets and expressions at random.
#![allow(dead_code)]

pub mod arena;
pub mod confined;
pub mod connections;
pub mod differential;
pub mod expressions;
pub mod lists;
pub mod machine;
pub mod packets;
pub mod pcap;
pub mod written;
