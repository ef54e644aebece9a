//! The interface of Aegis: what an environment calls, what it is told, and what it can read.
//!
//! Aegis multiplexes a machine and manages nothing (*Exokernel: an operating system architecture
//! for application-level resource management*, sections 3 and 5). So this interface has names of
//! physical things: page numbers, positions in a processor's vector of time slices, vectors of
//! exceptions. The kernel and every environment are built with it.
//!
//! | file | what |
//! |---|---|
//! | [`call`] | the calls: numbers, arguments, rights, errors, as one table |
//! | [`error`] | why a call was not done |
//! | [`address`] | how an address space is divided |
//! | [`mapping`] | a page with what may be done to it, as calls take it |
//! | [`context`] | an environment's own page of contexts: where the kernel delivers events |
//! | [`records`] | the kernel's bookkeeping, which everybody can read |
//! | [`device`] | what devices are asked, and how they answer: requests, pieces, rings |
//! | [`status`] | how the machine says that it has ended |
#![no_std]
#![forbid(unsafe_code)]

pub mod address;
pub mod call;
pub mod context;
pub mod device;
pub mod error;
pub mod handler;
pub mod mapping;
pub mod records;
pub mod status;

pub use call::Call;
pub use context::Context;
pub use error::Error;
pub use mapping::Mapping;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Environments at a time, number 0 (nobody) among them. A number is a byte.
pub const ENVIRONMENTS: usize = 256;

/// The environment that the kernel makes at boot. It has all quotas, and may stop the machine.
pub const ROOT: u16 = 1;

/// Processors at most.
pub const PROCESSORS: usize = 8;

/// Positions in a processor's vector of time slices.
pub const SLICES: usize = 64;

/// Holdings at a time, number 0 (nothing) among them.
pub const HOLDINGS: usize = 128;

/// Bytes of a filter's text at most.
pub const FILTER: usize = 512;

/// Slices that an environment may exceed, one after the other, before it is destroyed. Each is paid
/// for when it happens; so many that a host which runs the machine by fits and starts, with ticks
/// in the pauses, does not make anybody look unwilling.
pub const EXCESS: u32 = 64;
