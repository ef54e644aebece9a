//! A whole file system looked at: every inconsistency is found, and nothing is changed.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use postern_exos_abi::file::Kind;

use crate::disk::{BLOCK, Block, Disk};
use crate::error::Error;
use crate::folder::{check_name, walk};
use crate::hash;
use crate::layout::{
    BODY, DIRECT, Geometry, HEAD, MAP_BITS, NODE, NODE_MAP_PLACES, POINTERS, ROOT, Sort, word32,
};
use crate::log;
use crate::mount::read_super;
use crate::nodes::Node;
use crate::room::Use;

/// Problems that are told at most; a disk of noise has many.
const TOLD: usize = 1000;

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is wrong, a sentence each; empty, if nothing is.
    pub problems: Vec<String>,
    /// Files, folders and links that have names.
    pub files: u64,
    /// Blocks that they take.
    pub blocks: u64,
    /// Files that a mount will finish: their power went before that.
    pub orphans: u64,
    /// Transactions that the log has for a mount to replay.
    pub transactions: u64,
}

/// What is known of a node while others are looked at.
struct Known {
    node: Node,
    /// It may be being cut, or freed.
    is_orphan: bool,
    names: u32,
    /// A folder that has a name for it.
    folder: u64,
}

struct Check<'d, D> {
    disk: &'d mut D,
    geometry: Geometry,
    /// Where in the log a block's last image is.
    images: BTreeMap<u64, u64>,
    used: Vec<u8>,
    report: Report,
}

/// Checks a file system as a mount would find it, with what its log has. An error says that there
/// is none, or that the disk cannot be read.
pub fn check<D: Disk>(disk: &mut D) -> Result<Report, Error> {
    let superblock = read_super(disk)?;
    let found = log::read(disk, &superblock)?;
    let geometry = superblock.geometry;
    let damage = found.damage;
    let mut check = Check {
        disk,
        geometry,
        images: found.images,
        used: vec![0; (geometry.blocks as usize).div_ceil(8)],
        report: Report {
            transactions: found.transactions,
            ..Report::default()
        },
    };
    if let Some(block) = damage {
        check.say(format!(
            "block {block} has a later transaction than one that the log lacks"
        ));
    }
    let nodes = check.nodes()?;
    let nodes = check.trees(nodes)?;
    check.names(&nodes);
    check.map()?;
    Ok(check.report)
}

impl<D: Disk> Check<'_, D> {
    fn say(&mut self, problem: String) {
        if self.report.problems.len() < TOLD {
            self.report.problems.push(problem);
        }
    }

    /// A block of the file system's own; nothing, and a problem, if it is not as it should be.
    fn own(
        &mut self,
        block: u64,
        sort: Sort,
        owner: u64,
        level: u32,
    ) -> Result<Option<Box<Block>>, Error> {
        let mut bytes = Box::new(Block::ZERO);
        let at = self.images.get(&block).copied().unwrap_or(block);
        let result = self.disk.read(&mut [(at, &mut bytes)]);
        if result.is_ok() && self.geometry.is(&bytes, block, sort, owner, level) {
            return Ok(Some(bytes));
        }
        self.say(Error::Corrupt(block, sort.name()).to_string());
        Ok(None)
    }

    /// All nodes of the table, compared with the map of nodes.
    fn nodes(&mut self) -> Result<BTreeMap<u32, Known>, Error> {
        let geometry = self.geometry;
        let mut nodes = BTreeMap::new();
        let mut map: (u64, Option<Box<Block>>) = (u64::MAX, None);
        let mut table: (u64, Option<Box<Block>>) = (u64::MAX, None);
        for index in 1..=geometry.nodes as u32 {
            let which = u64::from(index) / NODE_MAP_PLACES;
            if map.0 != which {
                let block = geometry.node_map + which;
                map = (which, self.own(block, Sort::NodeMap, which, 0)?);
            }
            let (block, which, place) = geometry.node(index);
            if table.0 != block {
                table = (block, self.own(block, Sort::Nodes, u64::from(which), 0)?);
            }
            let (Some(map), Some(table)) = (&map.1, &table.1) else {
                continue;
            };
            let in_map = u64::from(index) % NODE_MAP_PLACES;
            let byte = map.0.get(HEAD + (in_map / 4) as usize).copied();
            let used = byte.unwrap_or_default() >> (2 * (in_map % 4)) & 3;
            let read = Node::read(table.0.get(place..place + NODE).unwrap_or_default(), index);
            let Ok(node) = read else {
                self.say(format!("node {index} cannot be one"));
                continue;
            };
            match (node, used) {
                (None, used) if used == Use::Free as u8 => {}
                (None, _) => self.say(format!("node {index} is taken, and empty")),
                (Some(node), used) => {
                    let is_well =
                        used == Use::Orphan as u8 || used == Use::Taken as u8 && node.links > 0;
                    if !is_well {
                        self.say(format!(
                            "node {index} has {} names, and is {used}",
                            node.links
                        ));
                    }
                    self.report.orphans += u64::from(used == Use::Orphan as u8);
                    let known = Known {
                        node,
                        is_orphan: used == Use::Orphan as u8,
                        names: 0,
                        folder: 0,
                    };
                    nodes.insert(index, known);
                }
            }
        }
        Ok(nodes)
    }

    /// A block has an owner. Says whether it may be looked into.
    fn take(&mut self, block: u32, of: u32) -> bool {
        if !self.geometry.is_data(block) {
            self.say(format!(
                "node {of} has block {block}, which is no block of data"
            ));
            return false;
        }
        let bit = 1 << (block % 8);
        let Some(byte) = self.used.get_mut(block as usize / 8) else {
            return false;
        };
        let is_new = *byte & bit == 0;
        *byte |= bit;
        if !is_new {
            self.say(format!("block {block} has two owners; one is node {of}"));
        }
        self.report.blocks += u64::from(is_new);
        is_new
    }

    /// The blocks of all nodes, and the entries of folders.
    fn trees(&mut self, mut nodes: BTreeMap<u32, Known>) -> Result<BTreeMap<u32, Known>, Error> {
        let indices: Vec<u32> = nodes.keys().copied().collect();
        let mut found: Vec<(u64, u64, Kind)> = Vec::new();
        for index in indices {
            let Some(known) = nodes.get(&index) else {
                continue;
            };
            self.tree(&known.node, known.is_orphan, &mut found)?;
        }
        for (folder, number, kind) in found {
            let known = nodes.get_mut(&(number as u32));
            match known.filter(|known| known.node.number() == number && known.node.kind == kind) {
                Some(known) => {
                    known.names = known.names.saturating_add(1);
                    known.folder = folder;
                }
                None => self.say(format!("an entry of folder {folder:#x} has no node")),
            }
        }
        Ok(nodes)
    }

    fn tree(
        &mut self,
        node: &Node,
        is_orphan: bool,
        found: &mut Vec<(u64, u64, Kind)>,
    ) -> Result<(), Error> {
        let index = node.index;
        let mut blocks = 0u64;
        let mut leaves: Vec<(u64, u32)> = Vec::new();
        if !node.is_short() {
            let mut first = 0;
            for (which, pointer) in node.pointers.into_iter().enumerate() {
                let level = (which as u64 + 1).saturating_sub(DIRECT) as u32;
                if pointer != 0 {
                    self.below(node, pointer, level, first, &mut blocks, &mut leaves)?;
                }
                first += POINTERS.pow(level);
            }
        }
        if blocks != u64::from(node.blocks) {
            self.say(format!(
                "node {index} has {blocks} blocks and says {}",
                node.blocks
            ));
        }
        let end = match node.kind {
            Kind::Link => 1,
            _ => node.size.div_ceil(BLOCK as u64),
        };
        // Of an orphan, a cut may be under way.
        let is_behind = leaves.iter().any(|(at, _)| *at >= end);
        if is_behind && !is_orphan {
            self.say(format!("node {index} has blocks behind its end"));
        }
        match node.kind {
            Kind::File => {}
            Kind::Folder if node.links > 0 => self.folder(node, &leaves, found)?,
            Kind::Folder => {}
            Kind::Link => {
                let is_well = node.is_short() && node.size > 0
                    || leaves.len() == 1 && node.size <= BODY as u64;
                if !is_well && node.links > 0 {
                    self.say(format!("link {index} has no target"));
                }
                for (_, block) in leaves {
                    self.own(u64::from(block), Sort::Target, node.number(), 0)?;
                }
            }
        }
        Ok(())
    }

    fn below(
        &mut self,
        node: &Node,
        block: u32,
        level: u32,
        first: u64,
        blocks: &mut u64,
        leaves: &mut Vec<(u64, u32)>,
    ) -> Result<(), Error> {
        *blocks += 1;
        if !self.take(block, node.index) {
            return Ok(());
        }
        if level == 0 {
            leaves.push((first, block));
            return Ok(());
        }
        let bytes = self.own(u64::from(block), Sort::Indirect, node.number(), level)?;
        let Some(bytes) = bytes else { return Ok(()) };
        for place in 0..POINTERS {
            let pointer = word32(&bytes.0, HEAD + 4 * place as usize);
            if pointer != 0 {
                let first = first + place * POINTERS.pow(level - 1);
                self.below(node, pointer, level - 1, first, blocks, leaves)?;
            }
        }
        Ok(())
    }

    fn folder(
        &mut self,
        node: &Node,
        leaves: &[(u64, u32)],
        found: &mut Vec<(u64, u64, Kind)>,
    ) -> Result<(), Error> {
        let (index, number) = (node.index, node.number());
        if !node.size.is_multiple_of(BLOCK as u64) || leaves.len() as u64 != node.size >> 12 {
            self.say(format!("folder {index} lacks blocks"));
        }
        let mut names = BTreeSet::new();
        let mut entries = 0u32;
        for (at, block) in leaves {
            let bytes = self.own(u64::from(*block), Sort::Folder, number, *at as u32)?;
            let Some(bytes) = bytes else { continue };
            for entry in walk(&bytes.0) {
                let Ok(entry) = entry else {
                    self.say(format!(
                        "block {block} of folder {index} has no whole entries"
                    ));
                    break;
                };
                if entry.node == 0 {
                    continue;
                }
                entries = entries.saturating_add(1);
                let is_name = check_name(entry.name).is_ok() && hash::name(entry.name) == entry.sum;
                match entry.kind {
                    Some(kind) if is_name => found.push((number, entry.node, kind)),
                    _ => self.say(format!("an entry of folder {index} is none")),
                }
                if !names.insert(entry.name.to_vec()) {
                    self.say(format!("folder {index} has a name twice"));
                }
            }
        }
        if entries != node.entries {
            self.say(format!(
                "folder {index} has {entries} entries and says {}",
                node.entries
            ));
        }
        Ok(())
    }

    /// Whether every file has as many names as it says, and can be found from the root.
    fn names(&mut self, nodes: &BTreeMap<u32, Known>) {
        let root = nodes.get(&ROOT).map(|known| &known.node);
        if root.is_none_or(|root| root.kind != Kind::Folder || root.generation != 1) {
            self.say("there is no root".to_string());
        }
        for (index, known) in nodes {
            let node = &known.node;
            let is_root = *index == ROOT;
            let names = known.names.saturating_add(u32::from(is_root));
            if names != node.links {
                self.say(format!(
                    "node {index} has {names} names and says {}",
                    node.links
                ));
            }
            self.report.files += u64::from(node.links > 0);
            if node.kind == Kind::Folder && node.links > 0 {
                let parent = if is_root { node.number() } else { known.folder };
                if node.parent != parent || node.links != 1 {
                    self.say(format!("folder {index} is not where it says"));
                }
            }
        }
        // Upwards, until the root or a folder that is known to be below it.
        let mut below: BTreeSet<u32> = BTreeSet::from([ROOT]);
        for (index, known) in nodes {
            if known.node.links == 0 {
                continue;
            }
            let mut way = Vec::new();
            let mut at = *index;
            while !below.contains(&at) && way.len() <= nodes.len() {
                way.push(at);
                match nodes.get(&at) {
                    Some(known) => at = known.folder as u32,
                    None => break,
                }
            }
            if below.contains(&at) {
                below.extend(way);
            } else {
                self.say(format!("node {index} is not below the root"));
            }
        }
    }

    /// Whether the map has exactly those blocks taken that somebody has.
    fn map(&mut self) -> Result<(), Error> {
        let geometry = self.geometry;
        for which in 0..geometry.maps {
            let block = geometry.map + which;
            let Some(bytes) = self.own(block, Sort::Map, which, 0)? else {
                continue;
            };
            for bit in 0..MAP_BITS {
                let number = which * MAP_BITS + bit;
                let byte = bytes.0.get(HEAD + (bit / 8) as usize).copied();
                let is_taken = byte.unwrap_or_default() >> (bit % 8) & 1 != 0;
                let is_data = (geometry.data..geometry.blocks).contains(&number);
                let used = self.used.get((number / 8) as usize).copied();
                let has_owner = used.unwrap_or_default() >> (number % 8) & 1 != 0;
                if is_taken != (has_owner || !is_data) {
                    let what = if is_taken { "taken" } else { "free" };
                    let owner = if has_owner { "an owner" } else { "none" };
                    self.say(format!("block {number} is {what}, and has {owner}"));
                }
            }
        }
        Ok(())
    }
}
