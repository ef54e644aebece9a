//! Why a source has no packets.

use postern::{MemoryError, ShareError};
use postern_filter::capture::CaptureError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why packets cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file cannot be opened.
    #[error("cannot read {}: {}", path.display(), error)]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is no capture file, or damaged.
    #[error(transparent)]
    Format(#[from] CaptureError),
    /// The interface cannot be captured.
    #[error("cannot capture on {name}: {error}{}", hint(.error))]
    Interface {
        /// Its name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// Packets of a link that filters do not know.
    #[error("the packets of {0} are of a link that filters do not know (its hardware type is {1})")]
    Hardware(String, u16),
    /// Reading failed.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The bytes cannot be mapped.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// The packet is not there any more.
    #[error("{0}; a file that is read must not shrink meanwhile")]
    Gone(#[from] MemoryError),
    /// The file is shorter than it was when it was opened.
    #[error("the file was cut short while it was read; what follows is lost")]
    Shrunk,
    /// The ring is not as the kernel leaves it.
    #[error("the ring is damaged: {0}")]
    Ring(&'static str),
}

impl SourceError {
    pub(crate) fn opening(path: &Path, error: io::Error) -> SourceError {
        SourceError::Open {
            path: path.to_owned(),
            error,
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "; it needs CAP_NET_RAW: run as root, or `setcap cap_net_raw+ep` on the program"
        }
        Some(libc::ENETDOWN) => "; bring it up: `ip link set NAME up`",
        Some(libc::ENODEV) => "; `postern filter -D` lists the interfaces",
        _ => "",
    }
}
