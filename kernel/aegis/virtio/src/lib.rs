//! Devices by the standard *Virtual I/O Device (VIRTIO) Version 1.2*, as far as Aegis needs them:
//! no line of unsafe code, and no processor. [`Registers`] is what a kernel has of a device and a
//! test models.
//!
//! | file | what |
//! |---|---|
//! | [`capabilities`] | where a device's registers are, as its PCI configuration says (section 4.1.4) |
//! | [`device`] | features, queues and vectors set up (sections 3.1 and 4.1.4.3) |
//! | [`queue`] | split virtqueues (section 2.7) |
//!
//! A device is believed in nothing that it can get wrong: what it says is compared with what it was
//! asked, which stands in memory that it does not reach. What makes no sense is counted and passed
//! by; after too much of it the queue is dead. Nothing here panics, and nothing waits for a device
//! without an end.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod capabilities;
pub mod device;
pub mod queue;
#[cfg(test)]
mod tests;

pub use capabilities::{Area, Capabilities, Place};
pub use device::{Refusal, Registers};
pub use queue::{Buffer, Done, Pages, Queue};
