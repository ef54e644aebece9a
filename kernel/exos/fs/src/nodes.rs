//! Nodes: what a file is besides its name. They stand in a table on the disk; those that were used
//! lately stand in memory, too, and are written through to the table's block in the cache.
//!
//! ```text
//! 0   kind; 0: none        16  size in bytes          56   pointers to blocks: 12, and three of
//! 1   0                    24  modified                    indirect blocks of levels 1 to 3; or
//! 2   mode                 32  changed                     the target of a link, up to 60 bytes
//! 4   names                40  version                116  entries of a folder
//! 8   generation           48  folder that has it,    120  0
//! 12  blocks                   of a folder
//! ```

use alloc::vec::Vec;

use postern_exos_abi::errno;
use postern_exos_abi::file::{Kind, Status};

use crate::disk::Disk;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::index::Index;
use crate::layout::{DIRECT, LEVELS, MOST, NODE, ROOT, Sort, set, word16, word32, word64};
use crate::owner::Owner;
use crate::policy::Policy;
use crate::space::Use;

/// Nodes in memory that nobody has open.
const KEPT: usize = 1024;
/// Pointers in a node.
pub const OWN: usize = DIRECT as usize + LEVELS as usize;
/// Bytes of a target that a node has room for.
pub const SHORT: u64 = 4 * OWN as u64;
const POINTERS_AT: usize = 56;

/// A node in memory.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub index: u32,
    pub generation: u32,
    pub kind: Kind,
    pub mode: u16,
    pub links: u32,
    pub blocks: u32,
    pub size: u64,
    pub modified: u64,
    pub changed: u64,
    pub version: u64,
    pub parent: u64,
    pub pointers: [u32; OWN],
    pub entries: u32,

    /// Not on the disk: how often it is open.
    pub held: u32,
    /// It is as the table has it.
    pub is_valid: bool,
    /// It was used since the last look for one to forget.
    pub is_used: bool,
    /// The block that was read last: who reads the next one reads on.
    pub read_last: u32,
    /// Where the last allocated block is, for the next to stand behind it.
    pub near: u32,
    /// The folder's block in which there may be room.
    pub room: u32,
}

/// The number by which a node is known outside.
pub const fn number(generation: u32, index: u32) -> u64 {
    (generation as u64) << 32 | index as u64
}

impl Node {
    /// A new one.
    pub fn new(index: u32, generation: u32, kind: Kind, mode: u32, now: u64) -> Node {
        Node {
            index,
            generation,
            kind,
            mode: (mode & 0o777) as u16,
            links: 1,
            blocks: 0,
            size: 0,
            modified: now,
            changed: now,
            version: 0,
            parent: 0,
            pointers: [0; OWN],
            entries: 0,
            held: 0,
            is_valid: true,
            is_used: true,
            read_last: u32::MAX,
            near: 0,
            room: 0,
        }
    }

    /// As the table has it; nothing where there is none. `Err` if it cannot be one.
    pub fn read(bytes: &[u8], index: u32) -> Result<Option<Node>, ()> {
        let kind = match bytes.first() {
            Some(0) => return Ok(None),
            Some(1) => Kind::File,
            Some(2) => Kind::Folder,
            Some(3) => Kind::Link,
            _ => return Err(()),
        };
        let mut node = Node::new(index, word32(bytes, 8), kind, 0, 0);
        node.mode = word16(bytes, 2) & 0o777;
        node.links = word32(bytes, 4);
        node.blocks = word32(bytes, 12);
        node.size = word64(bytes, 16);
        node.modified = word64(bytes, 24);
        node.changed = word64(bytes, 32);
        node.version = word64(bytes, 40);
        node.parent = word64(bytes, 48);
        for (which, pointer) in node.pointers.iter_mut().enumerate() {
            *pointer = word32(bytes, POINTERS_AT + 4 * which);
        }
        node.entries = word32(bytes, 116);
        if node.size > MOST << 12 {
            return Err(());
        }
        Ok(Some(node))
    }

    /// As the table has it.
    pub fn write(&self) -> [u8; NODE] {
        let mut bytes = [0; NODE];
        bytes[0] = self.kind as u8;
        set(&mut bytes, 2, &self.mode.to_le_bytes());
        set(&mut bytes, 4, &self.links.to_le_bytes());
        set(&mut bytes, 8, &self.generation.to_le_bytes());
        set(&mut bytes, 12, &self.blocks.to_le_bytes());
        set(&mut bytes, 16, &self.size.to_le_bytes());
        set(&mut bytes, 24, &self.modified.to_le_bytes());
        set(&mut bytes, 32, &self.changed.to_le_bytes());
        set(&mut bytes, 40, &self.version.to_le_bytes());
        set(&mut bytes, 48, &self.parent.to_le_bytes());
        for (which, pointer) in self.pointers.iter().enumerate() {
            set(&mut bytes, POINTERS_AT + 4 * which, &pointer.to_le_bytes());
        }
        set(&mut bytes, 116, &self.entries.to_le_bytes());
        bytes
    }

    /// By which number it is known.
    pub fn number(&self) -> u64 {
        number(self.generation, self.index)
    }

    /// Whether it is a link whose target it has itself.
    pub fn is_short(&self) -> bool {
        self.kind == Kind::Link && self.size <= SHORT
    }

    /// The target that it has itself.
    pub fn short_target(&self) -> [u8; SHORT as usize] {
        let mut target = [0; SHORT as usize];
        for (bytes, pointer) in target.chunks_exact_mut(4).zip(self.pointers) {
            bytes.copy_from_slice(&pointer.to_le_bytes());
        }
        target
    }

    /// Takes a target.
    pub fn set_short_target(&mut self, target: &[u8]) {
        let mut bytes = [0; SHORT as usize];
        set(&mut bytes, 0, target);
        for (which, pointer) in self.pointers.iter_mut().enumerate() {
            *pointer = word32(&bytes, 4 * which);
        }
    }

    /// What others are told of it.
    pub fn status(&self) -> Status {
        Status {
            node: self.number(),
            kind: self.kind,
            mode: u32::from(self.mode),
            links: self.links,
            size: self.size,
            blocks: u64::from(self.blocks),
            modified: self.modified,
            changed: self.changed,
            version: self.version,
        }
    }
}

/// Nodes in memory.
#[derive(Debug)]
pub struct Nodes {
    pub slots: Vec<Node>,
    index: Index,
    hand: usize,
}

impl Nodes {
    pub fn new() -> Nodes {
        Nodes {
            slots: Vec::with_capacity(KEPT),
            index: Index::new(KEPT),
            hand: 0,
        }
    }

    /// Where a node is, if it is here.
    #[inline]
    pub fn find(&self, index: u32) -> Option<usize> {
        self.index.find(u64::from(index))
    }

    /// What stands here of it is not what the table has any more; how often it is open stays.
    pub fn forget(&mut self, index: u32) {
        if let Some(slot) = self.find(index) {
            self.slots[slot].is_valid = false;
        }
    }

    /// A node comes, and may take another one's place.
    fn insert(&mut self, node: Node) -> usize {
        let index = u64::from(node.index);
        if let Some(slot) = self.find(node.index) {
            let held = self.slots[slot].held;
            self.slots[slot] = Node { held, ..node };
            return slot;
        }
        if self.slots.len() >= KEPT {
            // Two rounds: in the second none is used.
            for _ in 0..2 * self.slots.len() {
                self.hand = (self.hand + 1) % self.slots.len();
                let place = &mut self.slots[self.hand];
                if place.held > 0 || core::mem::take(&mut place.is_used) {
                    continue;
                }
                self.index.remove(u64::from(place.index));
                *place = node;
                self.index.insert(index, self.hand);
                return self.hand;
            }
        }
        self.slots.push(node);
        self.index.insert(index, self.slots.len() - 1);
        self.slots.len() - 1
    }
}

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// Whether this can be a node's index.
    fn is_index(&self, index: u32) -> bool {
        (1..=self.geometry.nodes).contains(&u64::from(index))
    }

    /// A node as the table has it, by its index.
    fn load(&mut self, index: u32) -> Result<Option<Node>, Error> {
        if !self.is_index(index) {
            return Ok(None);
        }
        let (block, which, place) = self.geometry.node(index);
        let frame = self.own(block, Sort::Nodes, u64::from(which), 0)?;
        let bytes = self.cache.bytes[frame].0.get(place..place + NODE);
        Node::read(bytes.unwrap_or_default(), index)
            .map_err(|()| Error::Corrupt(block, Sort::Nodes.name()))
    }

    /// Where a file's node is in memory.
    #[inline]
    pub(crate) fn slot(&mut self, number: u64) -> Result<usize, Error> {
        let index = number as u32;
        if let Some(slot) = self.nodes.find(index) {
            let node = &mut self.nodes.slots[slot];
            if node.is_valid && node.generation == (number >> 32) as u32 {
                node.is_used = true;
                return Ok(slot);
            }
        }
        self.load_slot(number)
    }

    #[cold]
    fn load_slot(&mut self, number: u64) -> Result<usize, Error> {
        let stale = Error::Refused(errno::STALE);
        let node = self.load(number as u32)?.ok_or(stale)?;
        let is_held = self.nodes.find(node.index).is_some_and(|slot| self.nodes.slots[slot].held > 0);
        if node.generation != (number >> 32) as u32 || node.links == 0 && !is_held {
            return Err(stale);
        }
        Ok(self.nodes.insert(node))
    }

    /// The same, whatever its generation, with names or without.
    pub(crate) fn slot_of_index(&mut self, index: u32) -> Result<Option<usize>, Error> {
        if let Some(slot) = self.nodes.find(index)
            && self.nodes.slots[slot].is_valid
        {
            return Ok(Some(slot));
        }
        let node = self.load(index)?;
        Ok(node.map(|node| self.nodes.insert(node)))
    }

    /// Where a folder's node is.
    #[inline]
    pub(crate) fn folder_slot(&mut self, number: u64) -> Result<usize, Error> {
        let slot = self.slot(number)?;
        if self.nodes.slots[slot].kind != Kind::Folder {
            return Err(errno::NOTDIR.into());
        }
        Ok(slot)
    }

    /// Writes a node to the table.
    pub(crate) fn store(&mut self, slot: usize) -> Result<(), Error> {
        let node = self.nodes.slots[slot];
        let (block, which, place) = self.geometry.node(node.index);
        self.transaction.touched.push(node.index);
        let frame = self.own(block, Sort::Nodes, u64::from(which), 0)?;
        self.put(frame, place, &node.write())
    }

    /// A new node, in memory alone as yet.
    pub(crate) fn new_node(&mut self, kind: Kind, mode: u32, now: u64) -> Result<usize, Error> {
        let index = self.take_node()?;
        let (block, which, place) = self.geometry.node(index);
        let frame = self.own(block, Sort::Nodes, u64::from(which), 0)?;
        let bytes = &self.cache.bytes[frame].0;
        if bytes.get(place) != Some(&0) {
            return Err(Error::Corrupt(block, Sort::Nodes.name()));
        }
        // Whoever knows the last one's number does not know this one's.
        let generation = word32(bytes, place + 8).wrapping_add(1).max(1);
        self.transaction.touched.push(index);
        Ok(self.nodes.insert(Node::new(index, generation, kind, mode, now)))
    }

    /// A node is nobody's any more. Its generation stays in the table.
    pub(crate) fn free_node(&mut self, slot: usize) -> Result<(), Error> {
        let node = self.nodes.slots[slot];
        let (block, which, place) = self.geometry.node(node.index);
        self.transaction.touched.push(node.index);
        let mut bytes = [0; NODE];
        set(&mut bytes, 8, &node.generation.to_le_bytes());
        let frame = self.own(block, Sort::Nodes, u64::from(which), 0)?;
        self.put(frame, place, &bytes)?;
        self.set_use(node.index, Use::Free)?;
        self.nodes.forget(node.index);
        Ok(())
    }

    /// The root's number.
    pub(crate) fn root_number(&self) -> u64 {
        number(1, ROOT)
    }

    /// What is known of a file.
    pub(crate) fn status_of(&mut self, number: u64) -> Result<Status, Error> {
        let slot = self.slot(number)?;
        Ok(self.nodes.slots[slot].status())
    }
}
