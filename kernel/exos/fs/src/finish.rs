//! The end of files: what nobody has any more is freed, in as many operations as it takes.
//!
//! A node whose blocks are not all freed yet, or which has no names and is open still, is an
//! *orphan* in the map of nodes, so that a mount after a power cut goes on with it.

use postern_exos_abi::errno;
use postern_exos_abi::file::Kind;

use crate::disk::{BLOCK, Disk};
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::Sort;
use crate::owner::Owner;
use crate::policy::Policy;
use crate::room::Use;

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// A file has one name less. Says whether [`FileSystem::finish`] is to be called for it.
    pub(crate) fn lose_name(&mut self, slot: usize, now: u64) -> Result<bool, Error> {
        let node = &mut self.nodes.slots[slot];
        let table = self.geometry.node(node.index).0;
        let corrupt = Error::Corrupt(table, Sort::Nodes.name());
        node.links = node.links.checked_sub(1).ok_or(corrupt)?;
        node.changed = now;
        let (index, links, held) = (node.index, node.links, node.held);
        if links > 0 {
            self.store(slot)?;
            return Ok(false);
        }
        if held > 0 {
            self.store(slot)?;
            self.set_use(index, Use::Orphan)?;
            return Ok(false);
        }
        if self.trim(slot, 0)? {
            self.free_node(slot)?;
            return Ok(false);
        }
        self.set_use(index, Use::Orphan)?;
        Ok(true)
    }

    /// Frees what is behind a file's end; all of it, and its node, if nobody has it any more.
    pub(crate) fn finish(&mut self, index: u32) -> Result<(), Error> {
        loop {
            let is_done = self.act(|files| {
                let slot = files.slot_of_index(index)?;
                let slot = slot.ok_or(Error::Refused(errno::STALE))?;
                let node = files.nodes.slots[slot];
                let is_gone = node.links == 0 && node.held == 0;
                let from = match node.kind {
                    _ if is_gone => 0,
                    Kind::Link => 1,
                    _ => node.size.div_ceil(BLOCK as u64),
                };
                let is_done = files.trim(slot, from)?;
                if is_done && is_gone {
                    files.free_node(slot)?;
                } else if is_done && node.links > 0 {
                    files.set_use(index, Use::Taken)?;
                }
                Ok(is_done)
            })?;
            if is_done {
                return Ok(());
            }
        }
    }

    /// Somebody has a file open.
    pub(crate) fn hold_node(&mut self, number: u64) -> Result<(), Error> {
        let slot = self.slot(number)?;
        let held = &mut self.nodes.slots[slot].held;
        *held = held.checked_add(1).ok_or(Error::Refused(errno::NFILE))?;
        Ok(())
    }

    /// Somebody has it open no longer.
    pub(crate) fn release_node(&mut self, number: u64) -> Result<(), Error> {
        let index = number as u32;
        let Some(slot) = self.nodes.find(index) else {
            return Ok(());
        };
        let node = &mut self.nodes.slots[slot];
        if node.held == 0 || node.number() != number {
            return Ok(());
        }
        node.held -= 1;
        if node.held > 0 {
            return Ok(());
        }
        // What an operation that failed left of it here is not what the table has.
        let is_gone = match self.slot_of_index(index)? {
            Some(slot) => self.nodes.slots[slot].links == 0,
            None => false,
        };
        if is_gone { self.finish(index) } else { Ok(()) }
    }
}
