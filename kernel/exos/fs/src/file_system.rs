//! The file system, mounted.

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::{Entry, Files, Kind, Space, Status};

use crate::disk::{Block, Disk};
use crate::error::Error;
use crate::owner::Owner;
use crate::policy::Policy;

/// How a file system is made. Numbers that are 0 are chosen by the size of the disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Format {
    /// Blocks that it takes; all that the disk has.
    pub blocks: u64,
    /// Files that there can be; one for four blocks.
    pub files: u64,
    /// Blocks of the log; one in 64, from 32 to 1,024.
    pub log: u64,
    /// A number that tells it from what was on the disk before: the time, for example.
    pub id: u64,
}

/// Makes an empty file system on a disk. What was there is lost.
pub fn format<D: Disk>(disk: &mut D, how: &Format) -> Result<(), Error> {
    let _ = (disk, how);
    Ok(())
}

/// A mounted file system. See [`Files`] for what it does.
#[derive(Debug)]
pub struct FileSystem<'f, D, P, O> {
    disk: D,
    frames: &'f mut [Block],
    policy: P,
    owner: O,
}

impl<'f, D: Disk, P: Policy, O: Owner> FileSystem<'f, D, P, O> {
    /// Mounts what is on a disk: replays its log, and removes files that nobody has any more.
    /// [`Error::NoFileSystem`] says that the disk is to be formatted first. At least
    /// [`FRAMES`](crate::FRAMES) frames are needed; what they had before is overwritten.
    pub fn mount(disk: D, frames: &'f mut [Block], policy: P, owner: O) -> Result<Self, Error> {
        Ok(FileSystem {
            disk,
            frames,
            policy,
            owner,
        })
    }

    /// To be called in quiet times: what was changed some seconds ago is brought to the disk.
    pub fn idle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// The blocks of a file that hold these bytes stay in the cache until [`FileSystem::unpin`] is
    /// called for them as often; at most half of the frames can be pinned ([`errno::NOMEM`]).
    pub fn pin(&mut self, node: u64, offset: u64, length: u64) -> Result<(), Errno> {
        let _ = (node, offset, length);
        Err(errno::NOSYS)
    }

    /// The opposite of [`FileSystem::pin`].
    pub fn unpin(&mut self, node: u64, offset: u64, length: u64) {
        let _ = (node, offset, length);
    }

    /// The policy, to be asked or changed.
    pub fn policy(&mut self) -> &mut P {
        &mut self.policy
    }

    /// The owner of the frames.
    pub fn owner(&mut self) -> &mut O {
        &mut self.owner
    }

    /// The last error that was no refusal, in words: what a block had wrong, for example.
    pub fn last_error(&self) -> Option<Error> {
        None
    }

    /// Brings everything to the disk, and gives the disk and the frames back.
    pub fn unmount(self) -> Result<(D, &'f mut [Block]), Error> {
        Ok((self.disk, self.frames))
    }
}

impl<D: Disk, P: Policy, O: Owner> Files for FileSystem<'_, D, P, O> {
    fn root(&self) -> u64 {
        1
    }

    fn look_up(&mut self, _folder: u64, _name: &[u8]) -> Result<u64, Errno> {
        Err(errno::NOSYS)
    }

    fn status(&mut self, _node: u64) -> Result<Status, Errno> {
        Err(errno::NOSYS)
    }

    fn read(&mut self, _node: u64, _offset: u64, _to: &mut [u8]) -> Result<usize, Errno> {
        Err(errno::NOSYS)
    }

    fn write(&mut self, _node: u64, _offset: u64, _from: &[u8]) -> Result<usize, Errno> {
        Err(errno::NOSYS)
    }

    fn create(
        &mut self,
        _folder: u64,
        _name: &[u8],
        _kind: Kind,
        _mode: u32,
        _target: &[u8],
    ) -> Result<u64, Errno> {
        Err(errno::NOSYS)
    }

    fn link(&mut self, _node: u64, _folder: u64, _name: &[u8]) -> Result<(), Errno> {
        Err(errno::NOSYS)
    }

    fn remove(&mut self, _folder: u64, _name: &[u8], _is_folder: bool) -> Result<(), Errno> {
        Err(errno::NOSYS)
    }

    fn rename(&mut self, _from: (u64, &[u8]), _to: (u64, &[u8])) -> Result<(), Errno> {
        Err(errno::NOSYS)
    }

    fn set_length(&mut self, _node: u64, _length: u64) -> Result<(), Errno> {
        Err(errno::NOSYS)
    }

    fn set_mode(&mut self, _node: u64, _mode: u32) -> Result<(), Errno> {
        Err(errno::NOSYS)
    }

    fn set_modified(&mut self, _node: u64, _time: u64) -> Result<(), Errno> {
        Err(errno::NOSYS)
    }

    fn target(&mut self, _node: u64, _to: &mut [u8]) -> Result<usize, Errno> {
        Err(errno::NOSYS)
    }

    fn list(
        &mut self,
        _folder: u64,
        _from: u64,
        _each: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno> {
        Err(errno::NOSYS)
    }

    fn synchronise(&mut self, _node: Option<u64>) -> Result<(), Errno> {
        Ok(())
    }

    fn space(&mut self) -> Result<Space, Errno> {
        Ok(Space::default())
    }

    fn hold(&mut self, _node: u64) -> Result<(), Errno> {
        Err(errno::NOSYS)
    }

    fn release(&mut self, _node: u64) {}
}
