//! What the library operating system knows of each page of its program, in structures over memory
//! that somebody else gave: a sorted vector (*Exokernel*, section 6.2) and a hash table by address
//! (section 7.2).
//!
//! | module | what |
//! |---|---|
//! | [`entry`] | what is known of one page |
//! | [`linear`] | a sorted vector, by binary search |
//! | [`inverted`] | a hash table with open addressing |
#![no_std]
#![forbid(unsafe_code)]

pub mod entry;
pub mod inverted;
pub mod linear;

#[cfg(test)]
mod tests;

/// A structure is full: it is given more memory first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Words of one place in a table: a page's address divided by its size, and its entry.
pub const PLACE: usize = 2;
/// Words before the places.
pub const HEAD: usize = 2;
