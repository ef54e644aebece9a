//! Which blocks and which nodes are free, as the maps on the disk have it.

use crate::disk::Disk;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::{BODY, HEAD, MAP_BITS, NODE_MAP_PLACES, Sort, word64};
use crate::owner::Owner;
use crate::policy::Policy;
use crate::room::{PENDING, Use};

/// The first bit from one on to before another that is 0.
fn zero_bit(bits: &[u8], from: u64, end: u64) -> Option<u64> {
    let mut at = from;
    while at < end {
        let word = word64(bits, (at / 64) as usize * 8) >> (at % 64);
        let left = 64 - at % 64;
        let ones = u64::from(word.trailing_ones());
        if ones < left {
            return (at + ones < end).then_some(at + ones);
        }
        at += left;
    }
    None
}

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// Reads the maps.
    pub(crate) fn count_room(&mut self) -> Result<(), Error> {
        let geometry = self.geometry;
        self.room.cursor = geometry.data;
        for which in 0..geometry.maps {
            let frame = self.own(geometry.map + which, Sort::Map, which, 0)?;
            let (_, bits) = self.cache.bytes[frame].0.split_at(HEAD);
            let (words, _) = bits.as_chunks::<8>();
            let here = (geometry.blocks - which * MAP_BITS).min(MAP_BITS);
            let mut free = 0;
            for (index, word) in words.iter().enumerate() {
                let left = here.saturating_sub(64 * index as u64).min(64);
                let mask = if left == 64 {
                    u64::MAX
                } else {
                    (1 << left) - 1
                };
                free += u64::from((!u64::from_le_bytes(*word) & mask).count_ones());
            }
            self.room.counts.blocks += free;
        }
        for which in 0..geometry.node_maps {
            let frame = self.own(geometry.node_map + which, Sort::NodeMap, which, 0)?;
            let (_, places) = self.cache.bytes[frame].0.split_at(HEAD);
            let here = (geometry.nodes + 1 - which * NODE_MAP_PLACES).min(NODE_MAP_PLACES);
            for (index, byte) in places.iter().enumerate() {
                for place in 0..4 {
                    let in_map = 4 * index as u64 + place;
                    let number = which * NODE_MAP_PLACES + in_map;
                    if in_map >= here || number == 0 {
                        continue;
                    }
                    match byte >> (2 * place) & 3 {
                        0 => self.room.counts.nodes += 1,
                        3 => self.room.orphans.push(number as u32),
                        _ => {}
                    }
                }
            }
        }
        self.room.node_cursor = 1;
        Ok(())
    }

    /// A free block, near another if there is one.
    pub(crate) fn take_block(&mut self, near: Option<u32>) -> Result<u32, Error> {
        let geometry = self.geometry;
        if self.room.counts.blocks <= self.room.pending.len() as u64 {
            return Err(Error::NoSpace);
        }
        let mut at = near.map_or(self.room.cursor, |near| u64::from(near) + 1);
        if !(geometry.data..geometry.blocks).contains(&at) {
            at = geometry.data;
        }
        // Once around, and the first map a second time, for what is before the place of the start.
        for _ in 0..=geometry.maps {
            let which = at / MAP_BITS;
            let first = which * MAP_BITS;
            let end = (first + MAP_BITS).min(geometry.blocks);
            let map = geometry.map + which;
            let frame = self.own(map, Sort::Map, which, 0)?;
            while let Some(bit) = self.cache.bytes[frame]
                .0
                .get(HEAD..)
                .and_then(|bits| zero_bit(bits, at - first, end - first))
            {
                let block = first + bit;
                if block < geometry.data {
                    return Err(Error::Corrupt(map, Sort::Map.name()));
                }
                if self.room.pending.contains(&(block as u32)) {
                    at = block + 1;
                    continue;
                }
                self.set_bit(frame, bit, true)?;
                self.room.counts.blocks -= 1;
                if near.is_none() {
                    self.room.cursor = block + 1;
                }
                return Ok(block as u32);
            }
            at = if end == geometry.blocks {
                geometry.data
            } else {
                end
            };
        }
        Err(Error::NoSpace)
    }

    fn set_bit(&mut self, frame: usize, bit: u64, is_taken: bool) -> Result<(), Error> {
        let at = HEAD + (bit / 8) as usize;
        let byte = self.cache.bytes[frame]
            .0
            .get(at)
            .copied()
            .unwrap_or_default();
        let mask = 1 << (bit % 8);
        let byte = if is_taken { byte | mask } else { byte & !mask };
        self.put(frame, at, &[byte])
    }

    /// A block has no owner any more. It is given to nobody before the next commit.
    pub(crate) fn free_block(&mut self, block: u32) -> Result<(), Error> {
        let geometry = self.geometry;
        let which = u64::from(block) / MAP_BITS;
        let bit = u64::from(block) % MAP_BITS;
        let map = geometry.map + which;
        if self.room.pending.len() >= PENDING {
            return Err(Error::Full);
        }
        let frame = self.own(map, Sort::Map, which, 0)?;
        let byte = self.cache.bytes[frame].0.get(HEAD + (bit / 8) as usize);
        let is_taken = byte.is_some_and(|byte| byte >> (bit % 8) & 1 != 0);
        if !geometry.is_data(block) || !is_taken || self.room.pending.contains(&block) {
            return Err(Error::Corrupt(map, Sort::Map.name()));
        }
        self.set_bit(frame, bit, false)?;
        self.room.pending.insert(block);
        self.transaction.freed.push(block);
        self.room.counts.blocks += 1;
        Ok(())
    }

    /// The index of a free node, which is taken now.
    pub(crate) fn take_node(&mut self) -> Result<u32, Error> {
        let geometry = self.geometry;
        if self.room.counts.nodes == 0 {
            return Err(Error::NoNodes);
        }
        let mut at = self.room.node_cursor;
        while at <= geometry.nodes {
            let which = at / NODE_MAP_PLACES;
            let frame = self.own(geometry.node_map + which, Sort::NodeMap, which, 0)?;
            let bytes = &self.cache.bytes[frame].0;
            let end = ((which + 1) * NODE_MAP_PLACES).min(geometry.nodes + 1);
            while at < end {
                let in_map = at % NODE_MAP_PLACES;
                let byte = bytes
                    .get(HEAD + (in_map / 4) as usize)
                    .copied()
                    .unwrap_or(0xff);
                if in_map.is_multiple_of(4) && byte & 0x55 == 0x55 {
                    at += 4;
                } else if byte >> (2 * (in_map % 4)) & 3 == 0 {
                    self.set_use(at as u32, Use::Taken)?;
                    // Nodes below may be freed when this operation fails, but not made free.
                    self.room.node_cursor = at;
                    return Ok(at as u32);
                } else {
                    at += 1;
                }
            }
        }
        Err(Error::NoNodes)
    }

    /// What a node is used for.
    pub(crate) fn use_of(&mut self, index: u32) -> Result<u8, Error> {
        let which = u64::from(index) / NODE_MAP_PLACES;
        let frame = self.own(self.geometry.node_map + which, Sort::NodeMap, which, 0)?;
        let place = u64::from(index) % NODE_MAP_PLACES;
        let byte = self.cache.bytes[frame].0.get(HEAD + (place / 4) as usize);
        Ok(byte.map_or(0, |byte| byte >> (2 * (place % 4)) & 3))
    }

    /// Says what a node is used for.
    pub(crate) fn set_use(&mut self, index: u32, what: Use) -> Result<(), Error> {
        let former = self.use_of(index)?;
        if former == what as u8 {
            return Ok(());
        }
        let which = u64::from(index) / NODE_MAP_PLACES;
        let frame = self.own(self.geometry.node_map + which, Sort::NodeMap, which, 0)?;
        let place = u64::from(index) % NODE_MAP_PLACES;
        let at = HEAD + (place / 4) as usize;
        let byte = self.cache.bytes[frame]
            .0
            .get(at)
            .copied()
            .unwrap_or_default();
        let shift = 2 * (place % 4);
        self.put(frame, at, &[byte & !(3 << shift) | (what as u8) << shift])?;
        if former == 0 {
            self.room.counts.nodes = self.room.counts.nodes.saturating_sub(1);
        } else if what == Use::Free {
            self.room.counts.nodes += 1;
            self.room.node_cursor = self.room.node_cursor.min(u64::from(index));
        }
        Ok(())
    }
}

const _: () = assert!(BODY.is_multiple_of(8));
