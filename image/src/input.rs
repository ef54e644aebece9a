//! Whole files, read after a look at what they are.
//!
//! A path is often somebody else's word: it may lead to a pipe that nobody writes to, to a device
//! that never ends, or to a file of which nothing but the length was ever written. So only regular
//! files are read, and no more of them than the caller says; what is anything else is not even
//! opened.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Bytes of an extension file, or of anything else in binary form, that are read unless the caller
/// says otherwise: 256 MiB.
pub const MAX_FILE: u64 = 256 << 20;
/// Bytes of a source or of settings that are read: 16 MiB.
pub const MAX_TEXT: u64 = 16 << 20;

/// A file was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system says why.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something whose end nobody knows.
    #[error("it is {0}, and only regular files are read here; copy what it gives into one")]
    Kind(&'static str),
    /// It is too long.
    #[error(
        "it has {size} bytes and at most {most} are read; make it smaller, or give a higher limit if you trust it"
    )]
    TooLarge {
        /// Its length, or the least that it can be.
        size: u64,
        /// What the caller allows.
        most: u64,
    },
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> io::Error {
        match error {
            ReadError::Io(error) => error,
            ReadError::Kind(_) => io::Error::new(io::ErrorKind::InvalidInput, error),
            ReadError::TooLarge { .. } => io::Error::new(io::ErrorKind::FileTooLarge, error),
        }
    }
}

/// Opens a regular file of at most `most` bytes to be read.
///
/// # Errors
/// It is none, is longer, or cannot be opened.
pub fn open(path: impl AsRef<Path>, most: u64) -> Result<File, ReadError> {
    /// `O_NONBLOCK` and `O_NOCTTY` of Linux: whoever puts a pipe or a terminal there just now gets
    /// nothing for it.
    const QUIET: i32 = 0o4000 | 0o400;
    let path = path.as_ref();
    check(&std::fs::metadata(path)?, most)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(QUIET)
        .open(path)?;
    check(&file.metadata()?, most)?;
    Ok(file)
}

/// All of a regular file. What it grows by meanwhile counts.
///
/// # Errors
/// As [`open`].
pub fn read(path: impl AsRef<Path>, most: u64) -> Result<Vec<u8>, ReadError> {
    let file = open(path, most)?;
    let size = file.metadata()?.len().min(most);
    let mut bytes = Vec::new();
    let room = usize::try_from(size).unwrap_or(usize::MAX);
    let full = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    bytes.try_reserve_exact(room).map_err(full)?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        size if size > most => Err(ReadError::TooLarge { size, most }),
        _ => Ok(bytes),
    }
}

/// As [`read`], of text.
///
/// # Errors
/// As [`open`]; or it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>, most: u64) -> Result<String, ReadError> {
    String::from_utf8(read(path, most)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error).into())
}

fn check(found: &Metadata, most: u64) -> Result<(), ReadError> {
    match found.len() {
        _ if !found.is_file() => Err(ReadError::Kind(kind(found.file_type()))),
        size if size > most => Err(ReadError::TooLarge { size, most }),
        _ => Ok(()),
    }
}

fn kind(found: FileType) -> &'static str {
    match () {
        () if found.is_dir() => "a directory",
        () if found.is_fifo() => "a pipe",
        () if found.is_socket() => "a socket",
        () if found.is_char_device() || found.is_block_device() => "a device",
        () => "something else",
    }
}
