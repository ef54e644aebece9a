//! Whose slice is next (*Exokernel*, section 7.3), decided over clients that somebody else keeps:
//! what a process needs that schedules others with slices of its own.
//!
//! | module | what |
//! |---|---|
//! | [`client`] | who is scheduled, and what is known of them |
//! | [`round_robin`] | one after the other |
//! | [`stride`] | shares of the processor, deterministic |
//! | [`deadline`] | slices in each period: earliest deadline first |
//!
//! Each has `choose`, who is next among those that are able to run, and `charge`, which counts the
//! slices that the chosen one had. Whatever clients say of themselves, neither panics, and each
//! that is able to run runs after a bounded number of slices.
#![no_std]
#![forbid(unsafe_code)]

pub mod client;
pub mod deadline;
pub mod round_robin;
pub mod stride;

#[cfg(test)]
mod tests;

pub use client::Client;
