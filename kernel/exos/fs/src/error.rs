//! What can go wrong, and what callers of [`Files`](postern_exos_abi::file::Files) are told.

use core::fmt;

use postern_exos_abi::errno::{self, Errno};

use crate::disk::DiskError;

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// What `Files` says of names, kinds and numbers.
    Refused(Errno),
    /// No free block is left.
    NoSpace,
    /// No free number is left.
    NoNodes,
    /// The disk did not do it.
    Disk(DiskError),
    /// A block does not have what belongs there: its number, and what was looked for.
    Corrupt(u64, &'static str),
    /// No superblock is valid: the disk was never formatted, or not by this.
    NoFileSystem,
    /// The disk has fewer blocks than the file system.
    TooShort,
    /// The disk is too small, or too large, for a file system.
    Size,
    /// So few frames do not do; [`FRAMES`](crate::FRAMES) do.
    Frames,
    /// An earlier error of the disk: nothing is changed any more until the file system is mounted
    /// anew.
    Broken,
    /// The transaction is full. Never seen outside: the operation begins anew in the next one.
    Full,
}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Error {
        Error::Disk(error)
    }
}

impl From<Errno> for Error {
    fn from(error: Errno) -> Error {
        Error::Refused(error)
    }
}

impl Error {
    /// As callers see it.
    pub const fn errno(self) -> Errno {
        match self {
            Error::Refused(errno) => errno,
            Error::NoSpace | Error::NoNodes | Error::Full => errno::NOSPC,
            Error::Broken => errno::ROFS,
            Error::NoFileSystem | Error::Size | Error::Frames => errno::INVAL,
            Error::Disk(_) | Error::Corrupt(..) | Error::TooShort => errno::IO,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(errno) => write!(formatter, "{errno}"),
            Error::NoSpace => formatter.write_str("no free block is left: remove something"),
            Error::NoNodes => formatter.write_str("no more files are possible: remove some"),
            Error::Disk(DiskError::Beyond) => formatter.write_str("the disk has no such block"),
            Error::Disk(DiskError::Device) => {
                formatter.write_str("the disk did not do what was asked")
            }
            Error::Corrupt(block, what) => {
                write!(
                    formatter,
                    "block {block} is no {what} as it should be: check the disk"
                )
            }
            Error::NoFileSystem => formatter.write_str("no superblock: format the disk first"),
            Error::TooShort => formatter.write_str("the disk is shorter than its file system"),
            Error::Size => {
                formatter.write_str("a disk has 64 blocks at least, and 2^32 - 1 at most")
            }
            Error::Frames => formatter.write_str("the cache has too few frames"),
            Error::Broken => formatter.write_str("the disk failed earlier: mount it anew"),
            Error::Full => formatter.write_str("the transaction is full"),
        }
    }
}

impl core::error::Error for Error {}
