//! Files by their numbers. A place is used again, under another number.

use alloc::boxed::Box;
use alloc::vec::Vec;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Kind;

use crate::bytes::Bytes;
use crate::folder::Folder;

/// Files at most.
pub const NODES: usize = 1 << 16;

/// What a file has.
#[derive(Debug)]
pub enum Content {
    /// Bytes.
    File(Bytes),
    /// Names.
    Folder(Folder),
    /// Another name.
    Link(Box<[u8]>),
}

/// A file.
#[derive(Debug)]
pub struct Node {
    /// What it has.
    pub content: Content,
    /// Permissions.
    pub mode: u32,
    /// Names that it has.
    pub names: u32,
    /// How often it is held.
    pub holds: u32,
    /// When its bytes changed.
    pub modified: u64,
    /// When anything did.
    pub changed: u64,
    /// How often its bytes did.
    pub version: u64,
}

impl Node {
    /// Its bytes have changed.
    pub fn touch(&mut self, now: u64) {
        (self.modified, self.changed) = (now, now);
        self.version += 1;
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        match self.content {
            Content::File(_) => Kind::File,
            Content::Folder(_) => Kind::Folder,
            Content::Link(_) => Kind::Link,
        }
    }
}

/// All of them. A number is a place and how often that was used.
#[derive(Debug, Default)]
pub struct Nodes {
    all: Vec<(u32, Option<Node>)>,
    free: Vec<u32>,
}

fn place(number: u64) -> (usize, u32) {
    ((number as u32) as usize, (number >> 32) as u32)
}

impl Nodes {
    /// Files that there can be, and those that there are not.
    pub fn space(&self) -> (u64, u64) {
        let used = self.all.len() - self.free.len();
        (NODES as u64, (NODES - used) as u64)
    }

    /// A new one's number.
    pub fn add(&mut self, node: Node) -> Result<u64, Errno> {
        if let Some(place) = self.free.pop()
            && let Some((uses, free)) = self.all.get_mut(place as usize)
        {
            *uses += 1;
            *free = Some(node);
            return Ok(u64::from(place) | u64::from(*uses) << 32);
        }
        if self.all.len() >= NODES {
            return Err(errno::NOSPC);
        }
        self.all.push((1, Some(node)));
        Ok((self.all.len() as u64 - 1) | 1 << 32)
    }

    /// That of a number.
    pub fn get(&self, number: u64) -> Result<&Node, Errno> {
        let (at, uses) = place(number);
        let found = self.all.get(at).filter(|found| found.0 == uses);
        found.and_then(|found| found.1.as_ref()).ok_or(errno::STALE)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, number: u64) -> Result<&mut Node, Errno> {
        let (at, uses) = place(number);
        let found = self.all.get_mut(at).filter(|found| found.0 == uses);
        found.and_then(|found| found.1.as_mut()).ok_or(errno::STALE)
    }

    /// Takes one away.
    pub fn remove(&mut self, number: u64) -> Option<Node> {
        let (at, uses) = place(number);
        let found = self.all.get_mut(at).filter(|found| found.0 == uses)?;
        let node = found.1.take()?;
        // A number is never used twice, so a place is used so often at most.
        if uses < u32::MAX {
            self.free.push(at as u32);
        }
        Some(node)
    }
}
