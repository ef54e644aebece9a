//! The file system, mounted: its parts, how it begins and how it ends.

use alloc::boxed::Box;

use postern_exos_abi::errno::Errno;

use crate::cache::Cache;
use crate::disk::{Block, Disk};
use crate::error::Error;
use crate::layout::{Geometry, Super};
use crate::log;
use crate::names::Names;
use crate::nodes::Nodes;
use crate::owner::Owner;
use crate::policy::Policy;
use crate::space::Room;
use crate::transaction::Transaction;

/// Frames that a cache has at least.
pub const FRAMES: usize = 128;
/// Nanoseconds after which changes are brought to the disk in quiet times.
const OLD: u64 = 5_000_000_000;

/// A mounted file system. See [`Files`](postern_exos_abi::file::Files) for what it does.
#[derive(Debug)]
pub struct FileSystem<'f, D, P, O> {
    pub(crate) disk: D,
    pub(crate) owner: O,
    pub(crate) geometry: Geometry,
    pub(crate) cache: Cache<'f, P>,
    pub(crate) transaction: Transaction,
    pub(crate) room: Room,
    pub(crate) nodes: Nodes,
    pub(crate) names: Names,
    pub(crate) last_error: Option<Error>,
}

impl<'f, D: Disk, P: Policy, O: Owner> FileSystem<'f, D, P, O> {
    /// Mounts what is on a disk: replays its log, and removes files that nobody has any more.
    /// [`Error::NoFileSystem`] says that the disk is to be formatted first. At least [`FRAMES`] frames
    /// are needed; what they had before is overwritten.
    pub fn mount(
        mut disk: D,
        frames: &'f mut [Block],
        policy: P,
        owner: O,
    ) -> Result<Self, Error> {
        if frames.len() < FRAMES || u32::try_from(frames.len()).is_err() {
            return Err(Error::Frames);
        }
        let superblock = read_super(&mut disk)?;
        let found = log::read(&mut disk, &superblock)?;
        log::replay(&mut disk, &found)?;
        let mut files = FileSystem {
            disk,
            owner,
            geometry: superblock.geometry,
            transaction: Transaction::new(&superblock, frames.len()),
            cache: Cache::new(frames, policy),
            room: Room::default(),
            nodes: Nodes::new(),
            names: Names::new(),
            last_error: None,
        };
        files.count_room()?;
        files.status_of(files.root_number())?;
        files.remove_orphans();
        Ok(files)
    }

    /// To be called in quiet times: what was changed some seconds ago is brought to the disk.
    pub fn idle(&mut self) -> Result<(), Errno> {
        let Some(since) = self.transaction.since else {
            return Ok(());
        };
        if self.owner.now().saturating_sub(since) < OLD {
            return Ok(());
        }
        let result = self.synchronise_all();
        self.say(result)
    }

    /// The policy, to be asked or changed.
    pub fn policy(&mut self) -> &mut P {
        &mut self.cache.policy
    }

    /// The owner of the frames.
    pub fn owner(&mut self) -> &mut O {
        &mut self.owner
    }

    /// The last error that was no refusal, for whoever wants to know more than an error number.
    pub fn last_error(&self) -> Option<Error> {
        self.last_error
    }

    /// Brings everything to the disk, and gives the disk back. The frames are free, and lent ones were
    /// taken back.
    pub fn unmount(mut self) -> Result<D, Error> {
        let result = self.close();
        self.take_all_back();
        result.map(|()| self.disk)
    }

    /// As if the power went: gives the disk back as it is.
    pub fn abandon(mut self) -> D {
        self.take_all_back();
        self.disk
    }

    fn take_all_back(&mut self) {
        for (frame, bytes) in self.cache.frames.iter_mut().zip(self.cache.bytes.iter()) {
            if frame.loan.take().is_some() {
                self.owner.take_back(bytes);
            }
        }
    }

    /// An error as callers get it; what is no refusal is remembered.
    pub(crate) fn say<T>(&mut self, result: Result<T, Error>) -> Result<T, Errno> {
        result.map_err(|error| {
            if !matches!(error, Error::Refused(_)) {
                self.last_error = Some(error);
            }
            error.errno()
        })
    }
}

/// The superblock that counts.
pub(crate) fn read_super<D: Disk>(disk: &mut D) -> Result<Super, Error> {
    if disk.blocks() < 2 {
        return Err(Error::NoFileSystem);
    }
    let mut blocks = [Box::new(Block::ZERO), Box::new(Block::ZERO)];
    let [first, second] = &mut blocks;
    // Each by itself: one that the disk cannot read any more is what the other is for.
    let read = [disk.read(&mut [(0, first)]), disk.read(&mut [(1, second)])];
    if let [Err(error), Err(_)] = read {
        return Err(error.into());
    }
    let [first, second] = &blocks;
    Super::choose([first, second], disk.blocks())
}
