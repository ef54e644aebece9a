//! The file system. An operation looks first whether it can be done, and then does it whole.

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::{Entry, Files, Kind, NAME, Space, Status};

use crate::bytes::Bytes;
use crate::folder::Folder;
use crate::node::{Content, Node, Nodes};
use crate::pages::Pages;

/// Bytes of a link's target at most.
const TARGET: usize = 4095;
/// Names of a file at most.
const LINKS: u32 = 65_000;
/// What is permitted at the root, as Linux's `/tmp` but for the bit that says whose files are.
const ROOT_MODE: u32 = 0o777;

/// Files in memory.
#[derive(Debug)]
pub struct Memory<P> {
    pages: P,
    nodes: Nodes,
    root: u64,
}

impl<P: Pages> Memory<P> {
    /// A root with nothing in it.
    pub fn new(mut pages: P) -> Memory<P> {
        let mut nodes = Nodes::default();
        let now = pages.now();
        let mut root = node(Content::Folder(Folder::default()), ROOT_MODE, now);
        root.names = 1;
        // The first of all has a place.
        let root = nodes.add(root).unwrap_or_default();
        if let Ok(Node {
            content: Content::Folder(folder),
            ..
        }) = nodes.get_mut(root)
        {
            folder.above = root;
        }
        Memory { pages, nodes, root }
    }

    /// The pages that it has its bytes in.
    pub fn pages(&self) -> &P {
        &self.pages
    }

    fn folder(&self, node: u64) -> Result<&Folder, Errno> {
        match &self.nodes.get(node)?.content {
            Content::Folder(folder) => Ok(folder),
            _ => Err(errno::NOTDIR),
        }
    }

    fn bytes(&self, node: u64) -> Result<&Bytes, Errno> {
        match &self.nodes.get(node)?.content {
            Content::File(bytes) => Ok(bytes),
            Content::Folder(_) => Err(errno::ISDIR),
            Content::Link(_) => Err(errno::INVAL),
        }
    }

    /// A change of a file's bytes, of which its times tell.
    fn change<T>(
        &mut self,
        node: u64,
        change: impl FnOnce(&mut Bytes, &mut P) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.bytes(node)?;
        let now = self.pages.now();
        let node = self.nodes.get_mut(node)?;
        let Content::File(bytes) = &mut node.content else {
            return Err(errno::INVAL);
        };
        let done = change(bytes, &mut self.pages)?;
        node.touch(now);
        Ok(done)
    }

    /// A folder that has a name in the tree, and in which a new name may be.
    fn for_new(&self, folder: u64, name: &[u8]) -> Result<(), Errno> {
        let names = self.folder(folder)?;
        is_name(name)?;
        match (self.nodes.get(folder)?.names, names.get(name)) {
            (0, _) => Err(errno::NOENT),
            (_, Some(_)) => Err(errno::EXIST),
            _ => Ok(()),
        }
    }

    /// A change of a folder's names.
    fn rewrite(&mut self, folder: u64, now: u64, change: impl FnOnce(&mut Folder)) {
        if let Ok(node) = self.nodes.get_mut(folder) {
            if let Content::Folder(folder) = &mut node.content {
                change(folder);
            }
            node.touch(now);
        }
    }

    /// A file has one name less; it goes with the last one, if nobody holds it.
    fn unname(&mut self, node: u64, now: u64) {
        if let Ok(found) = self.nodes.get_mut(node) {
            found.names = found.names.saturating_sub(1);
            found.changed = now;
        }
        self.sweep(node);
    }

    fn sweep(&mut self, node: u64) {
        let gone = self.nodes.get(node);
        let gone = gone.is_ok_and(|node| node.names == 0 && node.holds == 0);
        if gone
            && let Some(Node {
                content: Content::File(mut bytes),
                ..
            }) = self.nodes.remove(node)
        {
            bytes.clear(&mut self.pages);
        }
    }

    /// Whether one folder is another one, or anywhere in it.
    fn is_within(&self, mut folder: u64, other: u64) -> bool {
        loop {
            if folder == other {
                return true;
            }
            match self.folder(folder) {
                Ok(names) if names.above != folder => folder = names.above,
                _ => return false,
            }
        }
    }
}

fn node(content: Content, mode: u32, now: u64) -> Node {
    Node {
        content,
        mode,
        names: 0,
        holds: 0,
        modified: now,
        changed: now,
        version: 1,
    }
}

fn is_name(name: &[u8]) -> Result<(), Errno> {
    match name {
        b"" | b"." | b".." => Err(errno::INVAL),
        name if name.len() > NAME => Err(errno::NAMETOOLONG),
        name if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(errno::INVAL),
        _ => Ok(()),
    }
}

impl<P: Pages> Files for Memory<P> {
    fn root(&self) -> u64 {
        self.root
    }

    fn look_up(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        let names = self.folder(folder)?;
        match name.len() {
            0..=NAME => names.get(name).ok_or(errno::NOENT),
            _ => Err(errno::NAMETOOLONG),
        }
    }

    fn status(&mut self, node: u64) -> Result<Status, Errno> {
        let found = self.nodes.get(node)?;
        let (size, blocks, links) = match &found.content {
            Content::File(bytes) => (bytes.size(), bytes.blocks(), found.names),
            // As elsewhere a folder has one more for `.`; those of `..` are not counted.
            Content::Folder(names) => (names.len() as u64, 0, found.names * 2),
            Content::Link(target) => (target.len() as u64, 0, found.names),
        };
        Ok(Status {
            node,
            kind: found.kind(),
            mode: found.mode,
            links,
            size,
            blocks,
            modified: found.modified,
            changed: found.changed,
            version: found.version,
        })
    }

    fn read(&mut self, node: u64, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        Ok(self.bytes(node)?.read(&self.pages, offset, to))
    }

    fn write(&mut self, node: u64, offset: u64, from: &[u8]) -> Result<usize, Errno> {
        self.change(node, |bytes, pages| bytes.write(pages, offset, from))
    }

    fn create(
        &mut self,
        folder: u64,
        name: &[u8],
        kind: Kind,
        mode: u32,
        target: &[u8],
    ) -> Result<u64, Errno> {
        self.for_new(folder, name)?;
        let content = match kind {
            Kind::File => Content::File(Bytes::default()),
            Kind::Folder => Content::Folder(Folder::new(folder)),
            Kind::Link if target.len() > TARGET => return Err(errno::NAMETOOLONG),
            Kind::Link if target.is_empty() => return Err(errno::NOENT),
            Kind::Link => Content::Link(target.into()),
        };
        let now = self.pages.now();
        let mut made = node(content, mode & 0o777, now);
        made.names = 1;
        let made = self.nodes.add(made)?;
        self.rewrite(folder, now, |names| names.set(name, made));
        Ok(made)
    }

    fn link(&mut self, node: u64, folder: u64, name: &[u8]) -> Result<(), Errno> {
        self.for_new(folder, name)?;
        let now = self.pages.now();
        let found = self.nodes.get_mut(node)?;
        match (found.kind(), found.names) {
            (Kind::Folder, _) => return Err(errno::PERM),
            (_, 0) => return Err(errno::NOENT),
            (_, LINKS..) => return Err(errno::MLINK),
            _ => {}
        }
        found.names += 1;
        found.changed = now;
        self.rewrite(folder, now, |names| names.set(name, node));
        Ok(())
    }

    fn remove(&mut self, folder: u64, name: &[u8], is_folder: bool) -> Result<(), Errno> {
        let node = self.look_up(folder, name)?;
        match (&self.nodes.get(node)?.content, is_folder) {
            (Content::Folder(_), false) => return Err(errno::ISDIR),
            (Content::Folder(names), true) if names.len() > 0 => return Err(errno::NOTEMPTY),
            (Content::File(_) | Content::Link(_), true) => return Err(errno::NOTDIR),
            _ => {}
        }
        let now = self.pages.now();
        self.rewrite(folder, now, |names| names.remove(name));
        self.unname(node, now);
        Ok(())
    }

    fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8])) -> Result<(), Errno> {
        let node = self.look_up(from.0, from.1)?;
        let is_folder = self.nodes.get(node)?.kind() == Kind::Folder;
        if is_folder && self.is_within(to.0, node) {
            return Err(errno::INVAL);
        }
        let former = match self.for_new(to.0, to.1) {
            Ok(()) => None,
            Err(errno::EXIST) => Some(self.look_up(to.0, to.1)?),
            Err(error) => return Err(error),
        };
        if former == Some(node) {
            return Ok(());
        }
        if let Some(former) = former {
            match (&self.nodes.get(former)?.content, is_folder) {
                (Content::Folder(names), true) if names.len() > 0 => return Err(errno::NOTEMPTY),
                (Content::Folder(_), false) => return Err(errno::ISDIR),
                (Content::File(_) | Content::Link(_), true) => return Err(errno::NOTDIR),
                _ => {}
            }
        }
        let now = self.pages.now();
        self.rewrite(from.0, now, |names| names.remove(from.1));
        self.rewrite(to.0, now, |names| names.set(to.1, node));
        if let Ok(node) = self.nodes.get_mut(node) {
            node.changed = now;
            if let Content::Folder(names) = &mut node.content {
                names.above = to.0;
            }
        }
        if let Some(former) = former {
            self.unname(former, now);
        }
        Ok(())
    }

    fn set_length(&mut self, node: u64, length: u64) -> Result<(), Errno> {
        self.change(node, |bytes, pages| bytes.set_size(pages, length))
    }

    fn set_mode(&mut self, node: u64, mode: u32) -> Result<(), Errno> {
        let now = self.pages.now();
        let node = self.nodes.get_mut(node)?;
        (node.mode, node.changed) = (mode & 0o777, now);
        Ok(())
    }

    fn set_modified(&mut self, node: u64, time: u64) -> Result<(), Errno> {
        let now = self.pages.now();
        let node = self.nodes.get_mut(node)?;
        (node.modified, node.changed) = (time, now);
        Ok(())
    }

    fn target(&mut self, node: u64, to: &mut [u8]) -> Result<usize, Errno> {
        let Content::Link(target) = &self.nodes.get(node)?.content else {
            return Err(errno::INVAL);
        };
        let length = target.len().min(to.len());
        to[..length].copy_from_slice(&target[..length]);
        Ok(target.len())
    }

    fn list(
        &mut self,
        folder: u64,
        from: u64,
        each: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno> {
        for (next, name, node) in self.folder(folder)?.behind(from) {
            let kind = self.nodes.get(node)?.kind();
            let entry = Entry {
                name,
                node,
                kind,
                next,
            };
            if !each(entry) {
                break;
            }
        }
        Ok(())
    }

    fn synchronise(&mut self, node: Option<u64>) -> Result<(), Errno> {
        node.map_or(Ok(()), |node| self.nodes.get(node).map(drop))
    }

    fn space(&mut self) -> Result<Space, Errno> {
        let (blocks, free) = self.pages.space();
        let (files, free_files) = self.nodes.space();
        Ok(Space {
            blocks,
            free,
            files,
            free_files,
        })
    }

    fn hold(&mut self, node: u64) -> Result<(), Errno> {
        let node = self.nodes.get_mut(node)?;
        node.holds = node.holds.checked_add(1).ok_or(errno::NFILE)?;
        Ok(())
    }

    fn release(&mut self, node: u64) {
        if let Ok(node) = self.nodes.get_mut(node) {
            node.holds = node.holds.saturating_sub(1);
        }
        self.sweep(node);
    }

    fn page(&mut self, node: u64, index: u64) -> Result<(u32, u64), Errno> {
        let bytes = self.bytes(node)?;
        if index >= bytes.size().div_ceil(4096) {
            return Err(errno::INVAL);
        }
        let page = match bytes.page(index) {
            Some(page) => page,
            // Zeros that were never written get a page to be shown.
            None => match &mut self.nodes.get_mut(node)?.content {
                Content::File(bytes) => bytes.own(&mut self.pages, index)?,
                _ => return Err(errno::INVAL),
            },
        };
        self.pages.lend(page)
    }
}
