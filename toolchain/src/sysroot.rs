//! The C library of extensions: newlib, built by this driver at first use into the user's cache.
//!
//! A sysroot is a folder with `include` and `lib`. Its name is a hash of all that goes into it, so that it is never stale.
//! It comes in two stages, each written under another name and renamed when it is whole: the headers (seconds) before the
//! first compilation, and `libc.a` and `libm.a` before the first link that asks for something in them.

mod announce;
mod compile;
mod makefile;
mod parts;
mod source;

pub(crate) use announce::{Lock, Progress};
pub(crate) use compile::{Job, run_all};

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::driver::DriverError;
use crate::library;

/// Why there is no C library.
#[derive(Debug, thiserror::Error)]
pub enum SysrootError {
    /// newlib's source is not on this machine.
    #[error(
        "the C library's source was not found: install it with `apt install newlib-source`, or let POSTERN_NEWLIB name its archive \
         (newlib-3.3.0.tar.xz) or an unpacked folder; with -ffreestanding it is not needed"
    )]
    NoSource,
    /// It is there, but is not what it should be.
    #[error("{}: {reason}", path.display())]
    Source {
        /// The archive or folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Files that could not be compiled.
    #[error(
        "{count} of the C library's files could not be compiled; the first is {first}: {message}"
    )]
    Compile {
        /// How many.
        count: usize,
        /// The first one's name.
        first: String,
        /// What was said about it.
        message: String,
    },
}

/// A C library that can be compiled against; linking needs [`Sysroot::library`], too.
#[derive(Clone, Debug)]
pub struct Sysroot {
    folder: PathBuf,
}

impl Sysroot {
    /// The sysroot whose headers are there, made if need be.
    ///
    /// # Errors
    /// newlib's source is missing, or a file cannot be written.
    pub fn headers() -> Result<Self, DriverError> {
        if let Some(folder) = std::env::var_os("POSTERN_SYSROOT") {
            return Ok(Self {
                folder: folder.into(),
            });
        }
        let source = source::Source::find()?;
        let folder = library::cached(&format!("sysroot-{:016x}", key(&source)), |folder| {
            parts::write_headers(&source, folder)
        })?;
        Ok(Self { folder })
    }

    /// The folder that has `include` and, once built, `lib`.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The headers' folder.
    pub fn include(&self) -> PathBuf {
        self.folder.join("include")
    }

    /// Whether a header says this name: whether the library may define a symbol that nobody else does.
    pub fn declares(&self, name: &str) -> bool {
        std::fs::read_to_string(self.folder.join("names"))
            .is_ok_and(|names| names.split('\n').any(|line| line == name))
    }

    /// The folder of `libc.a` and `libm.a`, built if need be.
    ///
    /// # Errors
    /// The library cannot be built: its source is missing or could not be compiled.
    pub fn library(&self) -> Result<PathBuf, DriverError> {
        let folder = self.folder.join("lib");
        if folder.exists() {
            return Ok(folder);
        }
        let _lock = announce::Lock::take(&self.folder.join("lock"))?;
        if folder.exists() {
            return Ok(folder);
        }
        let unfinished = self.folder.join("lib.unfinished");
        let _ = std::fs::remove_dir_all(&unfinished);
        let result = source::Source::find()
            .map_err(DriverError::from)
            .and_then(|source| compile::build(&source, &self.include(), &unfinished));
        let result = result.and_then(|()| {
            std::fs::rename(&unfinished, &folder).map_err(|source| DriverError::File {
                path: folder.clone(),
                source,
            })
        });
        let _ = std::fs::remove_dir_all(&unfinished);
        result.map(|()| folder)
    }

    /// Forgets what was built.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub fn remove(self) -> Result<(), DriverError> {
        let error = |source| DriverError::File {
            path: self.folder.clone(),
            source,
        };
        std::fs::remove_dir_all(&self.folder).map_err(error)
    }
}

/// A hash of everything that goes into the sysroot.
fn key(source: &source::Source) -> u64 {
    let mut hasher = DefaultHasher::new();
    source.identity().hash(&mut hasher);
    parts::identify(&mut hasher);
    library::MAKER.hash(&mut hasher);
    hasher.finish()
}

fn is_source(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("c"))
}
