//! Frames for blocks: taken from what the policy gives up, filled from the disk.

use alloc::vec::Vec;

use crate::cache::{CHANGED, DIRTY, LOGGED, ORDERED, key};
use crate::disk::{Block, Disk};
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::{Sort, word32, word64};
use crate::owner::Owner;
use crate::policy::Policy;

/// Dirty blocks that are written together when a frame is needed.
const TOGETHER: usize = 64;

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// A frame with nothing in it, which nobody else has bound. It stays first in line until it is
    /// filled.
    pub(crate) fn take_frame(&mut self) -> Result<usize, Error> {
        if self.cache.empty.is_empty() {
            // A disk that failed takes nothing any more, so what it does not have stays.
            let is_broken = self.transaction.is_broken;
            let not = CHANGED | LOGGED | if is_broken { DIRTY } else { 0 };
            let frame = self.cache.choose(not).ok_or(Error::Full)?;
            if self.cache.frames[frame].flags & DIRTY != 0 {
                let mut some = self.cache.dirty(|_| true);
                if some.len() > TOGETHER {
                    // Among them the one that is needed, and its neighbours on the disk.
                    let at = self.cache.frames[frame].at;
                    some.sort_unstable_by_key(|frame| self.cache.frames[*frame].at);
                    let which = some
                        .iter()
                        .position(|one| self.cache.frames[*one].at == at)
                        .unwrap_or(0);
                    let first = which.min(some.len() - TOGETHER);
                    some.drain(..first);
                    some.truncate(TOGETHER);
                }
                self.write_back(some)?;
            }
            self.cache.clear(frame);
        }
        let frame = *self.cache.empty.front().ok_or(Error::Full)? as usize;
        self.take_back(frame);
        Ok(frame)
    }

    /// Nobody has a frame bound any more.
    fn take_back(&mut self, frame: usize) {
        if self.cache.frames[frame].loan.take().is_some() {
            self.owner.take_back(&self.cache.bytes[frame]);
        }
    }

    /// The frame that was taken has something now.
    pub(crate) fn fill_frame(&mut self, frame: usize, key: u64, at: u32) {
        if self.cache.empty.front() == Some(&(frame as u32)) {
            self.cache.empty.pop_front();
        } else {
            self.cache.empty.retain(|empty| *empty != frame as u32);
        }
        self.cache.fill(frame, key, at);
    }

    /// Writes frames of files to the disk.
    pub(crate) fn write_back(&mut self, mut frames: Vec<usize>) -> Result<(), Error> {
        if frames.is_empty() {
            return Ok(());
        }
        frames.sort_unstable_by_key(|frame| self.cache.frames[*frame].at);
        let requests: Vec<(u64, &Block)> = frames
            .iter()
            .map(|frame| {
                (
                    u64::from(self.cache.frames[*frame].at),
                    &self.cache.bytes[*frame],
                )
            })
            .collect();
        self.disk
            .write(&requests)
            .inspect_err(|_| self.transaction.is_broken = true)?;
        for frame in frames {
            self.transaction.is_unflushed = true;
            self.transaction.is_order_due |= self.cache.frames[frame].flags & ORDERED != 0;
            self.cache.set_dirty(frame, false);
        }
        Ok(())
    }

    /// The frame of a block of the file system's own, which is checked when it comes from the disk.
    pub(crate) fn own(
        &mut self,
        block: u64,
        sort: Sort,
        owner: u64,
        level: u32,
    ) -> Result<usize, Error> {
        let corrupt = Error::Corrupt(block, sort.name());
        let number = u32::try_from(block).map_err(|_| corrupt)?;
        if let Some(frame) = self.cache.find(key(0, number)) {
            // Whoever comes by another way finds what it looks for, or the disk is wrong.
            let bytes = &self.cache.bytes[frame].0;
            let is_it = word32(bytes, 0) == sort as u32
                && word32(bytes, 4) == level
                && word64(bytes, 8) == owner;
            return if is_it { Ok(frame) } else { Err(corrupt) };
        }
        let frame = self.take_frame()?;
        self.disk
            .read(&mut [(block, &mut self.cache.bytes[frame])])?;
        if !self
            .geometry
            .is(&self.cache.bytes[frame], block, sort, owner, level)
        {
            return Err(corrupt);
        }
        self.fill_frame(frame, key(0, number), number);
        Ok(frame)
    }

    /// Frames whose blocks are in the log and nowhere else.
    pub(crate) fn logged(&self) -> Vec<usize> {
        let frames = self.cache.frames.iter().enumerate();
        frames
            .filter(|(_, frame)| frame.flags & LOGGED != 0)
            .map(|(index, _)| index)
            .collect()
    }

    /// A copy of a frame's bytes in another one, which has its key then; whoever has the first one
    /// bound sees what it had.
    pub(crate) fn move_from_loan(&mut self, frame: usize) -> usize {
        if self.cache.frames[frame].loan.is_none() {
            return frame;
        }
        // The frame itself could be the one that is given up.
        self.cache.frames[frame].is_pinned = true;
        let to = self.take_frame();
        self.cache.frames[frame].is_pinned = false;
        let former = self.cache.frames[frame];
        let Ok(to) = to else {
            // No other is free: those who had it bound lose it.
            self.take_back(frame);
            return frame;
        };
        if let Ok([from, to]) = self.cache.bytes.get_disjoint_mut([frame, to]) {
            to.0.copy_from_slice(&from.0);
        }
        let is_dirty = former.flags & DIRTY != 0;
        self.cache.clear(frame);
        self.fill_frame(to, former.key, former.at);
        self.cache.set_dirty(to, is_dirty);
        self.cache.frames[to].flags |= former.flags & ORDERED;
        to
    }
}
