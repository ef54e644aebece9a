//! The web server: a process that has a port by a filter of its own, and sends files from the pages in
//! which they are, with sums that are computed once. What is decided is in the crate `web`
//! (`postern-exos-web`); here is what it stands on.
//!
//! | module | what |
//! |---|---|
//! | [`wire`] | frames of headers and pages that are others' |
//! | [`memory`] | where what is sent stands: the archive, pages of the server's own |
//! | [`files`] | what a path stands for |
//! | [`calls`] | calls of others' code, and how they end |
//! | [`programs`], [`plugins`] | extension files behind paths; E-code that clients bring |
//! | [`answers`] | bytes that are made for one request |
//! | [`site`] | what answers |
//! | [`serve`] | the loop |

pub mod answers;
pub mod calls;
pub mod files;
pub mod memory;
pub mod plugins;
pub mod programs;
pub mod serve;
pub mod site;
mod trusted;
pub mod wire;
