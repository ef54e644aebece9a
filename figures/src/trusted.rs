//! What the baselines do that Rust cannot check: bare instructions, system calls, signals, native
//! code.
//!
//! All `unsafe` of the figures is in here. Each function leaves the process as it found it:
//! descriptors closed, mappings gone, handlers and the gs base restored.

#![allow(unsafe_code)]

pub mod cycle;
pub mod dispatch;
pub mod library;
pub mod memory;
pub mod notice;
pub mod pages;
pub mod process;
pub mod signal;
pub mod tracing;
