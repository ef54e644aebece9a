//! Images of the machine's disk, as files of the host: read and changed by the file system's own
//! crate, and made anew as they would be after a power cut.
//!
//! | module | what |
//! |---|---|
//! | [`image`] | an image as a disk |
//! | [`overlay`] | changes of a disk that are not kept |
//! | [`tree`] | files of an image |
//! | [`log`] | what the emulator recorded of a disk: writes and flushes |
//! | [`promise`] | what a program in the machine said was on the disk for good |
//! | [`replay`] | the disk at each moment of a record, looked at |

pub mod image;
pub mod log;
pub mod overlay;
pub mod promise;
pub mod replay;
pub mod tree;

use postern_exos_fs::Error;
use std::path::PathBuf;
use thiserror::Error;

/// Why something was not done with an image.
#[derive(Debug, Error)]
pub enum ImageError {
    /// It cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, std::io::Error),
    /// There is no file system on it, or it is not as it should be.
    #[error("{path}: {1}", path = .0.display())]
    Files(PathBuf, Error),
    /// There is something already.
    #[error("{path} is there already: --force makes it anew", path = .0.display())]
    IsThere(PathBuf),
    /// A path in the image.
    #[error("{0}: {1}")]
    Path(String, &'static str),
    /// No record of writes.
    #[error("{path} is no record of writes: {1}", path = .0.display())]
    Log(PathBuf, &'static str),
}

/// Frames for work with an image.
pub const FRAMES: usize = 4096;
