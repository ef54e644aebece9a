//! Transactions. Operations change blocks of the file system's own in the cache; several operations
//! together are brought to the disk by a commit.
//!
//! Invariants:
//! - An operation that fails has changed nothing: what it wrote over is remembered, and put back.
//! - Before a commit's record is written, all blocks of files that are new in it are on the disk.
//! - A block that an operation freed is not given to anybody before the commit is on the disk.
//! - A block of the file system's own is written to its place only after a commit, and the log is
//!   written from its beginning only when all that it had is in its place.

use alloc::vec::Vec;

use crate::layout::Super;
use crate::log::{IMAGES, REVOKED};
use crate::room::Counts;

/// What is known of the transaction that is under way, and of the operation in it.
#[derive(Debug)]
pub struct Transaction {
    /// Blocks that have [`CHANGED`].
    pub changed: Vec<u32>,
    /// Blocks that the log has something for, which were freed.
    pub revoked: Vec<u32>,
    /// Blocks that it may have.
    pub limit: usize,
    /// When it was begun.
    pub since: Option<u64>,
    /// The generation of the superblock on the disk.
    pub generation: u64,
    /// The next transaction's number.
    pub sequence: u64,
    /// Where in the log it goes.
    pub at: u64,
    /// The log begins anew, which the superblock does not say yet.
    pub is_super_due: bool,
    /// The superblock on the disk has a log with records.
    pub has_records: bool,
    /// Something was written since the last flush that must be there before the next record.
    pub is_order_due: bool,
    /// Something was written since the last flush.
    pub is_unflushed: bool,
    /// The disk failed.
    pub is_broken: bool,

    /// Of the operation: what it wrote over.
    pub undo: Vec<Undo>,
    pub before: Vec<u8>,
    /// Blocks that it made.
    pub born: Vec<u32>,
    /// Keys of frames that it filled for files.
    pub filled: Vec<u64>,
    /// Blocks of the file system's own that it freed.
    pub dying: Vec<u32>,
    /// Keys of frames of files whose blocks it freed.
    pub dropped: Vec<u64>,
    /// Blocks that it freed.
    pub freed: Vec<u32>,
    /// Nodes that it changed.
    pub touched: Vec<u32>,
    pub changed_before: usize,
    pub revoked_before: usize,
    pub counts_before: Counts,
}

/// Bytes of a block that were written over; what they were stands in [`Transaction::before`].
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    pub block: u32,
    pub offset: u16,
    pub length: u16,
}

impl Transaction {
    pub fn new(superblock: &Super, frames: usize) -> Transaction {
        // Several in a log, if it is not of the least size: each time that it is full costs a
        // flush.
        let log = superblock.geometry.log as usize;
        let limit = (frames / 4).min(IMAGES).min((log / 4).max(31));
        Transaction {
            changed: Vec::with_capacity(limit),
            revoked: Vec::new(),
            limit,
            since: None,
            generation: superblock.generation,
            // Numbers that no record has, not even one that was written to half before the last
            // mount.
            sequence: (superblock.generation.wrapping_add(1)) << 24,
            at: 0,
            is_super_due: true,
            has_records: false,
            is_order_due: false,
            is_unflushed: false,
            is_broken: false,
            undo: Vec::with_capacity(64),
            before: Vec::with_capacity(8192),
            born: Vec::new(),
            filled: Vec::new(),
            dying: Vec::new(),
            dropped: Vec::new(),
            freed: Vec::new(),
            touched: Vec::new(),
            changed_before: 0,
            revoked_before: 0,
            counts_before: Counts::default(),
        }
    }

    /// Whether so much was changed that a long operation had better go on in the next one.
    pub fn is_long(&self) -> bool {
        self.changed.len() >= self.limit / 2 || self.revoked.len() >= REVOKED / 2
    }
}
