//! What the file system asks of a disk.

/// Bytes of a block.
pub const BLOCK: usize = 4096;

/// A block's bytes, at an address that a page could have: on Aegis each is one.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
pub struct Block(pub [u8; BLOCK]);

impl Block {
    /// Zeros.
    pub const ZERO: Block = Block([0; BLOCK]);
}

impl core::fmt::Debug for Block {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("Block")
    }
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// There is no such block.
    Beyond,
    /// The device says so, or does not answer.
    Device,
}

/// Blocks that are read and written.
///
/// What the file system relies on: of a block that was being written when the power went, each
/// sector of 512 bytes is the former or the new one. Writes between two flushes may reach the disk
/// in any order, or not at all, except that of one block a later one is never replaced by an
/// earlier one.
pub trait Disk {
    /// How many there are.
    fn blocks(&self) -> u64;

    /// Reads blocks. The requests may be under way side by side; all are done when this returns.
    fn read(&mut self, blocks: &mut [(u64, &mut Block)]) -> Result<(), DiskError>;

    /// Writes blocks, none of them twice, in rising order as far as the file system can. The
    /// requests may be under way side by side; all are done, not for good, when this returns.
    fn write(&mut self, blocks: &[(u64, &Block)]) -> Result<(), DiskError>;

    /// When this returns, what was written before is there for good.
    fn flush(&mut self) -> Result<(), DiskError>;
}

impl<D: Disk + ?Sized> Disk for &mut D {
    fn blocks(&self) -> u64 {
        (**self).blocks()
    }

    fn read(&mut self, blocks: &mut [(u64, &mut Block)]) -> Result<(), DiskError> {
        (**self).read(blocks)
    }

    fn write(&mut self, blocks: &[(u64, &Block)]) -> Result<(), DiskError> {
        (**self).write(blocks)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        (**self).flush()
    }
}
