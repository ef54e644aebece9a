//! The file system as its users know it: [`Files`].

use postern_exos_abi::errno::Errno;
use postern_exos_abi::file::{Entry, Files, Kind, Space, Status};

use crate::disk::Disk;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::nodes::Node;
use crate::owner::Owner;
use crate::policy::Policy;

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// Does what somebody asks for.
    #[inline]
    fn answer<T>(&mut self, what: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Errno> {
        self.nodes.shrink();
        let result = what(self);
        self.say(result)
    }

    /// Changes what is known of a file besides its bytes.
    fn change_node(&mut self, number: u64, change: impl Fn(&mut Node)) -> Result<(), Error> {
        self.slot(number)?;
        let now = self.owner.now();
        self.act(|files| {
            let slot = files.slot(number)?;
            files.transaction.touched.push(number as u32);
            let node = &mut files.nodes.slots[slot];
            change(node);
            node.changed = now;
            files.store(slot)
        })
    }
}

impl<D: Disk, P: Policy, O: Owner> Files for FileSystem<'_, D, P, O> {
    fn root(&self) -> u64 {
        self.root_number()
    }

    #[inline]
    fn look_up(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        self.answer(|files| files.find_name(folder, name))
    }

    #[inline]
    fn status(&mut self, node: u64) -> Result<Status, Errno> {
        self.answer(|files| files.status_of(node))
    }

    #[inline]
    fn read(&mut self, node: u64, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        self.answer(|files| files.read_bytes(node, offset, to))
    }

    fn write(&mut self, node: u64, offset: u64, from: &[u8]) -> Result<usize, Errno> {
        self.answer(|files| files.write_bytes(node, offset, from))
    }

    fn create(
        &mut self,
        folder: u64,
        name: &[u8],
        kind: Kind,
        mode: u32,
        target: &[u8],
    ) -> Result<u64, Errno> {
        self.answer(|files| files.make(folder, name, kind, mode, target))
    }

    fn link(&mut self, node: u64, folder: u64, name: &[u8]) -> Result<(), Errno> {
        self.answer(|files| files.add_name(node, folder, name))
    }

    fn remove(&mut self, folder: u64, name: &[u8], is_folder: bool) -> Result<(), Errno> {
        self.answer(|files| files.remove_name(folder, name, is_folder))
    }

    fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8])) -> Result<(), Errno> {
        self.answer(|files| files.change_name(from, to))
    }

    fn set_length(&mut self, node: u64, length: u64) -> Result<(), Errno> {
        self.answer(|files| files.set_size(node, length))
    }

    fn set_mode(&mut self, node: u64, mode: u32) -> Result<(), Errno> {
        self.answer(|files| files.change_node(node, |node| node.mode = (mode & 0o777) as u16))
    }

    fn set_modified(&mut self, node: u64, time: u64) -> Result<(), Errno> {
        self.answer(|files| files.change_node(node, |node| node.modified = time))
    }

    fn target(&mut self, node: u64, to: &mut [u8]) -> Result<usize, Errno> {
        self.answer(|files| files.target_of(node, to))
    }

    fn list(
        &mut self,
        folder: u64,
        from: u64,
        each: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno> {
        self.answer(|files| files.each_entry(folder, from, each))
    }

    fn synchronise(&mut self, node: Option<u64>) -> Result<(), Errno> {
        self.answer(|files| match node {
            Some(number) => {
                files.slot(number)?;
                files.synchronise_one(number as u32)
            }
            None => files.synchronise_all(),
        })
    }

    fn space(&mut self) -> Result<Space, Errno> {
        Ok(Space {
            blocks: self.geometry.blocks - self.geometry.data,
            free: self.room.counts.blocks,
            files: self.geometry.nodes,
            free_files: self.room.counts.nodes,
        })
    }

    fn hold(&mut self, node: u64) -> Result<(), Errno> {
        self.answer(|files| files.hold_node(node))
    }

    fn release(&mut self, node: u64) {
        // What cannot be freed now is freed by a mount; the error is remembered.
        let _ = self.answer(|files| files.release_node(node));
    }

    #[inline]
    fn page(&mut self, node: u64, index: u64) -> Result<(u32, u64), Errno> {
        self.answer(|files| files.show_block(node, index))
    }
}
