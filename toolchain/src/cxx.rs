//! The C++ library of extensions: libstdc++ of the compiler that is in use, built by this driver at
//! first use into the user's cache, on top of the C library.
//!
//! The headers are the compiler's own, with those few of another system that say how the C library
//! is (`configuration`). The library's source is the Debian package `gcc-VERSION-source`. Without
//! that package C++ is compiled as before, without exceptions, run-time types and a library.

mod build;
mod configuration;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::archive::LibraryError;
use crate::cache::{built, cached};
use crate::compile::{Headers, MAKER};
use crate::sysroot::Sysroot;

/// Our own files of the library.
const SOURCES: &[(&str, &str)] = &[
    ("pure.cc", include_str!("../lib/cxx/pure.cc")),
    ("terminate.cc", include_str!("../lib/cxx/terminate.cc")),
    ("thread_exit.cc", include_str!("../lib/cxx/thread_exit.cc")),
];

/// A C++ library that can be compiled against; linking needs [`CxxLibrary::archive`], too.
#[derive(Clone, Debug)]
pub struct CxxLibrary {
    /// The folder in the cache.
    folder: PathBuf,
    /// The compiler's own folder of headers.
    headers: PathBuf,
    /// The compiler's own folder of headers for every language.
    own: PathBuf,
    sysroot: Sysroot,
}

impl CxxLibrary {
    /// The library for a compiler whose headers of its own are in `own` (`…/12/include`), on top of
    /// `sysroot`, with its headers made if need be; none if the compiler's source is not installed.
    ///
    /// # Errors
    /// The headers are missing, or the cache cannot be written.
    pub fn find(own: &Path, sysroot: &Sysroot) -> Result<Option<Self>, LibraryError> {
        let version = own.parent().and_then(Path::file_name).unwrap_or_default();
        let version = version.to_string_lossy();
        let Some(source) = source(&version) else {
            return Ok(None);
        };
        let headers = PathBuf::from(format!("/usr/include/c++/{version}"));
        let installed = PathBuf::from(format!("/usr/include/x86_64-linux-gnu/c++/{version}"));
        if !headers.is_dir() || !installed.is_dir() {
            return Err(LibraryError::NoHeaders(headers));
        }
        let mut hasher = DefaultHasher::new();
        let metadata = std::fs::metadata(&source);
        let length = metadata.as_ref().map_or(0, std::fs::Metadata::len);
        (&source, length, sysroot.path()).hash(&mut hasher);
        (SOURCES, configuration::IDENTITY, build::IDENTITY).hash(&mut hasher);
        MAKER.hash(&mut hasher);
        let name = format!("sysroot-cxx-{:016x}", hasher.finish());
        let folder = cached(&name, |folder| {
            build::unpack(&source, folder)?;
            configuration::write(folder, &installed)?;
            Ok::<(), LibraryError>(())
        })?;
        Ok(Some(Self {
            folder,
            headers,
            own: own.to_owned(),
            sysroot: sysroot.clone(),
        }))
    }

    /// The folders of headers, in the order in which the compiler is to search them, before C's.
    pub fn include(&self) -> [PathBuf; 3] {
        [
            self.folder.join("include"),
            self.headers.clone(),
            self.headers.join("backward"),
        ]
    }

    /// Whether the library may define the symbol `name`.
    pub fn may_define(name: &str) -> bool {
        ["_Z", "__cxa_", "__gxx_", "__dynamic_cast"]
            .iter()
            .any(|start| name.starts_with(start))
    }

    /// `libstdc++.a`, built if need be.
    ///
    /// # Errors
    /// A file could not be compiled or written.
    pub fn archive(&self) -> Result<PathBuf, LibraryError> {
        let lib = built(&self.folder, |lib| {
            let mut headers = Headers {
                folders: self.include().to_vec(),
                cxx: true,
            };
            headers
                .folders
                .extend([self.own.clone(), self.sysroot.include()]);
            build::build(&self.folder, &headers, lib)
        })?;
        Ok(lib.join("libstdc++.a"))
    }
}

/// The source of the compiler's version that Debian's package installs.
fn source(version: &str) -> Option<PathBuf> {
    let folder = format!("/usr/src/gcc-{version}");
    let mut archives: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("gcc-") && name.contains(".tar")
        })
        .collect();
    archives.sort();
    archives.pop()
}
