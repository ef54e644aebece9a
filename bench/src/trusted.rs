//! What baselines do that Rust cannot check, beside [`postern_figures::trusted`]: processes that
//! supervise others.
//!
//! All `unsafe` of this crate is in here.

#![allow(unsafe_code)]

pub mod supervise;
