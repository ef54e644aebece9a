//! The only place for `unsafe`: starting processes that end with the server.

pub mod spawn;
