//! Bytes of files: read, written, cut, shown.
//!
//! Invariant: behind a file's end, its last block has zeros in the cache, whatever the disk has
//! there.

use alloc::vec::Vec;

use postern_exos_abi::errno;
use postern_exos_abi::file::Kind;

use crate::cache::{ORDERED, key};
use crate::disk::{BLOCK, Block, Disk};
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::MOST;
use crate::owner::Owner;
use crate::policy::Policy;
use crate::room::Use;

/// Blocks that are read in one request when somebody reads on.
const AHEAD: usize = 32;

/// Which of a file's blocks an offset is in, and where.
const fn split(offset: u64) -> (u64, usize) {
    (offset / BLOCK as u64, (offset % BLOCK as u64) as usize)
}

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// Where a file's node is.
    fn file_slot(&mut self, number: u64) -> Result<usize, Error> {
        let slot = self.slot(number)?;
        match self.nodes.slots[slot].kind {
            Kind::File => Ok(slot),
            Kind::Folder => Err(errno::ISDIR.into()),
            Kind::Link => Err(errno::INVAL.into()),
        }
    }

    /// Zeros what stands behind the end of a file in the frame of its last block.
    fn clean_end(&mut self, frame: usize, size: u64, index: u64) {
        let left = size.saturating_sub(index * BLOCK as u64);
        if left < BLOCK as u64
            && let Some(rest) = self.cache.bytes[frame].0.get_mut(left as usize..)
        {
            rest.fill(0);
        }
    }

    /// The frame of a block of a file that is on the disk, and of some behind it if it is read in
    /// order.
    fn load_block(&mut self, slot: usize, index: u64, block: u32) -> Result<usize, Error> {
        let node = self.nodes.slots[slot];
        let mut wanted = [(0u64, 0u32, 0usize); AHEAD];
        wanted[0] = (index, block, 0);
        let mut count = 1;
        let is_in_order = index == 0 || u64::from(node.read_last).wrapping_add(1) == index;
        if is_in_order {
            let end = node.size.div_ceil(BLOCK as u64);
            // The cache has to have room for others, too.
            let most = AHEAD.min(self.cache.frames.len() / 8);
            while count < most && index + (count as u64) < end {
                let next = index + count as u64;
                if self.cache.peek(key(node.index, next as u32)).is_some() {
                    break;
                }
                // What cannot be read ahead is found out when it is read.
                let Ok(block) = self.find_block(slot, next) else {
                    break;
                };
                if block == 0 {
                    break;
                }
                wanted[count] = (next, block, 0);
                count += 1;
            }
        }
        let mut got = 0;
        while got < count {
            // Pinned, so that none of them is taken for another.
            let (index, block, _) = wanted[got];
            let frame = match self.take_frame() {
                Ok(frame) => frame,
                Err(_) if got > 0 => break,
                Err(error) => return Err(error),
            };
            self.fill_frame(frame, key(node.index, index as u32), block);
            self.cache.frames[frame].is_pinned = true;
            wanted[got].2 = frame;
            got += 1;
        }
        let some = wanted.get(..got).unwrap_or_default();
        let result = self.read_frames(some);
        for (index, _, frame) in some {
            self.cache.frames[*frame].is_pinned = false;
            if result.is_err() {
                self.cache.clear(*frame);
            } else {
                self.clean_end(*frame, node.size, *index);
            }
        }
        result?;
        Ok(wanted[0].2)
    }

    /// Reads blocks into frames, in one request.
    fn read_frames(&mut self, wanted: &[(u64, u32, usize)]) -> Result<(), Error> {
        if let [(_, block, frame)] = wanted {
            let request = (u64::from(*block), &mut self.cache.bytes[*frame]);
            return Ok(self.disk.read(&mut [request])?);
        }
        let mut by_frame: Vec<(usize, u32)> = wanted
            .iter()
            .map(|(_, block, frame)| (*frame, *block))
            .collect();
        by_frame.sort_unstable();
        let mut requests: Vec<(u64, &mut Block)> = Vec::with_capacity(by_frame.len());
        let mut rest = &mut *self.cache.bytes;
        let mut passed = 0;
        for (frame, block) in by_frame {
            let (_, from) = rest.split_at_mut(frame - passed);
            let Some((bytes, behind)) = from.split_first_mut() else {
                break;
            };
            requests.push((u64::from(block), bytes));
            rest = behind;
            passed = frame + 1;
        }
        requests.sort_unstable_by_key(|(block, _)| *block);
        Ok(self.disk.read(&mut requests)?)
    }

    /// The frame of a block of a file; nothing for a hole.
    #[inline]
    fn file_block(&mut self, slot: usize, index: u64) -> Result<Option<usize>, Error> {
        let key = key(self.nodes.slots[slot].index, index as u32);
        if let Some(frame) = self.cache.find(key) {
            return Ok(Some(frame));
        }
        let block = self.find_block(slot, index)?;
        if block == 0 {
            return Ok(None);
        }
        self.load_block(slot, index, block).map(Some)
    }

    /// Reads bytes.
    pub(crate) fn read_bytes(
        &mut self,
        number: u64,
        offset: u64,
        to: &mut [u8],
    ) -> Result<usize, Error> {
        let slot = self.file_slot(number)?;
        let size = self.nodes.slots[slot].size;
        let length = size.saturating_sub(offset).min(to.len() as u64) as usize;
        let to = to.get_mut(..length).unwrap_or_default();
        let mut done = 0;
        while done < length {
            let (index, at) = split(offset + done as u64);
            let some = (BLOCK - at).min(length - done);
            let Some(part) = to.get_mut(done..done + some) else {
                break;
            };
            match self.file_block(slot, index) {
                Ok(Some(frame)) => {
                    if let Some(from) = self.cache.bytes[frame].0.get(at..at + some) {
                        part.copy_from_slice(from);
                    }
                }
                Ok(None) => part.fill(0),
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
            self.nodes.slots[slot].read_last = index as u32;
            done += some;
        }
        Ok(done)
    }

    /// Writes bytes; fewer only where an error comes behind the first block.
    pub(crate) fn write_bytes(
        &mut self,
        number: u64,
        offset: u64,
        from: &[u8],
    ) -> Result<usize, Error> {
        let slot = self.file_slot(number)?;
        if from.is_empty() {
            return Ok(0);
        }
        let most = (MOST * BLOCK as u64).saturating_sub(offset);
        if most == 0 {
            return Err(errno::FBIG.into());
        }
        let now = self.owner.now();
        let length = (from.len() as u64).min(most) as usize;
        if offset > self.nodes.slots[slot].size {
            self.act(|files| {
                let slot = files.slot(number)?;
                files.order_end(slot)
            })?;
        }
        let mut done = 0;
        while done < length {
            let (index, at) = split(offset + done as u64);
            let some = (BLOCK - at).min(length - done);
            let part = from.get(done..done + some).unwrap_or_default();
            match self.act(|files| files.write_block(number, index, at, part, now)) {
                Ok(()) => done += some,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
            // Half of the cache is for what others read.
            if self.cache.dirty_count > self.cache.frames.len() / 2 {
                let all = self.cache.dirty(|_| true);
                self.write_back(all)?;
            }
        }
        Ok(done)
    }

    /// The file will grow: the zeros behind its end must be on the disk before the new size is.
    fn order_end(&mut self, slot: usize) -> Result<(), Error> {
        let (index, at) = split(self.nodes.slots[slot].size);
        if at == 0 {
            return Ok(());
        }
        if let Some(frame) = self.file_block(slot, index)?
            && self.cache.frames[frame].at != 0
        {
            self.cache.set_dirty(frame, true);
            self.cache.frames[frame].flags |= ORDERED;
        }
        Ok(())
    }

    /// Writes bytes of one block.
    fn write_block(
        &mut self,
        number: u64,
        index: u64,
        at: usize,
        part: &[u8],
        now: u64,
    ) -> Result<(), Error> {
        let slot = self.slot(number)?;
        let node = self.nodes.slots[slot];
        let this = key(node.index, index as u32);
        let end = index * BLOCK as u64 + (at + part.len()) as u64;
        let mut is_ordered = end > node.size;
        // Its size may say less than the disk has, but what is behind it are no bytes of the file.
        let is_whole = part.len() == BLOCK || at == 0 && end >= node.size;
        // First what can fail: the block, and the node.
        let mut frame = self.cache.find(this);
        if frame.is_none_or(|frame| self.cache.frames[frame].at == 0) {
            let mut block = self.find_block(slot, index)?;
            let is_new = block == 0;
            if is_new {
                block = self.make_block(slot, index)?;
                is_ordered = true;
            }
            // Blocks on the way may have taken the frame.
            frame = match self.cache.peek(this) {
                Some(frame) => {
                    // Zeros of a hole, until now: they go if this fails.
                    self.cache.set_at(frame, block);
                    self.transaction.filled.push(this);
                    Some(frame)
                }
                None if is_new || is_whole => {
                    let frame = self.take_frame()?;
                    self.fill_frame(frame, this, block);
                    self.cache.bytes[frame].0.fill(0);
                    self.transaction.filled.push(this);
                    Some(frame)
                }
                None => Some(self.load_block(slot, index, block)?),
            };
        }
        let frame = frame.unwrap_or_default();
        // The node's block may need a frame, and not this one.
        self.cache.frames[frame].is_pinned = true;
        let node = &mut self.nodes.slots[slot];
        node.size = node.size.max(end);
        node.modified = now;
        node.changed = now;
        node.version = node.version.wrapping_add(1);
        let stored = self.store(slot);
        self.cache.frames[frame].is_pinned = false;
        stored?;
        // Nothing fails from here on.
        let frame = self.move_from_loan(frame);
        if let Some(to) = self.cache.bytes[frame].0.get_mut(at..at + part.len()) {
            to.copy_from_slice(part);
        }
        self.cache.set_dirty(frame, true);
        if is_ordered {
            self.cache.frames[frame].flags |= ORDERED;
        }
        Ok(())
    }

    /// Cuts a file, or lengthens it by zeros.
    pub(crate) fn set_size(&mut self, number: u64, length: u64) -> Result<(), Error> {
        self.file_slot(number)?;
        if length > MOST * BLOCK as u64 {
            return Err(errno::FBIG.into());
        }
        let now = self.owner.now();
        if !self.act(|files| files.set_size_once(number, length, now))? {
            self.finish(number as u32)?;
        }
        Ok(())
    }

    /// Says whether that is all: a long file is cut in several steps.
    fn set_size_once(&mut self, number: u64, length: u64, now: u64) -> Result<bool, Error> {
        let slot = self.slot(number)?;
        let former = self.nodes.slots[slot].size;
        if length > former {
            self.order_end(slot)?;
        }
        let node = &mut self.nodes.slots[slot];
        let index = node.index;
        node.size = length;
        node.modified = now;
        node.changed = now;
        node.version = node.version.wrapping_add(1);
        let mut is_done = true;
        if length < former {
            is_done = self.trim(slot, length.div_ceil(BLOCK as u64))?;
        } else {
            self.store(slot)?;
        }
        if !is_done {
            self.set_use(index, Use::Orphan)?;
        }
        // Nothing fails from here on.
        let (last, _) = split(length);
        if let Some(frame) = self
            .cache
            .peek(key(index, last as u32))
            .filter(|_| length < former)
        {
            let frame = self.move_from_loan(frame);
            self.clean_end(frame, length, last);
        }
        Ok(is_done)
    }

    /// The page that has a file's block.
    pub(crate) fn show_block(&mut self, number: u64, index: u64) -> Result<(u32, u64), Error> {
        let slot = self.file_slot(number)?;
        let node = self.nodes.slots[slot];
        if index >= node.size.div_ceil(BLOCK as u64) {
            return Err(errno::INVAL.into());
        }
        let this = key(node.index, index as u32);
        if let Some(frame) = self.cache.find(this)
            && let Some(loan) = self.cache.frames[frame].loan
        {
            return Ok(loan);
        }
        let frame = match self.file_block(slot, index)? {
            Some(frame) => frame,
            None => {
                // A hole has zeros of its own, until somebody writes there.
                let frame = self.take_frame()?;
                self.fill_frame(frame, this, 0);
                self.cache.bytes[frame].0.fill(0);
                frame
            }
        };
        self.nodes.slots[slot].read_last = index as u32;
        let loan = self.owner.lend(&self.cache.bytes[frame])?;
        self.cache.frames[frame].loan = Some(loan);
        Ok(loan)
    }
}
