//! Which block of the disk has which block of a file: twelve pointers in the node, then indirect
//! blocks of one, two and three levels. A pointer that is 0 is a hole.

use postern_exos_abi::errno;
use postern_exos_abi::file::Kind;

use crate::cache::key;
use crate::disk::Disk;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::{DIRECT, HEAD, LEVELS, MOST, POINTERS, Sort, word32};
use crate::owner::Owner;
use crate::policy::Policy;

/// Blocks that are freed in one step.
const STEP: u32 = 2048;

/// The way to a file's block: which of the node's pointers, and then which of each indirect
/// block's.
#[derive(Clone, Copy, Debug)]
struct Way {
    own: usize,
    /// Levels below the node.
    levels: u32,
    /// By level, from 1.
    places: [u64; LEVELS as usize],
}

fn way(index: u64) -> Option<Way> {
    let mut rest = index;
    if rest < DIRECT {
        return Some(Way {
            own: rest as usize,
            levels: 0,
            places: [0; 3],
        });
    }
    rest -= DIRECT;
    let mut span = 1;
    for levels in 1..=LEVELS {
        span *= POINTERS;
        if rest < span {
            return Some(Way {
                own: DIRECT as usize + levels as usize - 1,
                levels,
                places: [
                    rest % POINTERS,
                    rest / POINTERS % POINTERS,
                    rest / (POINTERS * POINTERS),
                ],
            });
        }
        rest -= span;
    }
    None
}

/// Blocks of a file below one pointer of a level.
const fn span(level: u32) -> u64 {
    POINTERS.pow(level)
}

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// A pointer, if it can be one.
    fn pointer(&self, block: u32, of: u64) -> Result<u32, Error> {
        if block == 0 || self.geometry.is_data(block) {
            return Ok(block);
        }
        Err(Error::Corrupt(of, "pointer to a block"))
    }

    /// Where a block of a file is; 0 for a hole.
    pub(crate) fn find_block(&mut self, slot: usize, index: u64) -> Result<u32, Error> {
        let way = way(index).ok_or(Error::Refused(errno::FBIG))?;
        let node = self.nodes.slots[slot];
        let table = self.geometry.node(node.index).0;
        let mut block = self.pointer(node.pointers[way.own], table)?;
        for level in (1..=way.levels).rev() {
            if block == 0 {
                return Ok(0);
            }
            let frame = self.own(u64::from(block), Sort::Indirect, node.number(), level)?;
            let place = HEAD + 4 * way.places[level as usize - 1] as usize;
            let pointer = word32(&self.cache.bytes[frame].0, place);
            block = self.pointer(pointer, u64::from(block))?;
        }
        Ok(block)
    }

    /// Makes a block of a file, where there is a hole; the node is to be stored afterwards.
    pub(crate) fn make_block(&mut self, slot: usize, index: u64) -> Result<u32, Error> {
        let way = way(index).ok_or(Error::Refused(errno::FBIG))?;
        let number = self.nodes.slots[slot].number();
        if self.nodes.slots[slot].near == 0 && index > 0 {
            self.nodes.slots[slot].near = self.find_block(slot, index - 1)?;
        }
        // Indirect blocks first, so that bytes stand behind each other.
        let mut parent: Option<u32> = None;
        for level in (0..=way.levels).rev() {
            let (former, place) = match parent {
                None => (self.nodes.slots[slot].pointers[way.own], 0),
                Some(parent) => {
                    let frame = self.own(u64::from(parent), Sort::Indirect, number, level + 1)?;
                    let place = HEAD + 4 * way.places[level as usize] as usize;
                    (word32(&self.cache.bytes[frame].0, place), place)
                }
            };
            let former = self.pointer(former, u64::from(parent.unwrap_or_default()))?;
            if former != 0 {
                parent = Some(former);
                continue;
            }
            let near = self.nodes.slots[slot].near;
            let block = self.take_block((near != 0).then_some(near))?;
            if level > 0 {
                self.new_own(block, Sort::Indirect, number, level)?;
            }
            match parent {
                None => self.nodes.slots[slot].pointers[way.own] = block,
                Some(parent) => {
                    let frame = self.own(u64::from(parent), Sort::Indirect, number, level + 1)?;
                    self.put(frame, place, &block.to_le_bytes())?;
                }
            }
            let node = &mut self.nodes.slots[slot];
            node.near = block;
            node.blocks = node.blocks.saturating_add(1);
            parent = Some(block);
        }
        Ok(parent.unwrap_or_default())
    }

    /// Frees blocks of a file from one on, the last ones first, and stores the node. Says whether
    /// that is all: a long file takes several steps.
    pub(crate) fn trim(&mut self, slot: usize, from: u64) -> Result<bool, Error> {
        if self.nodes.slots[slot].is_short() {
            self.store(slot)?;
            return Ok(true);
        }
        let mut budget = STEP;
        let mut is_done = true;
        let index = self.nodes.slots[slot].index;
        let own = self.nodes.slots[slot].pointers.len();
        for which in (0..own).rev() {
            let level = (which as u64 + 1).saturating_sub(DIRECT) as u32;
            let first = match level {
                0 => which as u64,
                level => DIRECT + (1..level).map(span).sum::<u64>(),
            };
            let block = self.nodes.slots[slot].pointers[which];
            if block == 0 || first + span(level) <= from {
                continue;
            }
            if self.trim_below(slot, block, level, first, from, &mut budget)? {
                self.nodes.slots[slot].pointers[which] = 0;
            }
            if budget == 0 || self.transaction.is_long() {
                // It may be all, by chance: the next step sees that.
                is_done = false;
                break;
            }
        }
        if self.cache.zeros > 0 {
            let zeros = self.cache.frames.iter().filter(|frame| {
                frame.at == 0
                    && frame.key != 0
                    && (frame.key >> 32) as u32 == index
                    && u64::from(frame.key as u32) >= from
            });
            self.transaction
                .dropped
                .extend(zeros.map(|frame| frame.key));
        }
        self.store(slot)?;
        Ok(is_done)
    }

    /// Frees what is below a pointer to a level, if it is not before `from`; says whether nothing
    /// is left of it.
    fn trim_below(
        &mut self,
        slot: usize,
        block: u32,
        level: u32,
        first: u64,
        from: u64,
        budget: &mut u32,
    ) -> Result<bool, Error> {
        let (number, index) = (
            self.nodes.slots[slot].number(),
            self.nodes.slots[slot].index,
        );
        if level > 0 {
            let below = span(level - 1);
            let start = from.saturating_sub(first) / below;
            for place in (start..POINTERS).rev() {
                let at = HEAD + 4 * place as usize;
                let frame = self.own(u64::from(block), Sort::Indirect, number, level)?;
                let pointer = word32(&self.cache.bytes[frame].0, at);
                if pointer == 0 {
                    continue;
                }
                if *budget == 0 || self.transaction.is_long() {
                    return Ok(false);
                }
                let first = first + place * below;
                if self.trim_below(slot, pointer, level - 1, first, from, budget)? {
                    let frame = self.own(u64::from(block), Sort::Indirect, number, level)?;
                    self.put(frame, at, &[0; 4])?;
                }
            }
            if from > first {
                return Ok(false);
            }
            let frame = self.own(u64::from(block), Sort::Indirect, number, level)?;
            let (_, body) = self.cache.bytes[frame].0.split_at(HEAD);
            if body.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            self.revoke(block)?;
        } else if self.nodes.slots[slot].kind == Kind::File {
            self.transaction.dropped.push(key(index, first as u32));
        } else {
            self.revoke(block)?;
        }
        self.free_block(block)?;
        *budget = budget.saturating_sub(1);
        let node = &mut self.nodes.slots[slot];
        node.blocks = node.blocks.saturating_sub(1);
        node.near = 0;
        Ok(true)
    }
}

const _: () = assert!(MOST < 1 << 32);
