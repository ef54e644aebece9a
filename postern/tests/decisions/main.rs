//! Calls that are decided about before they are made, by closures and by policy modules, and grants
//! that are taken back.

mod closures;
mod guest;
mod modules;
mod revocation;
#[path = "../support/mod.rs"]
mod support;
