//! What is known of free space: how much there is, and what waits for a commit.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Blocks that can wait for a commit.
pub const PENDING: usize = 1 << 16;

/// What a node's place in the map of nodes says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Use {
    /// Nobody has it.
    Free = 0,
    /// It is a file.
    Taken = 1,
    /// It has blocks behind its end, or no names: whoever mounts the disk frees what nobody has.
    Orphan = 3,
}

/// How much is free.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Blocks, with those that wait for a commit.
    pub blocks: u64,
    /// Nodes.
    pub nodes: u64,
}

/// What is known of free space.
#[derive(Debug, Default)]
pub struct Room {
    pub counts: Counts,
    /// Freed by the transaction that is under way: a power cut would bring their owners back.
    pub pending: BTreeSet<u32>,
    /// Where the next block for a new file is looked for.
    pub cursor: u64,
    /// The lowest index that may be free.
    pub node_cursor: u64,
    /// Orphans that were found at mount.
    pub orphans: Vec<u32>,
}

impl Room {
    /// Whether a commit makes more of them free.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The operation that freed a block has failed.
    pub fn unfree(&mut self, block: u32) {
        self.pending.remove(&block);
    }

    /// The transaction is on the disk.
    pub fn committed(&mut self) {
        self.pending.clear();
    }
}
