//! How the disk is divided: the first blocks are files', served under `/`; those behind are for
//! processes that ask for blocks of their own.

/// Bytes of a block.
pub const BLOCK: u64 = 4096;

/// Of so many blocks one is for who asks.
pub const PART: u64 = 8;

/// How many of a disk's blocks are files'.
pub const fn of_files(blocks: u64) -> u64 {
    blocks - blocks / PART
}
