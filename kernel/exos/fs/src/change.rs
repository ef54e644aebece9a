//! How an operation changes blocks of the file system's own: what it writes over is remembered.

use crate::cache::{CHANGED, LOGGED, key};
use crate::disk::Disk;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::{Sort, begin};
use crate::log::REVOKED;
use crate::owner::Owner;
use crate::policy::Policy;
use crate::transaction::Undo;

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// A frame is part of the transaction.
    pub(crate) fn changed(&mut self, frame: usize) -> Result<(), Error> {
        let place = &mut self.cache.frames[frame];
        if place.flags & CHANGED == 0 {
            if self.transaction.changed.len() >= self.transaction.limit {
                return Err(Error::Full);
            }
            place.flags |= CHANGED;
            self.transaction.changed.push(place.at);
        }
        Ok(())
    }

    /// Writes into a block of the file system's own, which stands in a frame.
    pub(crate) fn put(&mut self, frame: usize, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        self.changed(frame)?;
        let block = self.cache.frames[frame].at;
        let place = self.cache.bytes[frame]
            .0
            .get_mut(offset..offset + bytes.len())
            .ok_or(Error::Corrupt(u64::from(block), "place in a block"))?;
        self.transaction.before.extend_from_slice(place);
        self.transaction.undo.push(Undo {
            block,
            offset: offset as u16,
            length: bytes.len() as u16,
        });
        place.copy_from_slice(bytes);
        Ok(())
    }

    /// A block of the file system's own has no owner any more; where the log has something for it,
    /// a mount must not bring that back.
    pub(crate) fn revoke(&mut self, block: u32) -> Result<(), Error> {
        self.transaction.dying.push(block);
        let frame = self.cache.peek(key(0, block));
        if frame.is_some_and(|frame| self.cache.frames[frame].flags & LOGGED != 0) {
            if self.transaction.revoked.len() >= REVOKED {
                return Err(Error::Full);
            }
            self.transaction.revoked.push(block);
        }
        Ok(())
    }

    /// The frame of a new block of the file system's own.
    pub(crate) fn new_own(
        &mut self,
        block: u32,
        sort: Sort,
        owner: u64,
        level: u32,
    ) -> Result<usize, Error> {
        let frame = match self.cache.peek(key(0, block)) {
            // Two have the block: the disk is wrong.
            Some(_) => return Err(Error::Corrupt(u64::from(block), sort.name())),
            None => self.take_frame()?,
        };
        self.fill_frame(frame, key(0, block), block);
        begin(
            &mut self.cache.bytes[frame],
            u64::from(block),
            sort,
            owner,
            level,
        );
        self.transaction.born.push(block);
        self.changed(frame)?;
        Ok(frame)
    }
}
