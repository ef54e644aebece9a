//! A domain's open files by number, as a process has them.
//!
//! Invariant: the table's lock is never held while something blocks, and nothing is closed under
//! it: whoever reads or writes has taken its own reference out before, and what leaves the table is
//! dropped by the caller after it.

use super::file::{Directory, File};
use super::status::Status;
use super::stream::Stream;
use cap_std::fs::Dir;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::Arc;

/// What a descriptor names; duplicates name the same.
pub(super) enum Open {
    Stream(Stream),
    File(File),
    Directory(Directory),
}

impl Open {
    pub(super) fn status(&self) -> &Status {
        match self {
            Open::Stream(stream) => &stream.status,
            Open::File(file) => &file.status,
            Open::Directory(directory) => &directory.status,
        }
    }
}

impl Open {
    /// The granted directory through which it was reached.
    pub(super) fn from(&self) -> Option<&Arc<Dir>> {
        match self {
            Open::Stream(_) => None,
            Open::File(file) => file.from.as_ref(),
            Open::Directory(directory) => directory.from.as_ref(),
        }
    }
}

#[derive(Clone)]
struct OpenDescriptor {
    open: Arc<Open>,
    close_on_exec: bool,
}

/// The table.
pub(super) struct DescriptorTable {
    slots: Vec<Option<OpenDescriptor>>,
    /// Descriptors at most.
    limit: usize,
    /// The working directory, absolute, in the extension's eyes.
    pub(super) directory: Vec<u8>,
    /// Permissions that new files do not get.
    pub(super) mask: u32,
    /// Who holds the domain's locks on a file, by device and inode.
    pub(super) locks: HashMap<(u64, u64), Arc<Open>>,
}

impl DescriptorTable {
    pub(super) fn new(limit: usize, streams: [Stream; 3]) -> DescriptorTable {
        let slots = streams.map(|stream| {
            Some(OpenDescriptor {
                open: Arc::new(Open::Stream(stream)),
                close_on_exec: false,
            })
        });
        DescriptorTable {
            slots: slots.into(),
            limit: limit.max(3),
            directory: b"/".into(),
            mask: 0o022,
            locks: HashMap::new(),
        }
    }

    fn slot(&mut self, number: i32) -> Result<&mut OpenDescriptor, Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        self.slots
            .get_mut(index)
            .and_then(Option::as_mut)
            .ok_or(Errno::BADF)
    }

    pub(super) fn get(&mut self, number: i32) -> Result<Arc<Open>, Errno> {
        Ok(self.slot(number)?.open.clone())
    }

    pub(super) fn close_on_exec(&mut self, number: i32) -> Result<&mut bool, Errno> {
        Ok(&mut self.slot(number)?.close_on_exec)
    }

    /// Whether one more fits; the lowest free number from `least` on.
    fn free(&self, least: usize) -> Result<usize, Errno> {
        let free = self.slots.iter().skip(least).position(Option::is_none);
        let number = free.map_or(self.slots.len().max(least), |found| least + found);
        if number >= self.limit {
            return Err(Errno::MFILE);
        }
        Ok(number)
    }

    /// Whether a file can be opened.
    pub(super) fn has_room(&self) -> Result<(), Errno> {
        self.free(0).map(drop)
    }

    /// Adds an open file at the lowest free number from `least` on.
    pub(super) fn add(
        &mut self,
        open: Arc<Open>,
        least: i32,
        close_on_exec: bool,
    ) -> Result<i32, Errno> {
        let least = usize::try_from(least).map_err(|_| Errno::INVAL)?;
        if least >= self.limit {
            return Err(Errno::INVAL);
        }
        let number = self.free(least)?;
        self.place(number, open, close_on_exec);
        Ok(number as i32)
    }

    /// Puts an open file at a number; what was there comes back.
    pub(super) fn put(
        &mut self,
        number: i32,
        open: Arc<Open>,
        close_on_exec: bool,
    ) -> Result<Option<Arc<Open>>, Errno> {
        let number = usize::try_from(number).map_err(|_| Errno::BADF)?;
        if number >= self.limit {
            return Err(Errno::BADF);
        }
        Ok(self.place(number, open, close_on_exec))
    }

    fn place(&mut self, number: usize, open: Arc<Open>, close_on_exec: bool) -> Option<Arc<Open>> {
        if self.slots.len() <= number {
            self.slots.resize(number + 1, None);
        }
        let slot = OpenDescriptor {
            open,
            close_on_exec,
        };
        self.slots[number].replace(slot).map(|slot| slot.open)
    }

    /// Whether any open file is one that `is_meant` says.
    pub(super) fn any(&self, is_meant: impl Fn(&Arc<Open>) -> bool) -> bool {
        let mut open = self.slots.iter().flatten();
        open.any(|slot| is_meant(&slot.open))
    }

    /// Takes out all that `is_taken` says, whatever numbers it has; the caller closes it.
    pub(super) fn sweep(&mut self, is_taken: impl Fn(&Arc<Open>) -> bool) -> Vec<Arc<Open>> {
        let mut taken = Vec::new();
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|slot| is_taken(&slot.open)) {
                taken.extend(slot.take().map(|slot| slot.open));
            }
        }
        self.locks.retain(|_, holder| {
            let stays = !is_taken(holder);
            if !stays {
                taken.push(holder.clone());
            }
            stays
        });
        taken
    }

    /// Takes a descriptor out.
    pub(super) fn remove(&mut self, number: i32) -> Result<Arc<Open>, Errno> {
        self.slot(number)?;
        let taken = self.slots[number as usize].take();
        taken.map(|slot| slot.open).ok_or(Errno::BADF)
    }
}
