//! Where everything lies on the disk, and the head that each block of the file system's own has.
//!
//! ```text
//! 0, 1        superblock, twice: the one with the higher generation counts
//! 2           log
//! ..          map of blocks: a bit for each block of the disk
//! ..          map of nodes: two bits for each node
//! ..          table of nodes: 31 in a block
//! ..          data: bytes of files, folders, indirect blocks, long targets
//! ```
//!
//! All places follow from four numbers of the superblock, so no two can contradict each other.
//! Numbers are little-endian.

use crate::disk::{BLOCK, Block};
use crate::error::Error;
use crate::hash::xxh64;

/// Bytes of a head:
///
/// ```text
/// 0  what the block is (Sort)        16  where the block is: its number
/// 4  level, or which of the owner's  24  sum over all other bytes
/// 8  owner: a node, or which block
/// ```
pub const HEAD: usize = 32;
/// Bytes behind a head.
pub const BODY: usize = BLOCK - HEAD;
/// Blocks that a block of the map is for.
pub const MAP_BITS: u64 = BODY as u64 * 8;
/// Nodes that a block of the map of nodes is for.
pub const NODE_MAP_PLACES: u64 = BODY as u64 * 4;
/// Bytes of a node.
pub const NODE: usize = 128;
/// Nodes in a block: the first place is the head's.
pub const NODES: u64 = (BLOCK / NODE) as u64 - 1;
/// Pointers in an indirect block.
pub const POINTERS: u64 = BODY as u64 / 4;
/// Pointers to blocks of bytes in a node; behind them one for each level of indirect blocks.
pub const DIRECT: u64 = 12;
/// Levels of indirect blocks.
pub const LEVELS: u32 = 3;
/// Blocks that a file can have.
pub const MOST: u64 = DIRECT + POINTERS + POINTERS * POINTERS + POINTERS * POINTERS * POINTERS;
/// The first block of the log.
pub const LOG: u64 = 2;
/// The root's index in the table.
pub const ROOT: u32 = 1;
/// More than a disk lives to see, and few enough that each has sequence numbers of its own.
const GENERATIONS: u64 = 1 << 38;
/// The layout that this is.
const VERSION: u32 = 1;
const MAGIC: u64 = 0x7366_736f_7865_0a1a;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Sort {
    /// A superblock.
    Super = 0x5346_5845,
    /// A transaction in the log.
    Record = 0x474f_4c45,
    /// Which blocks are taken.
    Map = 0x5041_4d42,
    /// Which nodes are.
    NodeMap = 0x5041_4d4e,
    /// Nodes.
    Nodes = 0x4445_444f,
    /// Pointers to blocks.
    Indirect = 0x5249_444e,
    /// Entries of a folder.
    Folder = 0x4452_4c46,
    /// What a link stands for, if it is long.
    Target = 0x4b4e_494c,
}

impl Sort {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Sort::Super => "superblock",
            Sort::Record => "record of the log",
            Sort::Map => "map of blocks",
            Sort::NodeMap => "map of nodes",
            Sort::Nodes => "table of nodes",
            Sort::Indirect => "indirect block",
            Sort::Folder => "block of a folder",
            Sort::Target => "target of a link",
        }
    }
}

/// Two bytes of a block; 0 beyond its end, as with all of these.
pub fn word16(bytes: &[u8], at: usize) -> u16 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    word.map_or(0, |word| u16::from_le_bytes(*word))
}

/// Four bytes.
pub fn word32(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

/// Eight bytes.
pub fn word64(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// Writes bytes into others; what is beyond their end is left out.
pub fn set(bytes: &mut [u8], at: usize, from: &[u8]) {
    let to = bytes.get_mut(at..).unwrap_or_default();
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Where things are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Tells it from what was on the disk before.
    pub id: u64,
    /// Blocks.
    pub blocks: u64,
    /// Blocks of the log.
    pub log: u64,
    /// Nodes; index 0 is none.
    pub nodes: u64,
    /// The first block of the map.
    pub map: u64,
    /// How many the map has.
    pub maps: u64,
    /// The first block of the map of nodes.
    pub node_map: u64,
    /// How many it has.
    pub node_maps: u64,
    /// The first block of the table.
    pub table: u64,
    /// The first block of data.
    pub data: u64,
}

impl Geometry {
    /// From the four numbers that decide.
    pub fn new(id: u64, blocks: u64, nodes: u64, log: u64) -> Option<Geometry> {
        let fits = (64..u64::from(u32::MAX)).contains(&blocks)
            && (32..=blocks / 2).contains(&log)
            && (16..u64::from(u32::MAX)).contains(&nodes);
        if !fits {
            return None;
        }
        let maps = blocks.div_ceil(MAP_BITS);
        let node_maps = (nodes + 1).div_ceil(NODE_MAP_PLACES);
        let map = LOG + log;
        let node_map = map + maps;
        let table = node_map + node_maps;
        let data = table + (nodes + 1).div_ceil(NODES);
        // One block for the root's first entries, and one for a file.
        (data + 2 <= blocks).then_some(Geometry {
            id,
            blocks,
            log,
            nodes,
            map,
            maps,
            node_map,
            node_maps,
            table,
            data,
        })
    }

    /// Whether a pointer can be one: to a block of data.
    pub fn is_data(&self, block: u32) -> bool {
        (self.data..self.blocks).contains(&u64::from(block))
    }

    /// The block of the table that has a node, and where in it.
    pub fn node(&self, index: u32) -> (u64, u32, usize) {
        let which = u64::from(index) / NODES;
        let place = (1 + u64::from(index) % NODES) as usize * NODE;
        (self.table + which, which as u32, place)
    }

    /// The sum that belongs under a block.
    fn sum(&self, block: &Block, home: u64) -> u64 {
        let (head, _) = block.0.split_at(24);
        let (_, body) = block.0.split_at(HEAD);
        let sum = xxh64(body, self.id ^ home);
        xxh64(head, sum)
    }

    /// Writes the sum under a block, and says it.
    pub fn seal(&self, block: &mut Block, home: u64) -> u64 {
        let sum = self.sum(block, home);
        set(&mut block.0, 24, &sum.to_le_bytes());
        sum
    }

    /// Whether the sum under a block is right, and it is at home here.
    pub fn is_sealed(&self, block: &Block, home: u64) -> bool {
        word64(&block.0, 16) == home && word64(&block.0, 24) == self.sum(block, home)
    }

    /// Whether a block is what is looked for.
    pub fn is(&self, block: &Block, home: u64, sort: Sort, owner: u64, level: u32) -> bool {
        word32(&block.0, 0) == sort as u32
            && word32(&block.0, 4) == level
            && word64(&block.0, 8) == owner
            && self.is_sealed(block, home)
    }
}

/// Begins a block: zeros behind a head.
pub fn begin(block: &mut Block, home: u64, sort: Sort, owner: u64, level: u32) {
    block.0.fill(0);
    set(&mut block.0, 0, &(sort as u32).to_le_bytes());
    set(&mut block.0, 4, &level.to_le_bytes());
    set(&mut block.0, 8, &owner.to_le_bytes());
    set(&mut block.0, 16, &home.to_le_bytes());
}

/// What a superblock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Super {
    /// Where things are.
    pub geometry: Geometry,
    /// Grows with each that is written.
    pub generation: u64,
    /// The sequence number of the first record of the log.
    pub sequence: u64,
}

impl Super {
    /// Where it is written: the other one of the two stays as it is.
    pub fn home(&self) -> u64 {
        self.generation & 1
    }

    /// As it stands on the disk.
    pub fn write(&self, block: &mut Block) {
        let geometry = &self.geometry;
        begin(block, self.home(), Sort::Super, self.generation, VERSION);
        let words = [
            MAGIC,
            geometry.id,
            geometry.blocks,
            geometry.nodes,
            geometry.log,
            self.sequence,
        ];
        for (index, word) in words.into_iter().enumerate() {
            set(&mut block.0, HEAD + 8 * index, &word.to_le_bytes());
        }
        geometry.seal(block, self.home());
    }

    /// Reads it, if it is one.
    pub fn read(block: &Block, home: u64) -> Option<Super> {
        let word = |index: usize| word64(&block.0, HEAD + 8 * index);
        let geometry = Geometry::new(word(1), word(2), word(3), word(4))?;
        let generation = word64(&block.0, 8);
        let is_one = word(0) == MAGIC
            && generation & 1 == home
            && generation < GENERATIONS
            && word(5) < GENERATIONS << 24
            && geometry.is(block, home, Sort::Super, generation, VERSION);
        is_one.then_some(Super {
            geometry,
            generation,
            sequence: word(5),
        })
    }

    /// Of two, the one that counts.
    pub fn choose(blocks: [&Block; 2], of_disk: u64) -> Result<Super, Error> {
        let first = Super::read(blocks[0], 0);
        let second = Super::read(blocks[1], 1);
        let chosen = match (first, second) {
            (Some(first), Some(second)) if first.generation > second.generation => first,
            (_, Some(second)) => second,
            (first, None) => first.ok_or(Error::NoFileSystem)?,
        };
        if chosen.geometry.blocks > of_disk {
            return Err(Error::TooShort);
        }
        Ok(chosen)
    }
}
