//! What is done with names: files are made, linked, removed, renamed.

use postern_exos_abi::errno;
use postern_exos_abi::file::{Entry, Kind};

use crate::disk::Disk;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::folder::{Place, check_name, walk};
use crate::hash;
use crate::layout::{BODY, HEAD, Sort};
use crate::nodes::SHORT;
use crate::owner::Owner;
use crate::policy::Policy;

/// Names that a file has at most.
const NAMES: u32 = 65_000;

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// What a name stands for.
    #[inline]
    pub(crate) fn find_name(&mut self, folder: u64, name: &[u8]) -> Result<u64, Error> {
        let slot = self.folder_slot(folder)?;
        let sum = hash::name(name);
        let node = match self.names.find(folder, name, sum) {
            Some(node) => node,
            None => self.find_name_in_blocks(folder, slot, name, sum)?,
        };
        if node == 0 {
            Err(errno::NOENT.into())
        } else {
            Ok(node)
        }
    }

    fn find_name_in_blocks(
        &mut self,
        folder: u64,
        slot: usize,
        name: &[u8],
        sum: u32,
    ) -> Result<u64, Error> {
        check_name(name)?;
        let found = self.find_entry(slot, name, sum)?;
        let node = found.map_or(0, |place| place.node);
        self.names.set(folder, name, sum, node);
        Ok(node)
    }

    /// Where a folder's node is that names may be added to.
    fn live_folder(&mut self, folder: u64) -> Result<usize, Error> {
        let slot = self.folder_slot(folder)?;
        match self.nodes.slots[slot].links {
            0 => Err(errno::NOENT.into()),
            _ => Ok(slot),
        }
    }

    /// Where the node of an entry is.
    fn entry_slot(&mut self, folder: usize, place: Place) -> Result<usize, Error> {
        let table = self.geometry.node(self.nodes.slots[folder].index).0;
        let corrupt = Error::Corrupt(table, Sort::Folder.name());
        let slot = match self.slot(place.node) {
            Err(Error::Refused(_)) => return Err(corrupt),
            slot => slot?,
        };
        let node = self.nodes.slots[slot];
        if node.kind != place.kind || node.links == 0 {
            Err(corrupt)
        } else {
            Ok(slot)
        }
    }

    /// A folder's entries have changed.
    fn store_folder(&mut self, slot: usize, now: u64) -> Result<(), Error> {
        let node = &mut self.nodes.slots[slot];
        node.modified = now;
        node.changed = now;
        node.version = node.version.wrapping_add(1);
        self.store(slot)
    }

    /// A new file.
    pub(crate) fn make(
        &mut self,
        folder: u64,
        name: &[u8],
        kind: Kind,
        mode: u32,
        target: &[u8],
    ) -> Result<u64, Error> {
        self.live_folder(folder)?;
        check_name(name)?;
        if kind == Kind::Link && (target.is_empty() || target.contains(&0)) {
            return Err(errno::INVAL.into());
        }
        if kind == Kind::Link && target.len() > BODY {
            return Err(errno::NAMETOOLONG.into());
        }
        let (now, sum) = (self.owner.now(), hash::name(name));
        let node = self.act(|files| {
            let slot = files.live_folder(folder)?;
            let is_there = match files.names.find(folder, name, sum) {
                Some(node) => node != 0,
                None => files.find_entry(slot, name, sum)?.is_some(),
            };
            if is_there {
                return Err(errno::EXIST.into());
            }
            let child = files.new_node(kind, mode, now)?;
            match kind {
                Kind::File => {}
                Kind::Folder => files.nodes.slots[child].parent = folder,
                Kind::Link => files.set_target(child, target)?,
            }
            files.store(child)?;
            let number = files.nodes.slots[child].number();
            files.add_entry(slot, name, number, kind)?;
            files.store_folder(slot, now)?;
            Ok(number)
        })?;
        self.names.set(folder, name, sum, node);
        Ok(node)
    }

    /// A new link has a target.
    fn set_target(&mut self, slot: usize, target: &[u8]) -> Result<(), Error> {
        self.nodes.slots[slot].size = target.len() as u64;
        if target.len() as u64 <= SHORT {
            self.nodes.slots[slot].set_short_target(target);
            return Ok(());
        }
        let number = self.nodes.slots[slot].number();
        let block = self.make_block(slot, 0)?;
        let frame = self.new_own(block, Sort::Target, number, 0)?;
        self.put(frame, HEAD, target)
    }

    /// What a link stands for, and how long that is.
    pub(crate) fn target_of(&mut self, number: u64, to: &mut [u8]) -> Result<usize, Error> {
        let slot = self.slot(number)?;
        let node = self.nodes.slots[slot];
        if node.kind != Kind::Link {
            return Err(errno::INVAL.into());
        }
        let length = usize::try_from(node.size).unwrap_or(usize::MAX);
        let short = node.short_target();
        let from = if node.is_short() {
            short.get(..length)
        } else {
            let block = self.find_block(slot, 0)?;
            let frame = self.own(u64::from(block), Sort::Target, number, 0)?;
            self.cache.bytes[frame]
                .0
                .get(HEAD..HEAD.saturating_add(length))
        };
        let table = self.geometry.node(node.index).0;
        let from = from.ok_or(Error::Corrupt(table, Sort::Target.name()))?;
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
        Ok(length)
    }

    /// One more name.
    pub(crate) fn add_name(&mut self, number: u64, folder: u64, name: &[u8]) -> Result<(), Error> {
        self.live_folder(folder)?;
        check_name(name)?;
        let (now, sum) = (self.owner.now(), hash::name(name));
        self.act(|files| {
            let child = files.slot(number)?;
            let slot = files.live_folder(folder)?;
            let (kind, links) = (
                files.nodes.slots[child].kind,
                files.nodes.slots[child].links,
            );
            match links {
                _ if kind == Kind::Folder => return Err(errno::PERM.into()),
                0 => return Err(errno::NOENT.into()),
                NAMES.. => return Err(errno::MLINK.into()),
                _ => {}
            }
            if files.find_entry(slot, name, sum)?.is_some() {
                return Err(errno::EXIST.into());
            }
            files.add_entry(slot, name, number, kind)?;
            files.store_folder(slot, now)?;
            let node = &mut files.nodes.slots[child];
            node.links += 1;
            node.changed = now;
            files.store(child)
        })?;
        self.names.set(folder, name, sum, number);
        Ok(())
    }

    /// Takes a name away.
    pub(crate) fn remove_name(
        &mut self,
        folder: u64,
        name: &[u8],
        is_folder: bool,
    ) -> Result<(), Error> {
        self.folder_slot(folder)?;
        check_name(name)?;
        let (now, sum) = (self.owner.now(), hash::name(name));
        let unfinished = self.act(|files| {
            let slot = files.folder_slot(folder)?;
            let place = files.find_entry(slot, name, sum)?;
            let place = place.ok_or(Error::Refused(errno::NOENT))?;
            match (place.kind, is_folder) {
                (Kind::Folder, false) => return Err(errno::ISDIR.into()),
                (Kind::File | Kind::Link, true) => return Err(errno::NOTDIR.into()),
                _ => {}
            }
            let child = files.entry_slot(slot, place)?;
            let node = files.nodes.slots[child];
            if is_folder && node.entries > 0 {
                return Err(errno::NOTEMPTY.into());
            }
            files.remove_entry(slot, place)?;
            files.store_folder(slot, now)?;
            let is_unfinished = files.lose_name(child, now)?;
            Ok(is_unfinished.then_some(node.index))
        })?;
        self.names.set(folder, name, sum, 0);
        self.finish_now(unfinished);
        Ok(())
    }

    /// The name is gone, whatever comes; what cannot be freed now is freed by a mount.
    fn finish_now(&mut self, unfinished: Option<u32>) {
        if let Some(index) = unfinished
            && let Err(error) = self.finish(index)
        {
            self.last_error = Some(error);
        }
    }

    /// Another name, in one step.
    pub(crate) fn change_name(
        &mut self,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
    ) -> Result<(), Error> {
        self.folder_slot(from.0)?;
        self.live_folder(to.0)?;
        check_name(from.1)?;
        check_name(to.1)?;
        let now = self.owner.now();
        let moved = self.act(|files| files.change_name_once(from, to, now))?;
        // Nothing, if both are names of the same file.
        if let Some((node, unfinished)) = moved {
            self.names.set(from.0, from.1, hash::name(from.1), 0);
            self.names.set(to.0, to.1, hash::name(to.1), node);
            self.finish_now(unfinished);
        }
        Ok(())
    }

    /// Says what was moved, and the index of what had the name if it is to be finished.
    fn change_name_once(
        &mut self,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        now: u64,
    ) -> Result<Option<(u64, Option<u32>)>, Error> {
        let source = self.folder_slot(from.0)?;
        let goal = self.live_folder(to.0)?;
        let place = self.find_entry(source, from.1, hash::name(from.1))?;
        let place = place.ok_or(Error::Refused(errno::NOENT))?;
        let former = self.find_entry(goal, to.1, hash::name(to.1))?;
        if former.is_some_and(|former| former.node == place.node) {
            return Ok(None);
        }
        let child = self.entry_slot(source, place)?;
        if place.kind == Kind::Folder && from.0 != to.0 {
            self.refuse_below(place.node, to.0)?;
        }
        let mut unfinished = None;
        if let Some(former) = former {
            let victim = self.entry_slot(goal, former)?;
            let node = self.nodes.slots[victim];
            match (place.kind == Kind::Folder, former.kind == Kind::Folder) {
                (true, false) => return Err(errno::NOTDIR.into()),
                (false, true) => return Err(errno::ISDIR.into()),
                (true, true) if node.entries > 0 => return Err(errno::NOTEMPTY.into()),
                _ => {}
            }
            self.change_entry(goal, former, place.node, place.kind)?;
            unfinished = self.lose_name(victim, now)?.then_some(node.index);
        } else {
            self.add_entry(goal, to.1, place.node, place.kind)?;
        }
        // Entries stay in their places when others come.
        self.remove_entry(source, place)?;
        self.store_folder(source, now)?;
        self.store_folder(goal, now)?;
        let node = &mut self.nodes.slots[child];
        node.changed = now;
        if node.kind == Kind::Folder {
            node.parent = to.0;
        }
        self.store(child)?;
        Ok(Some((place.node, unfinished)))
    }

    /// A folder is not moved into itself, nor below itself.
    fn refuse_below(&mut self, moved: u64, into: u64) -> Result<(), Error> {
        let mut at = into;
        for _ in 0..=self.geometry.nodes {
            if at == moved {
                return Err(errno::INVAL.into());
            }
            if at == self.root_number() {
                return Ok(());
            }
            let slot = self.slot(at)?;
            at = self.nodes.slots[slot].parent;
        }
        // Parents in a circle.
        let table = self.geometry.node(into as u32).0;
        Err(Error::Corrupt(table, Sort::Nodes.name()))
    }

    /// Entries of a folder behind a place.
    pub(crate) fn each_entry(
        &mut self,
        folder: u64,
        from: u64,
        each: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Error> {
        let slot = self.folder_slot(folder)?;
        let blocks = self.folder_blocks(slot);
        let first = u32::try_from(from >> 12).unwrap_or(u32::MAX);
        for index in first..blocks {
            let frame = self.folder_block(slot, index)?;
            let home = u64::from(self.cache.frames[frame].at);
            let corrupt = Error::Corrupt(home, Sort::Folder.name());
            for found in walk(&self.cache.bytes[frame].0) {
                let found = found.map_err(|()| corrupt)?;
                let at = u64::from(index) << 12 | found.at as u64;
                if found.node == 0 || at < from {
                    continue;
                }
                check_name(found.name).map_err(|_| corrupt)?;
                let wants_more = each(Entry {
                    name: found.name,
                    node: found.node,
                    kind: found.kind.ok_or(corrupt)?,
                    next: at + 1,
                });
                if !wants_more {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
