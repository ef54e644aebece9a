//! Memory for what allocates in Rust: it is C's heap, so that a process has one.
//!
//! What interrupts the process (exceptions, ends of slices, requests, events) must not allocate:
//! the heap may be in use.

mod trusted;
