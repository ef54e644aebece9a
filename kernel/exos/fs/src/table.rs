//! The table of nodes: how nodes come into memory and are written through.

use postern_exos_abi::errno;
use postern_exos_abi::file::{Kind, Status};

use crate::disk::Disk;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::{NODE, ROOT, Sort, set, word32};
use crate::nodes::{Node, number};
use crate::owner::Owner;
use crate::policy::Policy;
use crate::room::Use;

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
            let is_it = node.generation == (number >> 32) as u32;
            if node.is_valid && is_it && (node.links > 0 || node.held > 0) {
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
        let slot = self.nodes.find(node.index);
        let is_held = slot.is_some_and(|slot| self.nodes.slots[slot].held > 0);
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
        Ok(self
            .nodes
            .insert(Node::new(index, generation, kind, mode, now)))
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
