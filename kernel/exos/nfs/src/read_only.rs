//! Files that are only read, whatever they could be.

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::{Entry, Files, Kind, Space, Status};

/// Those files, of which nothing is changed.
#[derive(Debug)]
pub struct ReadOnly<'f, F>(pub &'f mut F);

impl<F: Files> Files for ReadOnly<'_, F> {
    fn root(&self) -> u64 {
        self.0.root()
    }

    fn look_up(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        self.0.look_up(folder, name)
    }

    fn status(&mut self, node: u64) -> Result<Status, Errno> {
        self.0.status(node)
    }

    fn read(&mut self, node: u64, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        self.0.read(node, offset, to)
    }

    fn write(&mut self, _: u64, _: u64, _: &[u8]) -> Result<usize, Errno> {
        Err(errno::ROFS)
    }

    fn create(&mut self, _: u64, _: &[u8], _: Kind, _: u32, _: &[u8]) -> Result<u64, Errno> {
        Err(errno::ROFS)
    }

    fn link(&mut self, _: u64, _: u64, _: &[u8]) -> Result<(), Errno> {
        Err(errno::ROFS)
    }

    fn remove(&mut self, _: u64, _: &[u8], _: bool) -> Result<(), Errno> {
        Err(errno::ROFS)
    }

    fn rename(&mut self, _: (u64, &[u8]), _: (u64, &[u8])) -> Result<(), Errno> {
        Err(errno::ROFS)
    }

    fn set_length(&mut self, _: u64, _: u64) -> Result<(), Errno> {
        Err(errno::ROFS)
    }

    fn set_mode(&mut self, _: u64, _: u32) -> Result<(), Errno> {
        Err(errno::ROFS)
    }

    fn set_modified(&mut self, _: u64, _: u64) -> Result<(), Errno> {
        Err(errno::ROFS)
    }

    fn target(&mut self, node: u64, to: &mut [u8]) -> Result<usize, Errno> {
        self.0.target(node, to)
    }

    fn list(
        &mut self,
        folder: u64,
        from: u64,
        each: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno> {
        self.0.list(folder, from, each)
    }

    fn synchronise(&mut self, _: Option<u64>) -> Result<(), Errno> {
        Ok(())
    }

    fn space(&mut self) -> Result<Space, Errno> {
        self.0.space()
    }

    fn hold(&mut self, node: u64) -> Result<(), Errno> {
        self.0.hold(node)
    }

    fn share(&mut self, node: u64) -> Result<(), Errno> {
        self.0.share(node)
    }

    fn release(&mut self, node: u64) {
        self.0.release(node);
    }
}
