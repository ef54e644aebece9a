//! Aegis.
#![no_std]
