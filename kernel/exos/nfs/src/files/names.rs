//! Names in folders.

use alloc::format;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::{Entry, Kind};

use super::Mounted;
use crate::attributes::{Attributes, Handle, Set, SetTime};
use crate::procedures::{self, Listing, New};
use crate::rpc::Transport;

/// Entries of a folder at most: more is a listing that does not end.
const ENTRIES: u32 = 1 << 20;

/// Names that are tried for a file that is removed while it is held.
const TRIES: u32 = 8;

/// A name that may be sent.
fn checked(name: &[u8]) -> Result<(), Errno> {
    match procedures::is_name(name) {
        true => Ok(()),
        false if name.len() > postern_exos_abi::file::NAME => Err(errno::NAMETOOLONG),
        false => Err(errno::INVAL),
    }
}

impl<T: Transport> Mounted<T> {
    /// What a name stands for.
    pub(super) fn find(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        checked(name)?;
        let folder = self.table.folder(folder)?;
        let (handle, attributes) = self.server.look_up(&folder, name)?;
        self.enter(handle, attributes)
    }

    /// A new file, folder or link.
    pub(super) fn make(
        &mut self,
        folder: u64,
        name: &[u8],
        kind: Kind,
        mode: u32,
        target: &[u8],
    ) -> Result<u64, Errno> {
        checked(name)?;
        let parent = self.table.folder(folder)?;
        if kind == Kind::Link && target.len() > procedures::TARGET {
            return Err(errno::NAMETOOLONG);
        }
        let verifier = self.number().to_be_bytes();
        let mut new = match kind {
            Kind::File => New::Exclusive(verifier),
            Kind::Folder => New::Folder(mode),
            Kind::Link => New::Link(mode, target),
        };
        let mut made = self.server.create(&parent, name, new);
        if kind == Kind::File && made.as_ref().is_err_and(|&error| error == errno::NOTSUP) {
            new = New::Guarded(mode);
            made = self.server.create(&parent, name, new);
        }
        let (handle, attributes, change) = match made {
            Ok(made) => made,
            // Ours, whose answer was lost: nothing else tells a folder or a link.
            Err(errno::EXIST) if self.server.client().was_repeated() && kind != Kind::File => {
                let (handle, attributes) = self.server.look_up(&parent, name)?;
                (Some(handle), attributes, Default::default())
            }
            Err(error) => return Err(error),
        };
        self.changed_folder(folder, &change);
        let (handle, attributes) = match handle {
            Some(handle) => (handle, attributes),
            None => self.server.look_up(&parent, name)?,
        };
        let exclusive = matches!(new, New::Exclusive(_));
        let done = self.finish(handle, attributes, kind, exclusive.then_some(mode));
        if done.is_err() && kind == Kind::File {
            // What fails has changed nothing.
            let _ = self.server.remove(&parent, name, false);
        }
        done
    }

    /// The number of a new file. One that was made exclusively has no permissions yet, and its
    /// times are the verifier (RFC 1813, section 3.3.8).
    fn finish(
        &mut self,
        handle: Handle,
        said: Option<Attributes>,
        kind: Kind,
        mode: Option<u32>,
    ) -> Result<u64, Errno> {
        let node = match mode {
            None => self.enter(handle, said)?,
            Some(mode) => {
                let set = Set {
                    mode: Some(mode),
                    read: SetTime::Now,
                    modified: SetTime::Now,
                    ..Set::default()
                };
                let change = self.server.set(&handle, &set)?;
                self.enter(handle, change.after)?
            }
        };
        if self.table.node(node)?.kind != kind {
            return Err(errno::PROTO);
        }
        Ok(node)
    }

    /// One more name.
    pub(super) fn link_name(&mut self, node: u64, folder: u64, name: &[u8]) -> Result<(), Errno> {
        checked(name)?;
        let parent = self.table.folder(folder)?;
        let known = self.table.node(node)?;
        if known.kind == Kind::Folder {
            return Err(errno::PERM);
        }
        let handle = known.handle;
        match self.server.link(&handle, &parent, name) {
            Ok((attributes, change)) => {
                self.changed_folder(folder, &change);
                self.table.node(node)?.attributes = None;
                match attributes {
                    Some(attributes) => self.note(node, attributes, None),
                    None => Ok(()),
                }
            }
            // Ours, whose answer was lost, if it is the same file.
            Err(errno::EXIST) if self.server.client().was_repeated() => {
                match self.server.look_up(&parent, name)? {
                    (found, _) if found == handle => Ok(()),
                    _ => Err(errno::EXIST),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Takes a name away.
    pub(super) fn remove_name(
        &mut self,
        folder: u64,
        name: &[u8],
        is_folder: bool,
    ) -> Result<(), Errno> {
        checked(name)?;
        let parent = self.table.folder(folder)?;
        // A server may take folders away by either procedure.
        let (handle, attributes) = self.server.look_up(&parent, name)?;
        let attributes = match attributes {
            Some(attributes) => attributes,
            None => self.server.attributes(&handle)?,
        };
        match attributes.kind {
            Some(Kind::Folder) if !is_folder => return Err(errno::ISDIR),
            Some(Kind::Folder) => {}
            _ if is_folder => return Err(errno::NOTDIR),
            _ => {
                if self.hide(folder, name, &handle, attributes.links)? {
                    return Ok(());
                }
            }
        }
        match self.server.remove(&parent, name, is_folder) {
            Ok(change) => {
                self.changed_folder(folder, &change);
                self.lost(&handle);
                Ok(())
            }
            // It was there a moment ago, and the answer was lost.
            Err(errno::NOENT) if self.server.client().was_repeated() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A file has a name less.
    fn lost(&mut self, handle: &Handle) {
        if let Some(number) = self.table.number(handle)
            && let Ok(node) = self.table.node(number)
        {
            node.attributes = None;
        }
    }

    /// Gives the last name of a file that is held another form, which is removed when it is held
    /// no more. False: nobody holds it, or it has other names.
    fn hide(
        &mut self,
        folder: u64,
        name: &[u8],
        handle: &Handle,
        links: u32,
    ) -> Result<bool, Errno> {
        let Some(number) = self.table.number(handle) else {
            return Ok(false);
        };
        let Ok(node) = self.table.node(number) else {
            return Ok(false);
        };
        if node.holds == 0 || links > 1 || node.removed.is_some() {
            return Ok(false);
        }
        let parent = self.table.folder(folder)?;
        for _ in 0..TRIES {
            let other = format!(".nfs{:016x}", self.number()).into_bytes();
            match self.server.look_up(&parent, &other) {
                Ok(_) => continue,
                Err(errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            let (change, _) = self.server.rename((&parent, name), (&parent, &other))?;
            self.changed_folder(folder, &change);
            let node = self.table.node(number)?;
            node.removed = Some((parent, other));
            node.attributes = None;
            return Ok(true);
        }
        Err(errno::BUSY)
    }

    /// Another name, in one step.
    pub(super) fn rename_name(
        &mut self,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
    ) -> Result<(), Errno> {
        checked(from.1)?;
        checked(to.1)?;
        let source = self.table.folder(from.0)?;
        let target = self.table.folder(to.0)?;
        let (moved, attributes) = self.server.look_up(&source, from.1)?;
        let kind = self.kind(&moved, attributes)?;
        let mut hidden = None;
        let mut covered = None;
        // Only who is held has to live on.
        match self.server.look_up(&target, to.1) {
            Ok((there, attributes)) if there != moved => {
                covered = Some(there);
                let links = attributes.map_or(1, |attributes| attributes.links);
                let covers = self.kind(&there, attributes)?;
                match (kind == Some(Kind::Folder), covers == Some(Kind::Folder)) {
                    (true, false) => return Err(errno::NOTDIR),
                    (false, true) => return Err(errno::ISDIR),
                    (true, true) => {}
                    (false, false) => {
                        if self.hide(to.0, to.1, &there, links)? {
                            hidden = self.table.number(&there);
                        }
                    }
                }
            }
            Ok(_) | Err(errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        let renamed = self.server.rename((&source, from.1), (&target, to.1));
        match renamed {
            Ok((first, second)) => {
                self.changed_folder(from.0, &first);
                self.changed_folder(to.0, &second);
            }
            // The answer was lost, if the file has its new name.
            Err(errno::NOENT) if self.server.client().was_repeated() => {
                match self.server.look_up(&target, to.1) {
                    Ok((found, _)) if found == moved => {}
                    _ => return Err(errno::NOENT),
                }
            }
            Err(error) => {
                self.show(hidden, (&target, to.1));
                return Err(error);
            }
        }
        self.lost(&moved);
        if let Some(covered) = covered {
            self.lost(&covered);
        }
        Ok(())
    }

    /// What a file is of which the server may have said it.
    fn kind(&mut self, handle: &Handle, said: Option<Attributes>) -> Result<Option<Kind>, Errno> {
        match said {
            Some(attributes) => Ok(attributes.kind),
            None => Ok(self.server.attributes(handle)?.kind),
        }
    }

    /// Gives a hidden file its name back.
    fn show(&mut self, hidden: Option<u64>, to: (&Handle, &[u8])) {
        let Some(number) = hidden else { return };
        let Ok(node) = self.table.node(number) else {
            return;
        };
        if let Some((folder, name)) = node.removed.take() {
            let shown = self.server.rename((&folder, &name), to);
            if shown.is_err()
                && let Ok(node) = self.table.node(number)
            {
                node.removed = Some((folder, name));
            }
        }
    }

    /// A folder's entries behind a place.
    pub(super) fn entries(
        &mut self,
        folder: u64,
        from: u64,
        each: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let parent = self.table.folder(folder)?;
        let mut progress = self.table.node(folder)?.progress;
        if from == 0 {
            progress = Default::default();
        } else if progress.cookie != from {
            // Somebody else's place: it is counted from here on.
            progress.count = 0;
        }
        progress.cookie = from;
        // A row of cookies that comes back to one of itself (Brent: An improved Monte Carlo
        // factorization algorithm, 1980).
        let (mut earlier, mut steps, mut power) = (from, 0u32, 1u32);
        loop {
            let listing = self.part(&parent, progress.cookie, progress.verifier)?;
            progress.verifier = listing.verifier;
            let last = listing.last;
            for entry in &listing.entries {
                progress.count += 1;
                if progress.count > ENTRIES {
                    return Err(errno::PROTO);
                }
                let Some((node, kind)) = self.listed(&parent, entry)? else {
                    continue;
                };
                progress.cookie = entry.cookie;
                let wants_more = each(Entry {
                    name: &entry.name,
                    node,
                    kind,
                    next: entry.cookie,
                });
                if !wants_more {
                    self.table.node(folder)?.progress = progress;
                    return Ok(());
                }
            }
            if listing.is_end {
                self.table.node(folder)?.progress = progress;
                return Ok(());
            }
            let last = last.ok_or(errno::PROTO)?;
            steps += 1;
            progress.count += 1;
            if last == earlier || progress.count > ENTRIES {
                return Err(errno::PROTO);
            }
            if steps == power {
                (earlier, steps, power) = (last, 0, power.saturating_mul(2));
            }
            progress.cookie = last;
        }
    }

    /// A part of a folder, with attributes if the server has them.
    fn part(&mut self, folder: &Handle, cookie: u64, verifier: [u8; 8]) -> Result<Listing, Errno> {
        if self.is_plus {
            match self.server.list(folder, cookie, verifier, true) {
                Err(errno::NOTSUP) => self.is_plus = false,
                listing => return listing,
            }
        }
        self.server.list(folder, cookie, verifier, false)
    }

    /// What an entry stands for; none if it is gone, or of the server's own.
    fn listed(
        &mut self,
        folder: &Handle,
        entry: &procedures::Listed,
    ) -> Result<Option<(u64, Kind)>, Errno> {
        let (handle, attributes) = match entry.file {
            Some((handle, attributes)) => (handle, attributes),
            None => match self.server.look_up(folder, &entry.name) {
                Ok((handle, Some(attributes))) => (handle, attributes),
                Ok((handle, None)) => (handle, self.server.attributes(&handle)?),
                Err(errno::NOENT | errno::ACCES) => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let Some(kind) = attributes.kind else {
            return Ok(None);
        };
        let node = self.enter(handle, Some(attributes))?;
        Ok(Some((node, kind)))
    }
}
