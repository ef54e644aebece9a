//! The procedures of NFS version 3 (RFC 1813, section 3.3), one call each.

use alloc::vec::Vec;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::{self, Kind, Space};

use crate::attributes::{self, Attributes, Change, Handle, Set};
use crate::rpc::{Client, Transport};
use crate::xdr::{Malformed, Reader, Writer};

/// The program and its version.
pub const PROGRAM: (u32, u32) = (100_003, 3);

/// Bytes of a link's target at most.
pub const TARGET: usize = 4095;

/// Bytes of a message that are not those read or written, at most: credentials, handles,
/// attributes.
const AROUND: usize = 256;

/// Bytes that are read or written at once, at most.
const LARGEST: u32 = 1 << 15;

/// Times that a server may ask for time before a call has failed.
const DELAYS: u32 = 20;

/// How well written bytes are kept (`stable_how`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stable {
    /// Until the server ends; a commit makes them stay.
    Not = 0,
    /// For good.
    File = 2,
}

/// An instance of a server: another one may have lost what was not committed.
pub type Verifier = [u8; 8];

/// What a write has done.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Bytes, no more than there were.
    pub count: u32,
    /// Whether they are kept for good.
    pub is_stable: bool,
    /// Of the server.
    pub verifier: Verifier,
    /// Attributes.
    pub change: Change,
}

/// What a new file is made of.
#[derive(Clone, Copy, Debug)]
pub enum New<'a> {
    /// A file that nobody else has made: told by the verifier, so that a call may be repeated.
    Exclusive(Verifier),
    /// A file, if there is none of the name.
    Guarded(u32),
    /// A folder.
    Folder(u32),
    /// A link, and its target.
    Link(u32, &'a [u8]),
}

/// An entry of a folder.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name, checked.
    pub name: Vec<u8>,
    /// Where to go on behind it; not zero.
    pub cookie: u64,
    /// What the name stands for, if the server says.
    pub file: Option<(Handle, Attributes)>,
}

/// A part of a folder.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Of the cookies.
    pub verifier: Verifier,
    /// Entries; `.` and `..` are left out.
    pub entries: Vec<Listed>,
    /// The last cookie, which may be that of an entry that is left out; none without any.
    pub last: Option<u64>,
    /// There is nothing behind them.
    pub is_end: bool,
}

/// Whether a name may be an entry's.
pub fn is_name(name: &[u8]) -> bool {
    let is_dots = matches!(name, b"." | b"..");
    let length = (1..=file::NAME).contains(&name.len());
    length && !is_dots && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

/// A server's procedures.
pub struct Procedures<T> {
    client: Client<T>,
    /// Bytes that are read at once.
    read: u32,
    /// Bytes that are written at once.
    write: u32,
}

impl<T: Transport> Procedures<T> {
    /// Of a server, before it was asked what it is able to do.
    pub fn new(client: Client<T>) -> Self {
        let room = client.limit().saturating_sub(AROUND);
        // A power of two, so that pages are not cut.
        let most = u32::try_from(room).unwrap_or(u32::MAX).min(LARGEST);
        let most = most.checked_ilog2().map_or(0, |bits| 1 << bits);
        Procedures {
            client,
            read: most,
            write: most,
        }
    }

    /// The client below.
    pub fn client(&mut self) -> &mut Client<T> {
        &mut self.client
    }

    /// Bytes that are read at once.
    pub fn read_size(&self) -> u32 {
        self.read
    }

    /// Bytes that are written at once.
    pub fn write_size(&self) -> u32 {
        self.write
    }

    /// Calls, and again when the server asks for time (`NFS3ERR_JUKEBOX`).
    fn call<R>(
        &mut self,
        procedure: u32,
        arguments: impl Fn(&mut Writer),
        results: impl Fn(&mut Reader<'_>) -> Result<R, Malformed>,
    ) -> Result<R, Errno> {
        const DELAYED: u32 = 10_008;
        for _ in 0..DELAYS {
            let mut reader = self.client.call(procedure, &arguments)?;
            match reader.word()? {
                0 => return Ok(results(&mut reader)?),
                DELAYED => self.client.pause(),
                status => return Err(attributes::error(status)),
            }
        }
        Err(errno::BUSY)
    }

    /// GETATTR.
    pub fn attributes(&mut self, file: &Handle) -> Result<Attributes, Errno> {
        self.call(1, |w| w.opaque(file.bytes()), Attributes::read)
    }

    /// SETATTR.
    pub fn set(&mut self, file: &Handle, set: &Set) -> Result<Change, Errno> {
        let arguments = |w: &mut Writer| {
            w.opaque(file.bytes());
            set.write(w);
            // Whatever the file's time is.
            w.word(0);
        };
        self.call(2, arguments, Change::read)
    }

    /// LOOKUP.
    pub fn look_up(
        &mut self,
        folder: &Handle,
        name: &[u8],
    ) -> Result<(Handle, Option<Attributes>), Errno> {
        let results = |r: &mut Reader<'_>| Ok((Handle::read(r)?, r.optional(Attributes::read)?));
        self.call(3, |w| place(w, folder, name), results)
    }

    /// ACCESS: which of the bits of `wanted` the caller may.
    pub fn access(
        &mut self,
        file: &Handle,
        wanted: u32,
    ) -> Result<(Option<Attributes>, u32), Errno> {
        let arguments = |w: &mut Writer| {
            w.opaque(file.bytes());
            w.word(wanted);
        };
        let results = |r: &mut Reader<'_>| Ok((r.optional(Attributes::read)?, r.word()?));
        self.call(4, arguments, results)
    }

    /// READLINK. The target has no zeros and is not empty.
    pub fn target(&mut self, link: &Handle) -> Result<Vec<u8>, Errno> {
        let results = |r: &mut Reader<'_>| {
            r.optional(Attributes::read)?;
            let target = r.opaque(TARGET)?;
            if target.is_empty() || target.contains(&0) {
                return Err(Malformed);
            }
            Ok(target.to_vec())
        };
        self.call(5, |w| w.opaque(link.bytes()), results)
    }

    /// READ: adds at most `count` bytes to `bytes`; the attributes, and whether the file ends
    /// there.
    pub fn read(
        &mut self,
        file: &Handle,
        offset: u64,
        count: u32,
        bytes: &mut Vec<u8>,
    ) -> Result<(Option<Attributes>, bool), Errno> {
        let arguments = |w: &mut Writer| {
            w.opaque(file.bytes());
            w.double(offset);
            w.word(count);
        };
        let results = |r: &mut Reader<'_>| {
            let attributes = r.optional(Attributes::read)?;
            let said = r.word()?;
            let is_end = r.boolean()?;
            let data = r.opaque(count as usize)?;
            // Nothing, and more to come, would never end.
            if data.len() != said as usize || (data.is_empty() && !is_end) {
                return Err(Malformed);
            }
            Ok((attributes, is_end, data.to_vec()))
        };
        let (attributes, is_end, data) = self.call(6, arguments, results)?;
        bytes.extend(data);
        Ok((attributes, is_end))
    }

    /// WRITE.
    pub fn write(
        &mut self,
        file: &Handle,
        offset: u64,
        bytes: &[u8],
        stable: Stable,
    ) -> Result<Written, Errno> {
        let length = u32::try_from(bytes.len()).map_err(|_| errno::MSGSIZE)?;
        let arguments = |w: &mut Writer| {
            w.opaque(file.bytes());
            w.double(offset);
            w.word(length);
            w.word(stable as u32);
            w.opaque(bytes);
        };
        let results = |r: &mut Reader<'_>| {
            let change = Change::read(r)?;
            let count = r.word()?;
            let how = r.word()?;
            // More than was asked for, or nothing, which would never end; kept less well.
            if count > length || (count == 0 && length > 0) || how > 2 || how < stable as u32 {
                return Err(Malformed);
            }
            Ok(Written {
                count,
                is_stable: how == Stable::File as u32,
                verifier: r.verifier()?,
                change,
            })
        };
        self.call(7, arguments, results)
    }

    /// CREATE, MKDIR and SYMLINK: the new file, if the server says, and the folder's attributes.
    pub fn create(
        &mut self,
        folder: &Handle,
        name: &[u8],
        new: New<'_>,
    ) -> Result<(Option<Handle>, Option<Attributes>, Change), Errno> {
        let with = |mode| Set {
            mode: Some(mode),
            ..Set::default()
        };
        let arguments = |w: &mut Writer| {
            place(w, folder, name);
            match new {
                New::Guarded(mode) => {
                    w.word(1);
                    with(mode).write(w);
                }
                New::Exclusive(verifier) => {
                    w.word(2);
                    w.fixed(&verifier);
                }
                New::Folder(mode) => with(mode).write(w),
                New::Link(mode, target) => {
                    with(mode).write(w);
                    w.opaque(target);
                }
            }
        };
        let procedure = match new {
            New::Guarded(_) | New::Exclusive(_) => 8,
            New::Folder(_) => 9,
            New::Link(..) => 10,
        };
        let results = |r: &mut Reader<'_>| {
            let handle = r.optional(Handle::read)?;
            let attributes = r.optional(Attributes::read)?;
            Ok((handle, attributes, Change::read(r)?))
        };
        self.call(procedure, arguments, results)
    }

    /// REMOVE and RMDIR: the folder's attributes.
    pub fn remove(&mut self, from: &Handle, name: &[u8], is_folder: bool) -> Result<Change, Errno> {
        let procedure = if is_folder { 13 } else { 12 };
        self.call(procedure, |w| place(w, from, name), Change::read)
    }

    /// RENAME: both folders' attributes.
    pub fn rename(
        &mut self,
        from: (&Handle, &[u8]),
        to: (&Handle, &[u8]),
    ) -> Result<(Change, Change), Errno> {
        let arguments = |w: &mut Writer| {
            place(w, from.0, from.1);
            place(w, to.0, to.1);
        };
        let results = |r: &mut Reader<'_>| Ok((Change::read(r)?, Change::read(r)?));
        self.call(14, arguments, results)
    }

    /// LINK: the file's attributes, and the folder's.
    pub fn link(
        &mut self,
        file: &Handle,
        folder: &Handle,
        name: &[u8],
    ) -> Result<(Option<Attributes>, Change), Errno> {
        let arguments = |w: &mut Writer| {
            w.opaque(file.bytes());
            place(w, folder, name);
        };
        let results = |r: &mut Reader<'_>| Ok((r.optional(Attributes::read)?, Change::read(r)?));
        self.call(15, arguments, results)
    }

    /// READDIRPLUS, or READDIR, whose entries are names alone.
    pub fn list(
        &mut self,
        folder: &Handle,
        cookie: u64,
        verifier: Verifier,
        is_plus: bool,
    ) -> Result<Listing, Errno> {
        let room = self.read.max(512);
        let arguments = |w: &mut Writer| {
            w.opaque(folder.bytes());
            w.double(cookie);
            w.fixed(&verifier);
            if is_plus {
                w.word(room / 4);
            }
            w.word(room);
        };
        let procedure = if is_plus { 17 } else { 16 };
        self.call(procedure, arguments, |r| listing(r, cookie, is_plus))
    }

    /// FSSTAT.
    pub fn space(&mut self, root: &Handle) -> Result<Space, Errno> {
        const BLOCK: u64 = 4096;
        let results = |r: &mut Reader<'_>| {
            r.optional(Attributes::read)?;
            let [bytes, _, free, files, _, free_files] = doubles(r)?;
            Ok(Space {
                blocks: bytes / BLOCK,
                free: free.min(bytes) / BLOCK,
                files,
                free_files: free_files.min(files),
            })
        };
        self.call(18, |w| w.opaque(root.bytes()), results)
    }

    /// FSINFO: from now on as much is read and written at once as the server wishes.
    pub fn information(&mut self, root: &Handle) -> Result<(), Errno> {
        let results = |r: &mut Reader<'_>| {
            r.optional(Attributes::read)?;
            // At most, best, in steps of; and the same of writing.
            let read = [r.word()?, r.word()?, r.word()?];
            let write = [r.word()?, r.word()?, r.word()?];
            Ok((read, write))
        };
        let (read, write) = self.call(19, |w| w.opaque(root.bytes()), results)?;
        let size = |now: u32, [most, best, _]: [u32; 3]| {
            let wish = if best == 0 { most } else { best.min(most) };
            let wish = wish.max(512).min(now);
            1 << wish.max(1).ilog2()
        };
        self.read = size(self.read, read);
        self.write = size(self.write, write);
        Ok(())
    }

    /// COMMIT of the whole file.
    pub fn commit(&mut self, file: &Handle) -> Result<(Change, Verifier), Errno> {
        let arguments = |w: &mut Writer| {
            w.opaque(file.bytes());
            w.double(0);
            w.word(0);
        };
        let results = |r: &mut Reader<'_>| Ok((Change::read(r)?, r.verifier()?));
        self.call(21, arguments, results)
    }
}

/// A name in a folder (`diropargs3`).
fn place(writer: &mut Writer, folder: &Handle, name: &[u8]) {
    writer.opaque(folder.bytes());
    writer.opaque(name);
}

fn doubles<const N: usize>(reader: &mut Reader<'_>) -> Result<[u64; N], Malformed> {
    let mut doubles = [0; N];
    for double in &mut doubles {
        *double = reader.double()?;
    }
    Ok(doubles)
}

/// Entries that were asked for from a cookie on.
fn listing(reader: &mut Reader<'_>, from: u64, is_plus: bool) -> Result<Listing, Malformed> {
    reader.optional(Attributes::read)?;
    let mut listing = Listing {
        verifier: reader.verifier()?,
        ..Listing::default()
    };
    while reader.boolean()? {
        // The file's number, which is not what it is known by here.
        reader.double()?;
        let name = reader.opaque(file::NAME)?;
        let cookie = reader.double()?;
        // What leads back to the beginning, or to where this began, would never end.
        if cookie == 0 || cookie == from {
            return Err(Malformed);
        }
        let mut attributes = None;
        let mut handle = None;
        if is_plus {
            attributes = reader.optional(Attributes::read)?;
            handle = reader.optional(Handle::read)?;
        }
        listing.last = Some(cookie);
        if matches!(name, b"." | b"..") {
            continue;
        }
        if !is_name(name) {
            return Err(Malformed);
        }
        listing.entries.push(Listed {
            name: name.to_vec(),
            cookie,
            file: handle.zip(attributes),
        });
    }
    listing.is_end = reader.boolean()?;
    if !listing.is_end && listing.last.is_none() {
        return Err(Malformed);
    }
    Ok(listing)
}

/// What a kind is called where it has to be one of three.
pub fn kind(attributes: &Attributes) -> Result<Kind, Errno> {
    attributes.kind.ok_or(errno::NOTSUP)
}
