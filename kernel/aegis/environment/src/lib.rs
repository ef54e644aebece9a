//! What environments of Aegis link.
#![no_std]
