//! Folders: blocks of entries. Entries fill a block to its end; what is left behind a name belongs
//! to the entry before, so that places of entries never change while they are there.
//!
//! ```text
//! 0   node; 0: no entry here     14  bytes of the name
//! 8   sum of the name            15  kind
//! 12  bytes up to the next       16  name
//! ```

use postern_exos_abi::errno;
use postern_exos_abi::file::{Kind, NAME};

use crate::disk::{BLOCK, Disk};
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::hash;
use crate::layout::{HEAD, Sort, set, word16, word32, word64};
use crate::owner::Owner;
use crate::policy::Policy;

/// Bytes of an entry before its name.
const FIXED: usize = 16;

/// An entry in a block.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Where it begins.
    pub at: usize,
    /// Where the next one does.
    pub end: usize,
    /// 0: none.
    pub node: u64,
    pub sum: u32,
    pub kind: Option<Kind>,
    pub name: &'a [u8],
}

/// Entries of a block, from the first on. It ends early where the block is not as it should be, and
/// says so by an `Err`.
#[derive(Debug)]
pub struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Begins to walk.
pub fn walk(bytes: &[u8]) -> Walk<'_> {
    Walk { bytes, at: HEAD }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Found<'a>, ()>;

    fn next(&mut self) -> Option<Result<Found<'a>, ()>> {
        if self.at >= BLOCK {
            return None;
        }
        let at = self.at;
        let length = usize::from(word16(self.bytes, at + 12));
        let name_length = usize::from(self.bytes.get(at + 14).copied().unwrap_or_default());
        let end = at + length;
        let name = self.bytes.get(at + FIXED..at + FIXED + name_length);
        let is_well = length >= FIXED + name_length && length.is_multiple_of(8) && end <= BLOCK;
        let (Some(name), true) = (name, is_well) else {
            self.at = BLOCK;
            return Some(Err(()));
        };
        self.at = end;
        Some(Ok(Found {
            at,
            end,
            node: word64(self.bytes, at),
            sum: word32(self.bytes, at + 8),
            kind: match self.bytes.get(at + 15) {
                Some(1) => Some(Kind::File),
                Some(2) => Some(Kind::Folder),
                Some(3) => Some(Kind::Link),
                _ => None,
            },
            name,
        }))
    }
}

/// Bytes that an entry needs.
const fn needed(name: usize) -> usize {
    (FIXED + name).next_multiple_of(8)
}

/// Bytes that an entry takes up itself, of those up to the next.
fn taken(entry: &Found<'_>) -> usize {
    if entry.node == 0 {
        0
    } else {
        needed(entry.name.len())
    }
}

/// Whether this can be a name.
pub fn check_name(name: &[u8]) -> Result<(), Error> {
    if name.len() > NAME {
        return Err(errno::NAMETOOLONG.into());
    }
    let is_name = !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.contains(&b'/')
        && !name.contains(&0);
    if is_name {
        Ok(())
    } else {
        Err(errno::INVAL.into())
    }
}

/// Where an entry is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Which of the folder's blocks.
    pub index: u32,
    /// Where in it.
    pub at: usize,
    pub node: u64,
    pub kind: Kind,
}

/// Makes an entry's bytes in a block.
fn entry(
    node: u64,
    sum: u32,
    length: usize,
    name: &[u8],
    kind: Kind,
) -> ([u8; FIXED + NAME], usize) {
    let mut bytes = [0; FIXED + NAME];
    set(&mut bytes, 0, &node.to_le_bytes());
    set(&mut bytes, 8, &sum.to_le_bytes());
    set(&mut bytes, 12, &(length as u16).to_le_bytes());
    bytes[14] = name.len() as u8;
    bytes[15] = kind as u8;
    set(&mut bytes, FIXED, name);
    (bytes, FIXED + name.len())
}

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// How many blocks a folder has.
    pub(crate) fn folder_blocks(&self, slot: usize) -> u32 {
        (self.nodes.slots[slot].size >> 12) as u32
    }

    /// The frame of one of a folder's blocks.
    pub(crate) fn folder_block(&mut self, slot: usize, index: u32) -> Result<usize, Error> {
        let number = self.nodes.slots[slot].number();
        let block = self.find_block(slot, u64::from(index))?;
        if block == 0 {
            let table = self.geometry.node(number as u32).0;
            return Err(Error::Corrupt(table, Sort::Folder.name()));
        }
        self.own(u64::from(block), Sort::Folder, number, index)
    }

    /// Where a name is in a folder.
    pub(crate) fn find_entry(
        &mut self,
        slot: usize,
        name: &[u8],
        sum: u32,
    ) -> Result<Option<Place>, Error> {
        for index in 0..self.folder_blocks(slot) {
            let frame = self.folder_block(slot, index)?;
            let home = u64::from(self.cache.frames[frame].at);
            for found in walk(&self.cache.bytes[frame].0) {
                let corrupt = Error::Corrupt(home, Sort::Folder.name());
                let found = found.map_err(|()| corrupt)?;
                if found.sum == sum && found.node != 0 && found.name == name {
                    return Ok(Some(Place {
                        index,
                        at: found.at,
                        node: found.node,
                        kind: found.kind.ok_or(corrupt)?,
                    }));
                }
            }
        }
        Ok(None)
    }

    /// Adds an entry, of a name that is not there. The folder's node is to be stored afterwards.
    pub(crate) fn add_entry(
        &mut self,
        slot: usize,
        name: &[u8],
        node: u64,
        kind: Kind,
    ) -> Result<(), Error> {
        let sum = hash::name(name);
        let blocks = self.folder_blocks(slot);
        let first = self.nodes.slots[slot].room.min(blocks);
        for index in first..blocks {
            let frame = self.folder_block(slot, index)?;
            let home = u64::from(self.cache.frames[frame].at);
            let mut room = None;
            for found in walk(&self.cache.bytes[frame].0) {
                let found = found.map_err(|()| Error::Corrupt(home, Sort::Folder.name()))?;
                if found.end - found.at - taken(&found) >= needed(name.len()) {
                    room = Some((found.at, taken(&found), found.end));
                    break;
                }
            }
            let Some((before, taken, end)) = room else {
                continue;
            };
            let at = before + taken;
            if taken > 0 {
                self.put(frame, before + 12, &(taken as u16).to_le_bytes())?;
            }
            let (bytes, length) = entry(node, sum, end - at, name, kind);
            self.put(frame, at, &bytes[..length])?;
            self.nodes.slots[slot].room = index;
            self.nodes.slots[slot].entries = self.nodes.slots[slot].entries.saturating_add(1);
            return Ok(());
        }
        let number = self.nodes.slots[slot].number();
        let block = self.make_block(slot, u64::from(blocks))?;
        let frame = self.new_own(block, Sort::Folder, number, blocks)?;
        let (bytes, length) = entry(node, sum, BLOCK - HEAD, name, kind);
        self.put(frame, HEAD, &bytes[..length])?;
        let folder = &mut self.nodes.slots[slot];
        folder.size += BLOCK as u64;
        folder.room = blocks;
        folder.entries = folder.entries.saturating_add(1);
        Ok(())
    }

    /// Takes an entry away. The folder's node is to be stored afterwards.
    pub(crate) fn remove_entry(&mut self, slot: usize, place: Place) -> Result<(), Error> {
        let frame = self.folder_block(slot, place.index)?;
        let home = u64::from(self.cache.frames[frame].at);
        let corrupt = Error::Corrupt(home, Sort::Folder.name());
        let mut before = None;
        let mut this = None;
        for found in walk(&self.cache.bytes[frame].0) {
            let found = found.map_err(|()| corrupt)?;
            if found.at == place.at {
                this = Some(found.end);
                break;
            }
            before = Some(found.at);
        }
        let end = this.ok_or(corrupt)?;
        match before {
            Some(before) => self.put(frame, before + 12, &((end - before) as u16).to_le_bytes())?,
            None => self.put(frame, place.at, &[0; 8])?,
        }
        let folder = &mut self.nodes.slots[slot];
        folder.room = folder.room.min(place.index);
        folder.entries = folder.entries.saturating_sub(1);
        Ok(())
    }

    /// A name stands for something else.
    pub(crate) fn change_entry(
        &mut self,
        slot: usize,
        place: Place,
        node: u64,
        kind: Kind,
    ) -> Result<(), Error> {
        let frame = self.folder_block(slot, place.index)?;
        self.put(frame, place.at, &node.to_le_bytes())?;
        self.put(frame, place.at + 15, &[kind as u8])
    }
}
