//! A mounted folder of a server as a file system.
//!
//! Between closing a file and opening it anew, others' changes are seen; between those,
//! attributes are believed for three seconds. Files that are removed while they are held live on
//! under another name in the same folder (`.nfs` and a number) until they are released, as on
//! other clients.

mod bytes;
mod names;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::{Entry, Files, Kind, Space, Status};

use crate::attributes::{Attributes, Change, Handle, Set, SetTime};
use crate::blocks::Blocks;
use crate::mount::{Host, MountError, Options};
use crate::procedures::{self, Procedures};
use crate::rpc::Transport;
use crate::table::{FRESH, Table};

/// A mounted folder.
pub struct Mounted<T> {
    server: Procedures<T>,
    table: Table,
    blocks: Blocks,
    root: u64,
    /// Of what is told apart by random numbers.
    seed: u64,
    /// Whether the server lists attributes and handles along with names.
    is_plus: bool,
    /// Memory that retained writes of all files take.
    retained: usize,
}

impl<T: Transport> Mounted<T> {
    /// Mounts a folder of a host.
    pub fn new<H: Host<Transport = T>>(
        host: &mut H,
        options: &Options<'_>,
    ) -> Result<Self, MountError> {
        let (root, client) = options.connect(host)?;
        let failed = |error| MountError::Program("NFS", error);
        let mut mounted = Mounted {
            server: Procedures::new(client),
            table: Table::default(),
            blocks: Blocks::default(),
            root: 0,
            seed: options.seed,
            is_plus: true,
            retained: 0,
        };
        mounted.server.information(&root).map_err(failed)?;
        let attributes = mounted.server.attributes(&root).map_err(failed)?;
        if attributes.kind != Some(Kind::Folder) {
            return Err(MountError::Refused(errno::NOTDIR));
        }
        mounted.root = mounted.table.enter(root, Kind::Folder);
        // It is never forgotten.
        mounted.table.hold(mounted.root).map_err(failed)?;
        mounted
            .note(mounted.root, attributes, None)
            .map_err(failed)?;
        Ok(mounted)
    }

    /// The next of a row of numbers that look random.
    fn number(&mut self) -> u64 {
        // Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.seed;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// The server has said what a file is like.
    fn note(
        &mut self,
        node: u64,
        attributes: Attributes,
        ours: Option<(u64, u64, u64)>,
    ) -> Result<(), Errno> {
        let now = self.server.client().now();
        if self.table.note(node, attributes, ours, now)? {
            self.blocks.forget(node, 0);
        }
        Ok(())
    }

    /// A change that was our own. What the server does not say has to be asked for.
    fn changed(&mut self, node: u64, change: &Change) -> Result<(), Errno> {
        match change.after {
            Some(attributes) => self.note(node, attributes, change.before),
            None => {
                self.table.node(node)?.attributes = None;
                Ok(())
            }
        }
    }

    /// A change that was our own, of a folder that may not be known any more.
    fn changed_folder(&mut self, node: u64, change: &Change) {
        // What it says of the folder is of no use if it is wrong; the operation is done.
        let _ = self.changed(node, change);
    }

    /// Attributes not older than three seconds.
    fn attributes(&mut self, node: u64) -> Result<Attributes, Errno> {
        let now = self.server.client().now();
        let known = self.table.node(node)?;
        match known.attributes {
            Some((attributes, when)) if now.saturating_sub(when) < FRESH => Ok(attributes),
            _ => self.fresh(node),
        }
    }

    /// Attributes as they are now.
    fn fresh(&mut self, node: u64) -> Result<Attributes, Errno> {
        let handle = self.table.node(node)?.handle;
        let attributes = self.server.attributes(&handle)?;
        self.note(node, attributes, None)?;
        Ok(attributes)
    }

    /// The number of a file of which the server may have said what it is.
    fn enter(&mut self, handle: Handle, said: Option<Attributes>) -> Result<u64, Errno> {
        let attributes = match said {
            Some(attributes) => attributes,
            None => self.server.attributes(&handle)?,
        };
        let node = self.table.enter(handle, procedures::kind(&attributes)?);
        self.note(node, attributes, None)?;
        Ok(node)
    }

    /// Whether memory keeps to its bounds.
    #[cfg(test)]
    pub(crate) fn is_bounded(&self) -> bool {
        let retained = self.table.retained();
        retained == self.retained && retained <= bytes::RETAINED + (1 << 16)
    }

    /// Sets attributes.
    fn set(&mut self, node: u64, set: &Set) -> Result<(), Errno> {
        let handle = self.table.node(node)?.handle;
        let change = self.server.set(&handle, set)?;
        self.changed(node, &change)
    }
}

impl<T: Transport> Files for Mounted<T> {
    fn root(&self) -> u64 {
        self.root
    }

    fn look_up(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        self.find(folder, name)
    }

    fn status(&mut self, node: u64) -> Result<Status, Errno> {
        let attributes = self.attributes(node)?;
        let known = self.table.node(node)?;
        Ok(Status {
            node,
            kind: known.kind,
            mode: attributes.mode,
            links: attributes.links,
            size: attributes.size,
            blocks: attributes.used.div_ceil(4096),
            modified: attributes.modified,
            changed: attributes.changed,
            version: known.version,
        })
    }

    fn read(&mut self, node: u64, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        self.read_bytes(node, offset, to)
    }

    fn write(&mut self, node: u64, offset: u64, from: &[u8]) -> Result<usize, Errno> {
        self.write_bytes(node, offset, from)
    }

    fn create(
        &mut self,
        folder: u64,
        name: &[u8],
        kind: Kind,
        mode: u32,
        target: &[u8],
    ) -> Result<u64, Errno> {
        self.make(folder, name, kind, mode & 0o777, target)
    }

    fn link(&mut self, node: u64, folder: u64, name: &[u8]) -> Result<(), Errno> {
        self.link_name(node, folder, name)
    }

    fn remove(&mut self, folder: u64, name: &[u8], is_folder: bool) -> Result<(), Errno> {
        self.remove_name(folder, name, is_folder)
    }

    fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8])) -> Result<(), Errno> {
        self.rename_name(from, to)
    }

    fn set_length(&mut self, node: u64, length: u64) -> Result<(), Errno> {
        if i64::try_from(length).is_err() {
            return Err(errno::FBIG);
        }
        self.table.file(node)?;
        // What is retained may stand behind the new end.
        self.commit(node)?;
        let set = Set {
            size: Some(length),
            ..Set::default()
        };
        self.set(node, &set)?;
        self.blocks.forget(node, 0);
        Ok(())
    }

    fn set_mode(&mut self, node: u64, mode: u32) -> Result<(), Errno> {
        let set = Set {
            mode: Some(mode & 0o777),
            ..Set::default()
        };
        self.set(node, &set)
    }

    fn set_modified(&mut self, node: u64, time: u64) -> Result<(), Errno> {
        let set = Set {
            modified: SetTime::To(time),
            ..Set::default()
        };
        self.set(node, &set)
    }

    fn target(&mut self, node: u64, to: &mut [u8]) -> Result<usize, Errno> {
        let known = self.table.node(node)?;
        if known.kind != Kind::Link {
            return Err(errno::INVAL);
        }
        let handle = known.handle;
        let target = self.server.target(&handle)?;
        for (to, from) in to.iter_mut().zip(&target) {
            *to = *from;
        }
        Ok(target.len())
    }

    fn list(
        &mut self,
        folder: u64,
        from: u64,
        each: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno> {
        self.entries(folder, from, each)
    }

    fn synchronise(&mut self, node: Option<u64>) -> Result<(), Errno> {
        if let Some(node) = node {
            return self.commit(node);
        }
        let mut result = Ok(());
        for node in self.table.unsafe_files() {
            result = result.and(self.commit(node));
        }
        result
    }

    fn space(&mut self) -> Result<Space, Errno> {
        let root = self.table.folder(self.root)?;
        self.server.space(&root)
    }

    fn hold(&mut self, node: u64) -> Result<(), Errno> {
        self.open(node)
    }

    fn share(&mut self, node: u64) -> Result<(), Errno> {
        self.table.hold(node)
    }

    fn release(&mut self, node: u64) {
        self.close(node);
    }
}
