//! The C library of extensions: newlib, built by this driver at first use into the user's cache;
//! and the same library for programs of ExOS, in the processor's plain code.
//!
//! A sysroot is a folder with `include` and `lib`. Its name is a hash of all that goes into it, so
//! that it is never stale. It comes in two stages: the headers (seconds) before the first
//! compilation, and `libc.a` and `libm.a` before the first link that asks for something in them.

mod compile;
mod exos;
mod makefile;
mod parts;
mod source;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::archive::LibraryError;
use crate::cache::{built, cached};
use crate::compile::{Headers, Language, MAKER};
use crate::error::CompileError;
use parts::Target;

/// A C library that can be compiled against; linking needs [`Sysroot::library`], too.
#[derive(Clone, Debug)]
pub struct Sysroot {
    folder: PathBuf,
    target: &'static Target,
}

impl Sysroot {
    /// The sysroot whose headers are there, made if need be.
    ///
    /// # Errors
    /// newlib's source is missing, or a file cannot be written.
    pub fn headers() -> Result<Self, LibraryError> {
        if let Some(folder) = std::env::var_os("POSTERN_SYSROOT") {
            return Ok(Self {
                folder: folder.into(),
                target: &parts::EXTENSIONS,
            });
        }
        Self::of(&parts::EXTENSIONS)
    }

    /// The same for programs of ExOS.
    ///
    /// # Errors
    /// newlib's source is missing, or a file cannot be written.
    pub fn exos() -> Result<Self, LibraryError> {
        Self::of(&exos::PROGRAMS)
    }

    fn of(target: &'static Target) -> Result<Self, LibraryError> {
        let source = source::Source::find()?;
        let name = format!("{}-{:016x}", target.name, key(&source, target));
        let folder = cached(&name, |folder| {
            parts::write_headers(&source, target, folder)
        })?;
        Ok(Self { folder, target })
    }

    /// The folder that has `include` and, once built, `lib`.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The headers' folder.
    pub fn include(&self) -> PathBuf {
        self.folder.join("include")
    }

    /// Whether a header says one of these names: whether the library may define a symbol that
    /// nobody else does.
    pub fn declares_one_of(&self, wanted: &HashSet<&str>) -> bool {
        std::fs::read_to_string(self.folder.join("names"))
            .is_ok_and(|names| names.split('\n').any(|name| wanted.contains(name)))
    }

    /// The folder of `libc.a` and `libm.a`, built if need be.
    ///
    /// # Errors
    /// The library cannot be built: its source is missing or could not be compiled.
    pub fn library(&self) -> Result<PathBuf, LibraryError> {
        built(&self.folder, |lib| {
            let headers = Headers {
                folders: vec![Language::C.own_headers()?, self.include()],
                cxx: false,
            };
            compile::build(&source::Source::find()?, self.target, &headers, lib)
        })
    }

    /// Forgets what was built.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub fn remove(self) -> Result<(), LibraryError> {
        let error = CompileError::file(&self.folder);
        Ok(std::fs::remove_dir_all(&self.folder).map_err(error)?)
    }
}

/// A hash of everything that goes into the sysroot.
fn key(source: &source::Source, target: &Target) -> u64 {
    let mut hasher = DefaultHasher::new();
    source.identity().hash(&mut hasher);
    parts::identify(target, &mut hasher);
    match target.plain {
        true => include_str!("archive.rs").hash(&mut hasher),
        false => MAKER.hash(&mut hasher),
    }
    hasher.finish()
}

fn is_source(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("c"))
}
