//! Why there is no experiment.

use std::path::{Path, PathBuf};

/// Why an experiment cannot be made, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Options(String),
    /// The compiler's word.
    #[error("manager.c cannot be built: {0}")]
    Build(String),
    /// A file, a folder, a system call.
    #[error("{what}: {reason}")]
    System {
        /// What was tried, and with what.
        what: String,
        /// The kernel's reason.
        reason: std::io::Error,
    },
    /// The library's word: the image, the domain, a function, an attachment.
    #[error("the manager's domain: {0}")]
    Domain(String),
    /// It ended, or said something else.
    #[error("the process `{name}` {what}")]
    Process {
        /// Its name.
        name: String,
        /// What it did.
        what: String,
    },
    /// The plotter's word.
    #[error("{}: the plot cannot be drawn: {reason}", path.display())]
    Plot {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl Error {
    /// A failed system call.
    pub fn system(what: impl Into<String>, reason: std::io::Error) -> Error {
        let what = what.into();
        Error::System { what, reason }
    }

    /// A failed use of a file.
    pub fn file(path: &Path, reason: std::io::Error) -> Error {
        Error::system(path.display().to_string(), reason)
    }

    /// What the library says of the domain.
    pub fn domain(error: impl std::fmt::Display) -> Error {
        Error::Domain(error.to_string())
    }
}
