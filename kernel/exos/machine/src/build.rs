//! The library and the root environment, built by cargo in their own workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use postern_aegis_machine::build::{self, BuildError};

use postern_aegis_machine::place::repository;

use crate::place;

/// Builds Aegis, the library and the root environment, without a word if they can be built.
pub fn all() -> Result<(), BuildError> {
    build::all()?;
    library()
}

/// Functions that programs may have of their own, and that the library must not take from them: its
/// handlers run where vector registers are somebody else's.
const OWN: [&str; 5] = ["memcpy", "memmove", "memset", "memcmp", "bcmp"];

/// Builds the library and the root environment.
pub fn library() -> Result<(), BuildError> {
    // Names of files stand in the library for its last words: with the folder that this is built in
    // they would make it longer or shorter, and take more pages or fewer to load.
    let registry = std::env::var_os("CARGO_HOME").map_or_else(
        || std::env::home_dir().unwrap_or_default().join(".cargo"),
        PathBuf::from,
    );
    let remap = [repository(), registry].map(|folder| {
        let option = format!("--remap-path-prefix={}=", folder.display());
        format!("{option:?}")
    });
    let flags = format!(
        "target.x86_64-unknown-linux-gnu.rustflags=[{}]",
        remap.join(",")
    );
    let builds = place::builds().display().to_string();
    let mut words = vec!["build", "--release", "--quiet", "--color", "never"];
    words.extend(["--config", &flags, "--target-dir", &builds]);
    build::cargo_in(&place::sources(), &words)?;
    let (built, library) = (place::built("libexos.a"), place::library());
    let changed = |path: &Path| {
        std::fs::metadata(path)
            .and_then(|found| found.modified())
            .ok()
    };
    if changed(&library).is_some_and(|time| changed(&built).is_some_and(|built| built <= time)) {
        return Ok(());
    }
    // In another folder until it is whole, since others may be linking.
    let failed = |error: std::io::Error| BuildError::Failed(error.to_string());
    let folder = tempfile::tempdir_in(place::target()).map_err(failed)?;
    let unfinished = folder.path().join("libexos.a");
    let mut command = Command::new("objcopy");
    for name in OWN {
        command.arg(format!("--redefine-sym={name}=exos_own_{name}"));
    }
    let output = command.arg(&built).arg(&unfinished).output();
    let output = output.map_err(|error| BuildError::Cargo("objcopy".to_owned(), error))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BuildError::Failed(words));
    }
    std::fs::rename(&unfinished, &library).map_err(failed)
}
