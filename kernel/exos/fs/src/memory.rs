//! A disk in memory, and a clock that ticks whenever it is asked: for tests, and for a file system
//! that nobody keeps.

use alloc::vec;
use alloc::vec::Vec;

use crate::disk::{Block, Disk, DiskError};
use crate::owner::Owner;

/// A disk in memory.
#[derive(Clone, Debug)]
pub struct MemoryDisk {
    /// Its blocks.
    pub blocks: Vec<Block>,
}

impl MemoryDisk {
    /// So many blocks of zeros.
    pub fn new(blocks: usize) -> MemoryDisk {
        MemoryDisk {
            blocks: vec![Block::ZERO; blocks],
        }
    }
}

fn place(block: u64) -> usize {
    usize::try_from(block).unwrap_or(usize::MAX)
}

impl Disk for MemoryDisk {
    fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    fn read(&mut self, blocks: &mut [(u64, &mut Block)]) -> Result<(), DiskError> {
        for (block, to) in blocks {
            let from = self.blocks.get(place(*block)).ok_or(DiskError::Beyond)?;
            to.0.copy_from_slice(&from.0);
        }
        Ok(())
    }

    fn write(&mut self, blocks: &[(u64, &Block)]) -> Result<(), DiskError> {
        for (block, from) in blocks {
            let to = self
                .blocks
                .get_mut(place(*block))
                .ok_or(DiskError::Beyond)?;
            to.0.copy_from_slice(&from.0);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}

/// A clock that ticks whenever it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticks(u64);

impl Ticks {
    /// It begins at zero.
    pub const fn new() -> Ticks {
        Ticks(0)
    }

    /// It begins behind a time: nanoseconds since 1970.
    pub const fn behind(time: u64) -> Ticks {
        Ticks(time)
    }
}

impl Owner for Ticks {
    fn now(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}
