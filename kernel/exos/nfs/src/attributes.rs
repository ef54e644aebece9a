//! What a server says of a file (RFC 1813, section 2.5), checked.

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Kind;

use crate::xdr::{Malformed, Reader, Writer};

/// Bytes of a file handle at most (section 2.4).
pub const HANDLE: usize = 64;

/// What a server calls a file by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle {
    length: u8,
    bytes: [u8; HANDLE],
}

impl Handle {
    /// Of one to [`HANDLE`] bytes.
    pub fn new(from: &[u8]) -> Option<Handle> {
        if from.is_empty() {
            return None;
        }
        let mut bytes = [0; HANDLE];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        let length = u8::try_from(from.len()).ok()?;
        Some(Handle { length, bytes })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or(&[])
    }

    /// From a message.
    pub fn read(reader: &mut Reader<'_>) -> Result<Handle, Malformed> {
        Handle::new(reader.opaque(HANDLE)?).ok_or(Malformed)
    }
}

/// Attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// What it is; none for devices, pipes and sockets, which are the server's own.
    pub kind: Option<Kind>,
    /// Permissions.
    pub mode: u32,
    /// Names that it has.
    pub links: u32,
    /// Bytes.
    pub size: u64,
    /// Bytes on the server's disk.
    pub used: u64,
    /// When its bytes were changed last, in nanoseconds since 1970.
    pub modified: u64,
    /// When anything of it was.
    pub changed: u64,
}

/// What tells whether a file is as it was.
pub type Stamp = (u64, u64, u64);

/// Nanoseconds since 1970.
fn time(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let seconds = u64::from(reader.word()?);
    let nanoseconds = u64::from(reader.word()?);
    if nanoseconds >= 1_000_000_000 {
        return Err(Malformed);
    }
    Ok(seconds * 1_000_000_000 + nanoseconds)
}

fn size(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    // Offsets have a sign in C.
    let size = reader.double()?;
    i64::try_from(size).map(|_| size).map_err(|_| Malformed)
}

impl Attributes {
    /// From a message (`fattr3`).
    pub fn read(reader: &mut Reader<'_>) -> Result<Attributes, Malformed> {
        let kind = match reader.word()? {
            1 => Some(Kind::File),
            2 => Some(Kind::Folder),
            5 => Some(Kind::Link),
            3 | 4 | 6 | 7 => None,
            _ => return Err(Malformed),
        };
        let mode = reader.word()? & 0o777;
        let links = reader.word()?;
        // The owner and its group: who may do what is the server's to say.
        reader.double()?;
        let size = size(reader)?;
        let used = reader.double()?;
        // A device's numbers, the file system, the file's number there, the last reading.
        for _ in 0..4 {
            reader.double()?;
        }
        Ok(Attributes {
            kind,
            mode,
            links,
            size,
            used,
            modified: time(reader)?,
            changed: time(reader)?,
        })
    }

    /// What changes with the file.
    pub fn stamp(&self) -> Stamp {
        (self.size, self.modified, self.changed)
    }
}

/// Attributes before and after an operation, each if the server says (`wcc_data`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub before: Option<Stamp>,
    /// After.
    pub after: Option<Attributes>,
}

impl Change {
    /// From a message.
    pub fn read(reader: &mut Reader<'_>) -> Result<Change, Malformed> {
        let before = reader.optional(|reader| Ok((size(reader)?, time(reader)?, time(reader)?)))?;
        let after = reader.optional(Attributes::read)?;
        Ok(Change { before, after })
    }
}

/// The time to which one is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetTime {
    /// As it is.
    #[default]
    Same,
    /// The server's.
    Now,
    /// Nanoseconds since 1970.
    To(u64),
}

impl SetTime {
    fn write(self, writer: &mut Writer) {
        match self {
            SetTime::Same => writer.word(0),
            SetTime::Now => writer.word(1),
            SetTime::To(time) => {
                writer.word(2);
                let seconds = time / 1_000_000_000;
                writer.word(u32::try_from(seconds).unwrap_or(u32::MAX));
                writer.word((time % 1_000_000_000) as u32);
            }
        }
    }
}

/// Attributes to be set (`sattr3`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Permissions.
    pub mode: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// The last reading.
    pub read: SetTime,
    /// The last change of bytes.
    pub modified: SetTime,
}

impl Set {
    /// Into a message.
    pub fn write(&self, writer: &mut Writer) {
        writer.word(self.mode.is_some().into());
        if let Some(mode) = self.mode {
            writer.word(mode);
        }
        // Neither owner nor group.
        writer.double(0);
        writer.word(self.size.is_some().into());
        if let Some(size) = self.size {
            writer.double(size);
        }
        self.read.write(writer);
        self.modified.write(writer);
    }
}

/// The error that a status other than zero stands for (`nfsstat3`).
pub fn error(status: u32) -> Errno {
    match status {
        1 => errno::PERM,
        2 => errno::NOENT,
        // Also: I/O, no such device, and what is new.
        6 | 19 => errno::NODEV,
        13 => errno::ACCES,
        17 => errno::EXIST,
        18 => errno::XDEV,
        20 => errno::NOTDIR,
        21 => errno::ISDIR,
        22 => errno::INVAL,
        27 => errno::FBIG,
        28 | 69 => errno::NOSPC,
        30 => errno::ROFS,
        31 => errno::MLINK,
        63 => errno::NAMETOOLONG,
        66 => errno::NOTEMPTY,
        // Stale, or of another file system, or no handle at all.
        70 | 71 | 10001 => errno::STALE,
        10004 => errno::NOTSUP,
        _ => errno::IO,
    }
}
