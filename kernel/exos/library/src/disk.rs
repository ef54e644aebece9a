//! The disk: blocks that this process owns or has the capabilities for, and files on them.
//!
//! | module | what |
//! |---|---|
//! | [`driver`] | requests: many at a time, in pages that the device reads and writes itself |
//! | [`own`] | this process's driver, for C |
//! | [`frames`] | pages for a cache, which others may read for a while |
//! | [`policy`] | which page is given up: a choice of the program's |
//! | [`serve`] | files on a range of blocks, served to all |

pub mod driver;
pub mod frames;
pub mod own;
pub mod policy;
pub mod serve;
pub(crate) mod trusted;
