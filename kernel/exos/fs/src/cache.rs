//! The frames: what each has, and how it is found.
//!
//! Invariant: the index names a frame for a key exactly if the frame has that key.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::disk::Block;
use crate::index::Index;
use crate::policy::Policy;

/// The frame's bytes are newer than the disk's: a file's.
pub const DIRTY: u8 = 1;
/// They must be on the disk before the next transaction is: the block is new, or more of it counts.
pub const ORDERED: u8 = 2;
/// Changed by the transaction that is under way: the file system's own.
pub const CHANGED: u8 = 4;
/// In the log, and not at home yet.
pub const LOGGED: u8 = 8;

/// What a frame has: the node's index and which of its blocks; or 0 and the number of a block of
/// the file system's own. 0 is nothing.
pub const fn key(node: u32, index: u32) -> u64 {
    (node as u64) << 32 | index as u64
}

/// A frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame {
    pub key: u64,
    /// Where on the disk the bytes belong; 0: nowhere, they are zeros of a hole.
    pub at: u32,
    pub flags: u8,
    /// It is being filled.
    pub is_pinned: bool,
    /// The page and the capability with which it was lent.
    pub loan: Option<(u32, u64)>,
}

/// All of them.
#[derive(Debug)]
pub struct Cache<'f, P> {
    pub bytes: &'f mut [Block],
    pub frames: Vec<Frame>,
    index: Index,
    /// Without a key; those that were emptied first are used first, as others may have them bound.
    pub empty: VecDeque<u32>,
    pub policy: P,
    /// A bit for each frame that is [`DIRTY`].
    dirty: Vec<u64>,
    pub dirty_count: usize,
    pub logged_count: usize,
    /// Frames with a file's zeros, which have no block.
    pub zeros: usize,
}

impl<'f, P: Policy> Cache<'f, P> {
    pub fn new(bytes: &'f mut [Block], mut policy: P) -> Cache<'f, P> {
        let count = bytes.len();
        policy.begin(count as u32);
        Cache {
            bytes,
            frames: vec![Frame::default(); count],
            index: Index::new(count),
            empty: (0..count as u32).collect(),
            policy,
            dirty: vec![0; count.div_ceil(64)],
            dirty_count: 0,
            logged_count: 0,
            zeros: 0,
        }
    }

    /// The frame that has something, without telling the policy.
    #[inline]
    pub fn peek(&self, key: u64) -> Option<usize> {
        self.index.find(key)
    }

    /// The frame that has something.
    #[inline]
    pub fn find(&mut self, key: u64) -> Option<usize> {
        let frame = self.index.find(key)?;
        self.policy.used(frame as u32);
        Some(frame)
    }

    /// A frame without a key has something now.
    pub fn fill(&mut self, frame: usize, key: u64, at: u32) {
        let place = &mut self.frames[frame];
        *place = Frame {
            key,
            at,
            loan: place.loan,
            ..Frame::default()
        };
        self.zeros += usize::from(at == 0);
        self.index.insert(key, frame);
        self.policy.filled(frame as u32, key);
    }

    /// A frame has nothing any more; what others have bound stays as it is.
    pub fn clear(&mut self, frame: usize) {
        self.set_dirty(frame, false);
        self.set_logged(frame, false);
        let place = &mut self.frames[frame];
        if place.key == 0 {
            return;
        }
        self.index.remove(place.key);
        self.zeros -= usize::from(place.at == 0);
        *place = Frame {
            loan: place.loan,
            ..Frame::default()
        };
        self.policy.emptied(frame as u32);
        self.empty.push_back(frame as u32);
    }

    /// A frame's zeros have a block now.
    pub fn set_at(&mut self, frame: usize, at: u32) {
        let place = &mut self.frames[frame];
        self.zeros -= usize::from(place.at == 0);
        self.zeros += usize::from(at == 0);
        place.at = at;
    }

    /// Which frame the policy would give up, of those that have none of these flags.
    pub fn choose(&mut self, not: u8) -> Option<usize> {
        let frames = &self.frames;
        let may = |frame: &Frame| frame.key != 0 && !frame.is_pinned && frame.flags & not == 0;
        self.policy
            .choose(&mut |frame| frames.get(frame as usize).is_some_and(may))
            .map(|frame| frame as usize)
            .filter(|frame| frames.get(*frame).is_some_and(may))
            // A policy that knows none is no reason to fail.
            .or_else(|| frames.iter().position(may))
    }

    /// Says whether a frame's bytes are newer than the disk's.
    #[inline]
    pub fn set_dirty(&mut self, frame: usize, is_dirty: bool) {
        let flags = &mut self.frames[frame].flags;
        if is_dirty == (*flags & DIRTY != 0) {
            return;
        }
        let (word, bit) = (frame / 64, 1 << (frame % 64));
        if is_dirty {
            *flags |= DIRTY;
            self.dirty[word] |= bit;
            self.dirty_count += 1;
        } else {
            *flags &= !(DIRTY | ORDERED);
            self.dirty[word] &= !bit;
            self.dirty_count -= 1;
        }
    }

    /// Says whether a frame's block is in the log and not at home yet.
    pub fn set_logged(&mut self, frame: usize, is_logged: bool) {
        let flags = &mut self.frames[frame].flags;
        if is_logged == (*flags & LOGGED != 0) {
            return;
        }
        *flags ^= LOGGED;
        self.logged_count = if is_logged {
            self.logged_count + 1
        } else {
            self.logged_count - 1
        };
    }

    /// The frames whose bytes are newer than the disk's, for which `is_meant`.
    pub fn dirty(&self, mut is_meant: impl FnMut(&Frame) -> bool) -> Vec<usize> {
        let mut found = Vec::new();
        for (word, bits) in self.dirty.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let frame = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if is_meant(&self.frames[frame]) {
                    found.push(frame);
                }
            }
        }
        found
    }
}
