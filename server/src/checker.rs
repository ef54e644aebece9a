//! What is wrong with a site's file, and where: checks that the server's own tables and those of
//! components have in common.
//!
//! Invariant: an error names the file and the key.

use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// The file's name.
pub const FILE: &str = "serve.toml";

/// What is wrong with a site, and where.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, or a key that there is not.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// With line and column.
        message: String,
    },
    /// A value that makes no sense.
    #[error("{}: {key}: {message}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key, with its table.
        key: String,
        /// What would make sense.
        message: String,
    },
    /// Nothing to serve.
    #[error(
        "{} has nothing to serve: put files into {}/public, programs into {}/handlers, or write a {FILE}",
        .0.display(), .0.display(), .0.display()
    )]
    Nothing(PathBuf),
}

/// Checks what stands in one file. Its errors name the file and the key.
pub struct Checker<'a> {
    /// Paths begin there.
    pub(crate) folder: &'a Path,
    /// The file, for complaints.
    pub(crate) path: PathBuf,
    /// All of it.
    pub(crate) text: &'a str,
}

impl Checker<'_> {
    /// The error for a key's value.
    pub fn wrong(&self, key: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::Value {
            path: self.path.clone(),
            key: key.into(),
            message: message.into(),
        }
    }

    /// An address with a port.
    pub(crate) fn address(&self, key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
        text.parse().map_err(|_| {
            self.wrong(
                key,
                format!("`{text}` is no address with a port, like 127.0.0.1:8080 or [::]:80"),
            )
        })
    }

    /// A file, or a folder, that is there.
    ///
    /// # Errors
    /// It is not.
    pub fn there(&self, key: &str, path: &Path, folder: bool) -> Result<PathBuf, ConfigError> {
        let full = self.folder.join(path);
        let what = if folder { "folder" } else { "file" };
        match std::fs::metadata(&full) {
            Ok(found) if found.is_dir() == folder => Ok(full),
            Ok(_) => Err(self.wrong(key, format!("{} is no {what}", full.display()))),
            Err(error) => Err(self.wrong(
                key,
                format!("there is no {what} {}: {error}", full.display()),
            )),
        }
    }

    /// A number that is not 0.
    ///
    /// # Errors
    /// It is.
    pub fn positive<N: PartialEq + Default>(&self, key: &str, number: N) -> Result<N, ConfigError> {
        match number == N::default() {
            true => Err(self.wrong(key, "must be more than 0")),
            false => Ok(number),
        }
    }

    /// A time that is not 0.
    ///
    /// # Errors
    /// It is.
    pub fn time(&self, key: &str, milliseconds: u64) -> Result<Duration, ConfigError> {
        self.positive(key, milliseconds).map(Duration::from_millis)
    }

    /// The file as `T` has it. The whole file's keys are known already; `T` has those that are a
    /// component's.
    ///
    /// # Errors
    /// A key that there is not, or a value of another type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        toml::from_str(self.text).map_err(|error| ConfigError::Syntax {
            path: self.path.clone(),
            message: error.to_string().trim_end().to_owned(),
        })
    }
}
