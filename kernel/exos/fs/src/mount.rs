//! How a file system begins, and how it ends.

use alloc::boxed::Box;

use postern_exos_abi::errno::Errno;
use postern_exos_abi::file::Kind;

use crate::cache::Cache;
use crate::disk::{Block, Disk};
use crate::error::Error;
use crate::file_system::{FRAMES, FileSystem};
use crate::layout::{Sort, Super};
use crate::log;
use crate::names::Names;
use crate::nodes::Nodes;
use crate::owner::Owner;
use crate::policy::Policy;
use crate::room::Room;
use crate::transaction::Transaction;

/// Nanoseconds after which changes are brought to the disk in quiet times.
const OLD: u64 = 5_000_000_000;

impl<'f, D: Disk, P: Policy, O: Owner> FileSystem<'f, D, P, O> {
    /// Mounts what is on a disk: replays its log, and removes files that nobody has any more.
    /// [`Error::NoFileSystem`] says that the disk is to be formatted first. At least [`FRAMES`]
    /// frames are needed; what they had before is overwritten.
    pub fn mount(disk: D, frames: &'f mut [Block], policy: P, owner: O) -> Result<Self, Error> {
        let (files, damage) = FileSystem::mount_or_read(disk, frames, policy, owner)?;
        damage.map_or(Ok(files), Err)
    }

    /// The same, but a disk that is damaged is mounted to be read, if it has a root still: its
    /// files are not changed then. The damage that was found is said; there may be more.
    pub fn mount_or_read(
        mut disk: D,
        frames: &'f mut [Block],
        policy: P,
        owner: O,
    ) -> Result<(Self, Option<Error>), Error> {
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
            told_error: None,
        };
        files.transaction.has_records = found.transactions > 0;
        let counted = match found.damage {
            Some(block) => Err(Error::Corrupt(block, Sort::Record.name())),
            None => files.count_room(),
        };
        files.transaction.is_broken = counted.is_err();
        let root = files.root_number();
        if files.status_of(root).map(|status| status.kind) != Ok(Kind::Folder) {
            let table = files.geometry.node(root as u32).0;
            return Err(Error::Corrupt(table, Sort::Nodes.name()));
        }
        if counted.is_ok() {
            files.remove_orphans();
        }
        Ok((files, counted.err()))
    }

    /// Finishes what was not finished when the power went. Orphans that cannot be read stay.
    fn remove_orphans(&mut self) {
        for index in core::mem::take(&mut self.room.orphans) {
            if let Err(error) = self.finish(index) {
                self.last_error = Some(error);
            }
        }
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

    /// Brings everything to the disk, and gives the disk back. The frames are free, and lent ones
    /// were taken back.
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
}

/// Whether a disk has a file system; an error says why not.
pub fn is_there<D: Disk>(disk: &mut D) -> Result<(), Error> {
    read_super(disk).map(drop)
}

/// The superblock that counts.
pub fn read_super<D: Disk>(disk: &mut D) -> Result<Super, Error> {
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
