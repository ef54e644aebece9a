//! Why nothing was built or run.

use std::path::{Path, PathBuf};

/// Why nothing was built or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// cargo said why.
    #[error("")]
    Told,
    /// A program could not be started.
    #[error("`{program}` could not be run: {source}")]
    Start {
        /// Which.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Compiling or linking.
    #[error(transparent)]
    Compile(#[from] postern_toolchain::DriverError),
    /// Anything else, as a sentence.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// For `map_err`: what is wrong with the file at `path`.
    pub fn file(path: &Path) -> impl Fn(std::io::Error) -> Error + use<> {
        let path = path.to_owned();
        move |source| Error::File {
            path: path.clone(),
            source,
        }
    }
}
