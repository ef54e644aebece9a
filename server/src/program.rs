//! From a handler's source to what is run: an extension, a shared object, or a program.
//!
//! What is no C or C++ is taken as it is: somebody has built it.

use crate::settings::{HandlerSettings, Run};
use postern_toolchain::Language;
use postern_toolchain::driver::run_captured;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// The header for programs.
pub const LIBCGI: &str = include_str!("../include/libcgi.h");

/// A program was not built; what the compiler says, with file and line.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct BuildError(String);

/// Where programs are built. It goes with the server.
#[derive(Debug)]
pub struct BuildFolder {
    folder: tempfile::TempDir,
    built: AtomicU64,
    /// Locked as long as the server lives, however it ends: whoever finds it unlocked may clear it
    /// away.
    _lock: File,
}

/// What the folders' names begin with.
const PREFIX: &str = "postern-serve-";

impl BuildFolder {
    /// A new folder, with the header in it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> io::Result<BuildFolder> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(place: &Path) -> io::Result<BuildFolder> {
        clear(place);
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
            // Another server may find it before it is locked, and clear it away: before it is
            // opened here, or after.
            let lock = match File::open(folder.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                lock => lock?,
            };
            flock(&lock, FlockOperation::LockExclusive)?;
            let there = std::fs::metadata(folder.path());
            if !there.is_ok_and(|there| lock.metadata().is_ok_and(|l| l.ino() == there.ino())) {
                continue;
            }
            std::fs::write(folder.path().join("libcgi.h"), LIBCGI)?;
            return Ok(BuildFolder {
                folder,
                built: AtomicU64::new(0),
                _lock: lock,
            });
        }
    }

    /// Whether a program is a source to be compiled.
    pub fn is_source(path: &Path) -> bool {
        Language::of(path).is_some()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What is to be run for a handler; a new file if it was compiled.
    ///
    /// # Errors
    /// As the compiler says it.
    pub fn build(&self, settings: &HandlerSettings) -> Result<PathBuf, BuildError> {
        let Some(language) = Language::of(&settings.program) else {
            return Ok(settings.program.clone());
        };
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let stem = settings
            .program
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let extension = match settings.run {
            Run::Protected => "px",
            Run::Unprotected => "so",
            Run::Fastcgi => "fcgi",
            Run::Cgi => "cgi",
        };
        let output = self
            .folder
            .path()
            .join(format!("{stem}-{number}.{extension}"));
        let mut arguments: Vec<OsString> = vec![
            "-O2".into(),
            "-g".into(),
            "-I".into(),
            self.folder.path().into(),
        ];
        arguments.extend(settings.flags.iter().map(Into::into));
        arguments.push(settings.program.clone().into());
        arguments.extend(settings.sources.iter().map(Into::into));
        arguments.extend(["-o".into(), output.clone().into()]);
        match settings.run {
            Run::Protected => {
                run_captured(language, &arguments)
                    .map_err(|error| BuildError(error.to_string()))?;
            }
            Run::Unprotected => compile(
                language,
                &["-shared", "-fPIC", "-DLIBCGI_SHARED"],
                &arguments,
                &[],
            )?,
            Run::Fastcgi => compile(language, &["-DLIBCGI_FASTCGI"], &arguments, &["-lfcgi"])?,
            Run::Cgi => compile(language, &[], &arguments, &[])?,
        }
        Ok(output)
    }
}

/// Clears away what servers left that were killed: folders of this user that nobody has locked.
fn clear(place: &Path) {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let left = entries.filter(|entry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
    });
    for entry in left {
        let ours = |found: &Metadata| found.is_dir() && found.uid() == geteuid().as_raw();
        // Of the link itself, if it is one.
        if !entry.metadata().is_ok_and(|found| ours(&found)) {
            continue;
        }
        let Ok(lock) = File::open(entry.path()) else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // What cannot be removed stays, as before.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn compile(
    language: Language,
    before: &[&str],
    arguments: &[OsString],
    behind: &[&str],
) -> Result<(), BuildError> {
    let compiler = match language {
        Language::C => "gcc",
        Language::Cxx => "g++",
    };
    let output = Command::new(compiler)
        .args(before)
        .args(arguments)
        .args(behind)
        .output();
    let output = output.map_err(|error| BuildError(format!("cannot run {compiler}: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false if said.contains("fcgiapp.h") => Err(BuildError(format!(
            "{}\n(FastCGI programs need libfcgi: apt install libfcgi-dev)",
            said.trim_end()
        ))),
        false => Err(BuildError(said.trim_end().to_owned())),
    }
}

/// The files that a program is made of: its sources, and if it has some, the headers beside the
/// first.
pub fn sources(settings: &HandlerSettings) -> Vec<PathBuf> {
    let mut files = vec![settings.program.clone()];
    files.extend(settings.sources.iter().cloned());
    if BuildFolder::is_source(&settings.program) {
        let folder = settings.program.parent().unwrap_or(Path::new("."));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let headers = entries.map(|entry| entry.path());
        files.extend(headers.filter(|path| path.extension().is_some_and(|e| e == "h")));
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each clears away what it finds unlocked; what the others are about to lock is among it.
    #[test]
    fn servers_that_start_at_once() {
        let place = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let folder = BuildFolder::new_in(place.path()).unwrap();
                        assert!(folder.folder().join("libcgi.h").exists());
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
