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

use postern_exos_abi::file::{Kind, Status};

use crate::index::Index;
use crate::layout::{DIRECT, LEVELS, MOST, NODE, set, word16, word32, word64};

/// Nodes that stay in memory between operations, besides those that are open.
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

    /// A node comes. Those that are there stay where they are, as long as the operation takes.
    pub fn insert(&mut self, node: Node) -> usize {
        let index = u64::from(node.index);
        if let Some(slot) = self.find(node.index) {
            let held = self.slots[slot].held;
            self.slots[slot] = Node { held, ..node };
            return slot;
        }
        self.slots.push(node);
        self.index.insert(index, self.slots.len() - 1);
        self.slots.len() - 1
    }

    /// Between operations: there are not too many. Places of others may change.
    #[inline]
    pub fn shrink(&mut self) {
        if self.slots.len() > KEPT {
            self.shrink_now();
        }
    }

    #[cold]
    fn shrink_now(&mut self) {
        // In the second round none is used; those that are open stay.
        let mut looks = 2 * self.slots.len();
        while self.slots.len() > KEPT && looks > 0 {
            looks -= 1;
            self.hand = (self.hand + 1) % self.slots.len();
            let place = &mut self.slots[self.hand];
            if place.held > 0 || core::mem::take(&mut place.is_used) {
                continue;
            }
            let gone = self.slots.swap_remove(self.hand);
            self.index.remove(u64::from(gone.index));
            if let Some(moved) = self.slots.get(self.hand) {
                self.index.insert(u64::from(moved.index), self.hand);
            }
        }
    }
}
