//! A server whose thirty modules each live in a domain of their own: URL rewriting, access control,
//! authentication, logging and the rest, one C source each. The same sources can be loaded without
//! protection, to compare.

pub mod exchange;
pub mod memory;
pub mod modules;
mod native;
pub mod server;
pub mod site;

pub use server::{Server, Way};
