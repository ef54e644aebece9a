//! A new file system on a disk.

use alloc::vec;
use alloc::vec::Vec;

use postern_exos_abi::file::Kind;

use crate::disk::{Block, Disk};
use crate::error::Error;
use crate::layout::{
    Geometry, HEAD, LOG, MAP_BITS, NODE_MAP_PLACES, NODES, ROOT, Sort, Super, begin, set,
};
use crate::nodes::Node;
use crate::room::Use;

/// Blocks that are written in one request.
const TOGETHER: u64 = 64;

/// How a file system is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Format {
    /// Files that there can be; one for four blocks, if nobody says it.
    pub nodes: Option<u64>,
    /// Blocks of the log; a sixteenth of the disk, and at most 1,024, if nobody says it.
    pub log: Option<u64>,
    /// A number that tells it from others: what was on the disk before does not count for it.
    pub id: u64,
    /// Nanoseconds since 1970.
    pub now: u64,
}

/// Makes a new file system. What the disk had is lost, as soon as this has begun.
pub fn format<D: Disk>(disk: &mut D, how: &Format) -> Result<(), Error> {
    let blocks = disk.blocks().min(u64::from(u32::MAX) - 1);
    let nodes = how.nodes.unwrap_or(blocks / 4).max(16);
    let log = how.log.unwrap_or((blocks / 16).clamp(32, 1024));
    let geometry = Geometry::new(how.id, blocks, nodes, log).ok_or(Error::Size)?;

    // Until all is there, nothing is: neither the former file system, nor half of the new one.
    let none = Block::ZERO;
    disk.write(&[(0, &none), (1, &none)])?;
    disk.flush()?;

    let mut written = vec![Block::ZERO; TOGETHER as usize];
    let mut at = geometry.map;
    while at < geometry.data {
        let some = (geometry.data - at).min(TOGETHER);
        let mut requests: Vec<(u64, &Block)> = Vec::with_capacity(some as usize);
        for (home, block) in (at..at + some).zip(&mut written) {
            first_of(&geometry, home, block, how.now);
            geometry.seal(block, home);
            requests.push((home, block));
        }
        disk.write(&requests)?;
        at += some;
    }
    // Records of a former log with the same number would count.
    let zeros = vec![(0, &none); TOGETHER as usize];
    let mut at = LOG;
    while at < geometry.map {
        let homes = (at..geometry.map).zip(&zeros);
        let requests: Vec<(u64, &Block)> = homes.map(|(home, zero)| (home, zero.1)).collect();
        disk.write(&requests)?;
        at += requests.len() as u64;
    }
    disk.flush()?;

    let mut block = Block::ZERO;
    for generation in [1, 2] {
        let superblock = Super {
            geometry,
            generation,
            sequence: 1,
        };
        superblock.write(&mut block);
        disk.write(&[(superblock.home(), &block)])?;
    }
    disk.flush()?;
    Ok(())
}

/// What stands in a block of the maps or of the table, first.
fn first_of(geometry: &Geometry, home: u64, block: &mut Block, now: u64) {
    if home < geometry.node_map {
        let which = home - geometry.map;
        begin(block, home, Sort::Map, which, 0);
        // What is no block of data is taken, and so is what is behind the disk's end.
        let first = which * MAP_BITS;
        for bit in 0..MAP_BITS {
            if !(geometry.data..geometry.blocks).contains(&(first + bit))
                && let Some(byte) = block.0.get_mut(HEAD + (bit / 8) as usize)
            {
                *byte |= 1 << (bit % 8);
            }
        }
    } else if home < geometry.table {
        let which = home - geometry.node_map;
        begin(block, home, Sort::NodeMap, which, 0);
        let root = u64::from(ROOT);
        if root / NODE_MAP_PLACES == which {
            let at = HEAD + (root % NODE_MAP_PLACES / 4) as usize;
            let bits = (Use::Taken as u8) << (2 * (root % 4));
            set(&mut block.0, at, &[bits]);
        }
    } else {
        let which = home - geometry.table;
        begin(block, home, Sort::Nodes, which, 0);
        if u64::from(ROOT) / NODES == which {
            let mut root = Node::new(ROOT, 1, Kind::Folder, 0o755, now);
            root.parent = root.number();
            let (_, _, place) = geometry.node(ROOT);
            set(&mut block.0, place, &root.write());
        }
    }
}
