//! newlib's source: where it is, and its files.

use std::path::{Path, PathBuf};

use super::parts;
use crate::archive::LibraryError;
use crate::error::CompileError;
use crate::tools::Tool;

/// Where Debian's package newlib-source puts the archive.
const PACKAGE: &str = "/usr/src/newlib";

/// An archive or an unpacked folder.
pub struct Source {
    path: PathBuf,
}

impl Source {
    /// The one that `POSTERN_NEWLIB` names, else the package's.
    pub fn find() -> Result<Self, LibraryError> {
        if let Some(path) = std::env::var_os("POSTERN_NEWLIB") {
            let path = PathBuf::from(path);
            if !path.exists() {
                return Err(LibraryError::Source {
                    path,
                    reason: "POSTERN_NEWLIB names this, and it is not there".to_owned(),
                });
            }
            return Ok(Self { path });
        }
        let mut archives: Vec<PathBuf> = std::fs::read_dir(PACKAGE)
            .map_err(|_| LibraryError::NoSource)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("newlib-") && name.contains(".tar")
            })
            .collect();
        archives.sort();
        archives
            .pop()
            .map(|path| Self { path })
            .ok_or(LibraryError::NoSource)
    }

    /// What tells this source from another one.
    pub fn identity(&self) -> (PathBuf, u64, Option<std::time::SystemTime>) {
        let metadata = std::fs::metadata(&self.path);
        let length = metadata.as_ref().map_or(0, std::fs::Metadata::len);
        let time = metadata.ok().and_then(|metadata| metadata.modified().ok());
        (self.path.clone(), length, time)
    }

    /// The folder that holds `libc` and `libm`, unpacked or copied into `scratch`.
    pub fn unpack(&self, scratch: &Path) -> Result<PathBuf, LibraryError> {
        let root = if self.path.is_dir() {
            // A copy, since corrections are written into it.
            let inner = self.path.join("newlib");
            let from = if inner.is_dir() { &inner } else { &self.path };
            for part in ["libc", "libm"] {
                copy(&from.join(part), &scratch.join("newlib").join(part))?;
            }
            scratch.to_owned()
        } else {
            Tool::Unpacker
                .command()
                .arg("-xf")
                .arg(&self.path)
                .arg("-C")
                .arg(scratch)
                .args(["--strip-components=1", "--wildcards"])
                .args(["*/newlib/libc", "*/newlib/libm"])
                .args(["--exclude=*/libc/sys/*", "--exclude=*/libm/test/*"])
                .run()?;
            scratch.to_owned()
        };
        let root = if root.join("newlib").is_dir() {
            root.join("newlib")
        } else {
            root
        };
        if !root.join("libc/stdio/Makefile.am").is_file() {
            return Err(LibraryError::Source {
                path: self.path.clone(),
                reason: "this is not newlib's source in the form of version 3.3.0 (newlib/libc/stdio/Makefile.am is missing)"
                    .to_owned(),
            });
        }
        Ok(root)
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), CompileError> {
    for entry in parts::entries(from)? {
        let target = to.join(entry.file_name().unwrap_or_default());
        if entry.is_dir() {
            copy(&entry, &target)?;
        } else {
            parts::create(to)?;
            std::fs::copy(&entry, &target).map_err(CompileError::file(&entry))?;
        }
    }
    Ok(())
}
