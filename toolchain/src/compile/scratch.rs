//! A folder for intermediate files, gone when the driver is done unless they are to be kept.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::CompileError;

/// The folder of one run.
pub struct Scratch {
    path: PathBuf,
    keep: bool,
    count: AtomicU32,
}

impl Scratch {
    /// A new folder; if `keep`, it is said where and it stays.
    pub fn new(keep: bool) -> std::io::Result<Self> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        loop {
            let run = RUNS.fetch_add(1, Ordering::Relaxed);
            let path =
                std::env::temp_dir().join(format!("postern-cc-{}-{run}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => {
                    if keep {
                        eprintln!("intermediate files: {}", path.display());
                    }
                    return Ok(Self {
                        path,
                        keep,
                        count: AtomicU32::new(0),
                    });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A fresh name in the folder, after the source's.
    pub fn file(&self, source: &Path, extension: &str) -> PathBuf {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        self.path.join(format!("{count}-{stem}.{extension}"))
    }

    /// A fresh folder in the folder, named after the source.
    pub fn folder(&self, source: &Path) -> Result<PathBuf, CompileError> {
        let path = self.file(source, "d");
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err(CompileError::File { path, source }),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
