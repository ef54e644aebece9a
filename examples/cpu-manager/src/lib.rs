//! Holds processes to their shares of a processor against a disturbance: a controller in C, in a
//! domain that is common to all of them, called by a process, by a thread, or as a handler that
//! interrupts whichever process is current.
//!
//! | module | what |
//! |---|---|
//! | [`share`], [`disturbance`] | targets; when the disturbance is active |
//! | [`groups`], [`controls`] | control groups; what the controller's services do |
//! | [`extension`], [`manager`] | `manager.c`, built; its domain, and its state |
//! | [`setup`], [`roles`] | what processes of an experiment are told, and do |
//! | [`report`], [`plot`] | shares over time, and their errors; drawn |
//! | [`experiment`] | processes started, sampled and ended |
//! | `trusted` | all that needs `unsafe`: system calls that the standard library has not |

pub mod controls;
pub mod disturbance;
pub mod error;
pub mod experiment;
pub mod extension;
pub mod groups;
pub mod manager;
pub mod plot;
pub mod report;
pub mod roles;
pub mod setup;
pub mod share;
mod trusted;

pub use error::Error;
