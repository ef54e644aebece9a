//! Commits, and how the log is emptied.

use alloc::vec;
use alloc::vec::Vec;

use crate::cache::{CHANGED, ORDERED, key};
use crate::disk::{Block, Disk};
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::{LOG, Super};
use crate::log;
use crate::owner::Owner;
use crate::policy::Policy;

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// Brings the transaction to the disk for good: what was done before is whole there, whenever
    /// the power goes from now on.
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        if self.transaction.is_broken {
            return Err(Error::Broken);
        }
        let result = self.try_commit();
        // What the disk has is not known any more.
        self.transaction.is_broken |= result.is_err();
        result
    }

    fn try_commit(&mut self) -> Result<(), Error> {
        let ordered = self.cache.dirty(|frame| frame.flags & ORDERED != 0);
        self.write_back(ordered)?;
        let transaction = &self.transaction;
        if transaction.changed.is_empty() && transaction.revoked.is_empty() {
            self.transaction.since = None;
            return Ok(());
        }
        if transaction.is_super_due {
            self.write_super()?;
        }
        if self.transaction.is_order_due {
            self.flush()?;
        }
        let count = self.transaction.changed.len();
        let home = LOG + self.transaction.at;
        let mut frames = Vec::with_capacity(count);
        let mut images = Vec::with_capacity(count);
        for block in &self.transaction.changed {
            if let Some(frame) = self.cache.peek(key(0, *block)) {
                let place = u64::from(*block);
                frames.push(frame);
                images.push((
                    place,
                    self.geometry.seal(&mut self.cache.bytes[frame], place),
                ));
            }
        }
        let sequence = self.transaction.sequence;
        let record = log::record(
            &self.geometry,
            home,
            sequence,
            &images,
            &self.transaction.revoked,
        );
        let mut requests: Vec<(u64, &Block)> = vec![(home, &record)];
        for (index, frame) in frames.iter().enumerate() {
            requests.push((home + 1 + index as u64, &self.cache.bytes[*frame]));
        }
        self.disk.write(&requests)?;
        self.flush()?;
        for frame in frames {
            self.cache.frames[frame].flags &= !CHANGED;
            self.cache.set_logged(frame, true);
        }
        let transaction = &mut self.transaction;
        transaction.changed.clear();
        transaction.revoked.clear();
        transaction.since = None;
        transaction.sequence += 1;
        transaction.at += 1 + count as u64;
        transaction.has_records = true;
        self.room.committed();
        // The next one must have room, in the log and in the cache.
        let is_log_full = transaction.at + 1 + transaction.limit as u64 > self.geometry.log;
        if is_log_full || self.cache.logged_count > self.cache.frames.len() / 2 - transaction.limit
        {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Everything is in its place, and the log says nothing.
    pub(crate) fn close(&mut self) -> Result<(), Error> {
        self.synchronise_all()?;
        if self.transaction.has_records {
            self.checkpoint()?;
            self.write_super()?;
            self.flush()?;
        }
        Ok(())
    }

    /// Everything that is in the log is brought to its place; the log begins anew. Not while a
    /// transaction is under way.
    pub(crate) fn checkpoint(&mut self) -> Result<(), Error> {
        if !self.transaction.changed.is_empty() || self.transaction.is_super_due {
            return Ok(());
        }
        let mut frames = self.logged();
        frames.sort_unstable_by_key(|frame| self.cache.frames[*frame].at);
        let result = self.bring_home(&frames);
        self.transaction.is_broken |= result.is_err();
        result
    }

    fn bring_home(&mut self, frames: &[usize]) -> Result<(), Error> {
        for some in frames.chunks(64) {
            let requests: Vec<(u64, &Block)> = some
                .iter()
                .map(|frame| {
                    (
                        u64::from(self.cache.frames[*frame].at),
                        &self.cache.bytes[*frame],
                    )
                })
                .collect();
            self.disk.write(&requests)?;
        }
        self.flush()?;
        for frame in frames {
            self.cache.set_logged(*frame, false);
        }
        self.transaction.at = 0;
        self.transaction.is_super_due = true;
        Ok(())
    }

    /// Writes the superblock: what the log had before counts no longer, as soon as this is there.
    fn write_super(&mut self) -> Result<(), Error> {
        let transaction = &mut self.transaction;
        transaction.generation += 1;
        let superblock = Super {
            geometry: self.geometry,
            generation: transaction.generation,
            sequence: transaction.sequence,
        };
        let mut block = Block::ZERO;
        superblock.write(&mut block);
        self.disk.write(&[(superblock.home(), &block)])?;
        transaction.is_super_due = false;
        transaction.has_records = false;
        transaction.is_order_due = true;
        transaction.is_unflushed = true;
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.disk
            .flush()
            .inspect_err(|_| self.transaction.is_broken = true)?;
        self.transaction.is_order_due = false;
        self.transaction.is_unflushed = false;
        Ok(())
    }

    /// Everything is on the disk for good.
    pub(crate) fn synchronise_all(&mut self) -> Result<(), Error> {
        if self.transaction.is_broken {
            return Err(Error::Broken);
        }
        let all = self.cache.dirty(|_| true);
        self.write_back(all)?;
        self.commit()?;
        if self.transaction.is_unflushed {
            self.flush()?;
        }
        Ok(())
    }

    /// A file is on the disk for good, and every operation on names before.
    pub(crate) fn synchronise_one(&mut self, index: u32) -> Result<(), Error> {
        if self.transaction.is_broken {
            return Err(Error::Broken);
        }
        let its_own = self.cache.dirty(|frame| (frame.key >> 32) as u32 == index);
        self.write_back(its_own)?;
        self.commit()?;
        if self.transaction.is_unflushed {
            self.flush()?;
        }
        Ok(())
    }
}
