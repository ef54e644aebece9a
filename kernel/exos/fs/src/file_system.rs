//! The file system, mounted: its parts.

use postern_exos_abi::errno::Errno;

use crate::cache::Cache;
use crate::disk::Disk;
use crate::error::Error;
use crate::layout::Geometry;
use crate::names::Names;
use crate::nodes::Nodes;
use crate::owner::Owner;
use crate::policy::Policy;
use crate::room::Room;
use crate::transaction::Transaction;

/// Frames that a cache has at least.
pub const FRAMES: usize = 128;

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
    /// The last one that [`FileSystem::take_error`] told.
    pub(crate) told_error: Option<Error>,
}

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
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

    /// What the disk did not do, or does not have as it should be, if it is something else than
    /// what was told last.
    pub fn take_error(&mut self) -> Option<Error> {
        let is_news = |error: &Error| matches!(error, Error::Disk(_) | Error::Corrupt(..));
        let error = self.last_error.filter(is_news);
        let news = error.filter(|_| error != self.told_error);
        self.told_error = error.or(self.told_error);
        news
    }

    pub(crate) fn take_all_back(&mut self) {
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
