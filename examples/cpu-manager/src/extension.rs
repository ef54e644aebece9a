//! `manager.c`, built by `postern cc`.

use crate::error::Error;
use postern_toolchain::{Build, Language};
use std::path::{Path, PathBuf};

/// The source.
pub fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manager.c")
}

/// Builds the extension into `folder`, unless what is there is newer than its source and than this
/// program. Returns its path.
///
/// # Errors
/// The folder cannot be written, or the compiler's word.
pub fn build(folder: &Path) -> Result<PathBuf, Error> {
    let wrong = |error| Error::file(folder, error);
    std::fs::create_dir_all(folder).map_err(wrong)?;
    let path = folder.canonicalize().map_err(wrong)?.join("manager.px");
    let time = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    let program = std::env::current_exe().ok();
    let newest = time(&source()).max(program.and_then(|p| time(&p)));
    if time(&path).is_some_and(|made| Some(made) > newest) {
        return Ok(path);
    }
    // Beside it first: another process may be reading what is there.
    let fresh = folder.join(format!("manager.{}.px", std::process::id()));
    Build::new(Language::C)
        .file(source())
        // Whatever another process writes into the common state, arithmetic on it is defined.
        .flags(["-O2", "-Wall", "-Wextra", "-fwrapv"])
        .flags(["-nolibc", "-fpostern-stack=16K", "-fpostern-heap=4K"])
        .output(&fresh)
        .run()
        .map_err(|error| Error::Build(error.to_string()))?;
    std::fs::rename(&fresh, &path).map_err(|error| Error::file(&path, error))?;
    Ok(path)
}
