//! The network: frames by filters, sockets over a stack of this process's own, names.
//!
//! Nothing of it is anywhere else: the kernel delivers frames to whom filters say, and the service
//! `net` says in a page who is where. A process that has sockets does TCP by itself, whenever it waits
//! for anything of the network, and at ends of its slices while it computes.
//!
//! | module | what |
//! |---|---|
//! | [`inlet`], [`outlet`] | frames that come, and go |
//! | [`answers`] | what answers in the kernel |
//! | [`place`] | where this machine is, as the service says |
//! | [`ground`] | ports, as filters |
//! | [`own`] | this process's stack |
//! | [`wait`] | waiting for it |
//! | [`sockets`] | sockets as C has them |
//! | [`names`] | addresses of names |
//! | [`service`] | the service itself |

pub mod answers;
pub mod ground;
pub mod inlet;
pub mod names;
pub mod outlet;
pub mod own;
pub mod place;
pub mod service;
pub mod sockets;
mod trusted;
pub mod wait;
