//! The files that have numbers here: a bounded table. A number is never given again, so that who
//! keeps one for too long hears that it is stale, and never meets another file.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Kind;

use crate::attributes::{Attributes, Handle, Stamp};
use crate::procedures::Verifier;
use crate::retained::Retained;

/// Files at most.
pub const FILES: usize = 4096;

/// Of those, held at most; the others are forgotten when there is no room.
pub const HELD: usize = 1024;

/// Milliseconds that attributes are believed without asking.
pub const FRESH: u64 = 3000;

/// Where the listing of a folder is, so that one that does not end is found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Of the cookies.
    pub verifier: Verifier,
    /// The last cookie that was given.
    pub cookie: u64,
    /// Entries that were given since the beginning.
    pub count: u32,
}

/// A file.
#[derive(Clone, Debug)]
pub struct Node {
    /// What the server calls it.
    pub handle: Handle,
    /// What it is, from the first to the last.
    pub kind: Kind,
    /// How often it is held.
    pub holds: u32,
    /// Grows whenever its bytes change.
    pub version: u64,
    /// What the server said, and when.
    pub attributes: Option<(Attributes, u64)>,
    /// What the bytes in the cache are of.
    pub stamp: Option<Stamp>,
    /// Bytes that the server may still lose.
    pub retained: Retained,
    /// What went wrong when nobody was there to hear it.
    pub failed: Option<Errno>,
    /// Its name by another one, to be removed when nobody holds it.
    pub removed: Option<(Handle, Vec<u8>)>,
    /// Of a listing.
    pub progress: Progress,
    is_gone: bool,
    used: u64,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Table {
    nodes: BTreeMap<u64, Node>,
    numbers: BTreeMap<Handle, u64>,
    last: u64,
    clock: u64,
    held: usize,
}

impl Table {
    /// The number of a file, a new one if it has none.
    pub fn enter(&mut self, handle: Handle, kind: Kind) -> u64 {
        self.clock += 1;
        if let Some(&number) = self.numbers.get(&handle)
            && let Some(node) = self.nodes.get_mut(&number)
        {
            if node.kind == kind {
                node.used = self.clock;
                return number;
            }
            // The server gave the handle away: what was known by it is no more.
            node.is_gone = true;
            self.numbers.remove(&handle);
        }
        if self.nodes.len() >= FILES {
            self.forget();
        }
        self.last += 1;
        let node = Node {
            handle,
            kind,
            holds: 0,
            version: self.clock,
            attributes: None,
            stamp: None,
            retained: Retained::default(),
            failed: None,
            removed: None,
            progress: Progress::default(),
            is_gone: false,
            used: self.clock,
        };
        self.nodes.insert(self.last, node);
        self.numbers.insert(handle, self.last);
        self.last
    }

    /// Forgets the half that was not used for longest, of those that nobody holds.
    fn forget(&mut self) {
        let idle = |node: &Node| node.holds == 0;
        let mut times: Vec<u64> = self
            .nodes
            .values()
            .filter(|n| idle(n))
            .map(|n| n.used)
            .collect();
        times.sort_unstable();
        let Some(&median) = times.get(times.len() / 2) else {
            return;
        };
        let numbers = &mut self.numbers;
        self.nodes.retain(|number, node| {
            let stays = !idle(node) || node.used > median;
            if !stays && numbers.get(&node.handle) == Some(number) {
                numbers.remove(&node.handle);
            }
            stays
        });
    }

    /// A file by its number.
    pub fn node(&mut self, number: u64) -> Result<&mut Node, Errno> {
        self.clock += 1;
        let node = self.nodes.get_mut(&number).ok_or(errno::STALE)?;
        node.used = self.clock;
        if node.is_gone {
            return Err(errno::STALE);
        }
        Ok(node)
    }

    /// A file that is to be a folder.
    pub fn folder(&mut self, number: u64) -> Result<Handle, Errno> {
        let node = self.node(number)?;
        match node.kind {
            Kind::Folder => Ok(node.handle),
            _ => Err(errno::NOTDIR),
        }
    }

    /// A file that is to have bytes.
    pub fn file(&mut self, number: u64) -> Result<&mut Node, Errno> {
        let node = self.node(number)?;
        match node.kind {
            Kind::File => Ok(node),
            Kind::Folder => Err(errno::ISDIR),
            Kind::Link => Err(errno::INVAL),
        }
    }

    /// The number of a handle, if it has one.
    pub fn number(&self, handle: &Handle) -> Option<u64> {
        self.numbers.get(handle).copied()
    }

    /// Holds a file once more.
    pub fn hold(&mut self, number: u64) -> Result<(), Errno> {
        let held = self.held;
        let node = self.node(number)?;
        if node.holds == 0 {
            if held >= HELD {
                return Err(errno::NFILE);
            }
            node.holds = 1;
            self.held += 1;
        } else {
            node.holds = node.holds.checked_add(1).ok_or(errno::NFILE)?;
        }
        Ok(())
    }

    /// Holds a file once less; what is left of it when nobody holds it any more.
    pub fn release(&mut self, number: u64) -> Option<&mut Node> {
        let node = self.nodes.get_mut(&number)?;
        node.holds = node.holds.checked_sub(1)?;
        if node.holds > 0 {
            return None;
        }
        self.held -= 1;
        Some(node)
    }

    /// Files with bytes that the server may lose.
    pub fn unsafe_files(&self) -> Vec<u64> {
        let retained = self.nodes.iter().filter(|(_, n)| !n.retained.is_empty());
        retained.map(|(&number, _)| number).collect()
    }

    /// Memory that retained writes of all files take.
    #[cfg(test)]
    pub fn retained(&self) -> usize {
        assert!(self.nodes.len() <= FILES && self.numbers.len() <= self.nodes.len());
        self.nodes.values().map(|node| node.retained.size()).sum()
    }

    /// The server has said what a file is like. `ours`: the stamp before a change that was our
    /// own, which leaves the bytes in the cache as they are. True: they have to be forgotten.
    pub fn note(
        &mut self,
        number: u64,
        attributes: Attributes,
        ours: Option<Stamp>,
        now: u64,
    ) -> Result<bool, Errno> {
        self.clock += 1;
        let clock = self.clock;
        let node = self.node(number)?;
        if attributes.kind != Some(node.kind) {
            node.is_gone = true;
            let handle = node.handle;
            self.numbers.remove(&handle);
            return Err(errno::STALE);
        }
        let stamp = attributes.stamp();
        let is_new = node.stamp != Some(stamp);
        if is_new {
            node.version = clock;
        }
        let is_kept = !is_new || (ours.is_some() && ours == node.stamp);
        node.stamp = Some(stamp);
        node.attributes = Some((attributes, now));
        Ok(!is_kept)
    }
}
