//! Programs for Aegis.
#![no_std]
