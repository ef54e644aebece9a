//! Transactions. Operations change blocks of the file system's own in the cache; several operations
//! together are brought to the disk by a commit.
//!
//! Invariants:
//! - An operation that fails has changed nothing: what it wrote over is remembered, and put back.
//! - Before a commit's record is written, all blocks of files that are new in it are on the disk.
//! - A block that an operation freed is not given to anybody before the commit is on the disk.
//! - A block of the file system's own is written to its place only after a commit, and the log is
//!   written from its beginning only when all that it had is in its place.

use alloc::vec;
use alloc::vec::Vec;

use crate::cache::{CHANGED, LOGGED, ORDERED, key};
use crate::disk::{Block, Disk};
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::{LOG, Super, set};
use crate::log::{self, IMAGES, REVOKED};
use crate::owner::Owner;
use crate::policy::Policy;
use crate::space::Counts;

/// What is known of the transaction that is under way, and of the operation in it.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// Blocks that have [`CHANGED`].
    changed: Vec<u32>,
    /// Blocks that the log has something for, which were freed.
    revoked: Vec<u32>,
    /// Blocks that it may have.
    limit: usize,
    /// When it was begun.
    pub since: Option<u64>,
    /// The generation of the superblock on the disk.
    generation: u64,
    /// The next transaction's number.
    sequence: u64,
    /// Where in the log it goes.
    at: u64,
    /// The log begins anew, which the superblock does not say yet.
    is_super_due: bool,
    /// Something was written since the last flush that must be there before the next record.
    pub is_order_due: bool,
    /// Something was written since the last flush.
    pub is_unflushed: bool,
    /// The disk failed.
    pub is_broken: bool,

    /// Of the operation: what it wrote over.
    undo: Vec<Undo>,
    before: Vec<u8>,
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
    changed_before: usize,
    revoked_before: usize,
    counts_before: Counts,
}

#[derive(Debug)]
struct Undo {
    block: u32,
    offset: u16,
    length: u16,
}

impl Transaction {
    pub fn new(superblock: &Super, frames: usize) -> Transaction {
        let limit = (frames / 4).min(IMAGES).min(superblock.geometry.log as usize - 1);
        Transaction {
            changed: Vec::with_capacity(limit),
            revoked: Vec::new(),
            limit,
            since: None,
            generation: superblock.generation,
            // Numbers that no record has, not even one that was written to half before the last mount.
            sequence: (superblock.generation.wrapping_add(1)) << 24,
            at: 0,
            is_super_due: true,
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

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// Does an operation whole or not at all. If there is no room for it now, but would be behind a
    /// commit, it is done behind one.
    pub(crate) fn act<T>(
        &mut self,
        mut operation: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.transaction.is_broken {
            return Err(Error::Broken);
        }
        if self.transaction.is_long() {
            self.commit()?;
        }
        let mut is_again = false;
        loop {
            self.begin();
            match operation(self) {
                Ok(value) => {
                    self.end();
                    return Ok(value);
                }
                Err(error) => {
                    self.undo();
                    let may_help = match error {
                        Error::NoSpace => self.room.has_pending(),
                        Error::Full => true,
                        _ => false,
                    };
                    if is_again || !may_help || self.transaction.is_broken {
                        return Err(error);
                    }
                    is_again = true;
                    self.commit()?;
                    if error == Error::Full {
                        self.checkpoint()?;
                    }
                }
            }
        }
    }

    fn begin(&mut self) {
        let transaction = &mut self.transaction;
        transaction.undo.clear();
        transaction.before.clear();
        transaction.born.clear();
        transaction.filled.clear();
        transaction.dying.clear();
        transaction.dropped.clear();
        transaction.freed.clear();
        transaction.touched.clear();
        transaction.changed_before = transaction.changed.len();
        transaction.revoked_before = transaction.revoked.len();
        transaction.counts_before = self.room.counts;
    }

    fn end(&mut self) {
        while let Some(block) = self.transaction.dying.pop() {
            let Some(frame) = self.cache.peek(key(0, block)) else {
                continue;
            };
            let flags = self.cache.frames[frame].flags;
            if flags & CHANGED != 0 {
                self.transaction.changed.retain(|changed| *changed != block);
            }
            self.cache.clear(frame);
        }
        while let Some(key) = self.transaction.dropped.pop() {
            if let Some(frame) = self.cache.peek(key) {
                self.cache.clear(frame);
            }
        }
        if self.transaction.since.is_none() && !self.transaction.undo.is_empty() {
            self.transaction.since = Some(self.owner.now());
        }
    }

    fn undo(&mut self) {
        while let Some(undo) = self.transaction.undo.pop() {
            let length = usize::from(undo.length);
            let from = self.transaction.before.len().saturating_sub(length);
            if let Some(frame) = self.cache.peek(key(0, undo.block)) {
                let before = &self.transaction.before[from..];
                set(&mut self.cache.bytes[frame].0, usize::from(undo.offset), before);
            }
            self.transaction.before.truncate(from);
        }
        while let Some(block) = self.transaction.born.pop() {
            if let Some(frame) = self.cache.peek(key(0, block)) {
                self.cache.clear(frame);
            }
        }
        let before = self.transaction.changed_before.min(self.transaction.changed.len());
        for block in self.transaction.changed.drain(before..) {
            if let Some(frame) = self.cache.peek(key(0, block)) {
                self.cache.frames[frame].flags &= !CHANGED;
            }
        }
        while let Some(key) = self.transaction.filled.pop() {
            if let Some(frame) = self.cache.peek(key) {
                self.cache.clear(frame);
            }
        }
        while let Some(block) = self.transaction.freed.pop() {
            self.room.unfree(block);
        }
        self.transaction.revoked.truncate(self.transaction.revoked_before);
        while let Some(index) = self.transaction.touched.pop() {
            self.nodes.forget(index);
        }
        self.room.counts = self.transaction.counts_before;
    }

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

    /// A block of the file system's own has no owner any more; where the log has something for it, a
    /// mount must not bring that back.
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

    /// Brings the transaction to the disk for good: what was done before is whole there, whenever the
    /// power goes from now on.
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
                images.push((place, self.geometry.seal(&mut self.cache.bytes[frame], place)));
            }
        }
        let sequence = self.transaction.sequence;
        let record = log::record(&self.geometry, home, sequence, &images, &self.transaction.revoked);
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
        self.room.committed();
        // The next one must have room, in the log and in the cache.
        let is_log_full = transaction.at + 1 + transaction.limit as u64 > self.geometry.log;
        if is_log_full || self.cache.logged_count > self.cache.frames.len() / 2 - transaction.limit {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Everything is in its place, and the log says nothing.
    pub(crate) fn close(&mut self) -> Result<(), Error> {
        self.synchronise_all()?;
        if !self.transaction.is_super_due {
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
                .map(|frame| (u64::from(self.cache.frames[*frame].at), &self.cache.bytes[*frame]))
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
        transaction.is_order_due = true;
        transaction.is_unflushed = true;
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.disk.flush().inspect_err(|_| self.transaction.is_broken = true)?;
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
