//! Changes of a disk that are not kept.

use std::collections::BTreeMap;

use postern_exos_fs::{Block, Disk, DiskError};

/// A disk, and what is newer than it.
#[derive(Debug)]
pub struct Overlay<D> {
    below: D,
    changed: BTreeMap<u64, Box<Block>>,
}

impl<D: Disk> Overlay<D> {
    /// Nothing is newer.
    pub fn new(below: D) -> Overlay<D> {
        Overlay {
            below,
            changed: BTreeMap::new(),
        }
    }

    /// A block, to be changed.
    pub fn block(&mut self, block: u64) -> Result<&mut Block, DiskError> {
        if !self.changed.contains_key(&block) {
            let mut bytes = Box::new(Block::ZERO);
            self.below.read(&mut [(block, &mut bytes)])?;
            self.changed.insert(block, bytes);
        }
        let place = self.changed.get_mut(&block);
        place.map(|bytes| &mut **bytes).ok_or(DiskError::Beyond)
    }
}

impl<D: Disk> Disk for Overlay<D> {
    fn blocks(&self) -> u64 {
        self.below.blocks()
    }

    fn read(&mut self, blocks: &mut [(u64, &mut Block)]) -> Result<(), DiskError> {
        for (block, to) in blocks {
            match self.changed.get(block) {
                Some(bytes) => to.0.copy_from_slice(&bytes.0),
                None => self.below.read(&mut [(*block, &mut **to)])?,
            }
        }
        Ok(())
    }

    fn write(&mut self, blocks: &[(u64, &Block)]) -> Result<(), DiskError> {
        for (block, from) in blocks {
            if *block >= self.below.blocks() {
                return Err(DiskError::Beyond);
            }
            self.changed.insert(*block, Box::new(**from));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}
