//! Bytes that were read, in blocks as large as what is read at once. What they are of is the
//! [table's](crate::table) to know; here they are only few.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Bytes at most.
const MOST: usize = 1 << 20;

/// Blocks at most, however small.
const BLOCKS: usize = 256;

/// Blocks by their file's number and their own.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    blocks: BTreeMap<(u64, u64), (u64, Vec<u8>)>,
    clock: u64,
    bytes: usize,
}

impl Blocks {
    /// A block, if it is here; shorter only at the end of a file.
    pub fn get(&mut self, file: u64, index: u64) -> Option<&[u8]> {
        self.clock += 1;
        let (used, bytes) = self.blocks.get_mut(&(file, index))?;
        *used = self.clock;
        Some(bytes)
    }

    /// A block has been read.
    pub fn put(&mut self, file: u64, index: u64, bytes: Vec<u8>) {
        self.remove(file, index);
        while self.blocks.len() >= BLOCKS || self.bytes + bytes.len() > MOST {
            let oldest = self.blocks.iter().min_by_key(|(_, (used, _))| *used);
            let Some((&(file, index), _)) = oldest else {
                break;
            };
            self.remove(file, index);
        }
        self.clock += 1;
        self.bytes += bytes.len();
        self.blocks.insert((file, index), (self.clock, bytes));
    }

    /// A block is not as it was.
    pub fn remove(&mut self, file: u64, index: u64) {
        if let Some((_, bytes)) = self.blocks.remove(&(file, index)) {
            self.bytes -= bytes.len();
        }
    }

    /// Nothing of a file is as it was from a block on.
    pub fn forget(&mut self, file: u64, from: u64) {
        let range = self.blocks.range((file, from)..=(file, u64::MAX));
        let indices: Vec<u64> = range.map(|(&(_, index), _)| index).collect();
        for index in indices {
            self.remove(file, index);
        }
    }
}
