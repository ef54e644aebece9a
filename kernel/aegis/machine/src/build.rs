//! Kernel and programs, built by cargo in their own workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

use crate::place;

/// Variables that would replace the flags of that workspace, or its folder for builds.
const FOREIGN: [&str; 6] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_BUILD_TARGET",
];

/// Why there is no kernel, or no program.
#[derive(Debug, Error)]
pub enum BuildError {
    /// Cargo cannot be started.
    #[error("cannot start {0}: {1}")]
    Cargo(String, std::io::Error),
    /// Cargo's own words.
    #[error("the kernel cannot be built:\n{0}")]
    Failed(String),
    /// A program that is not among those built.
    #[error("there is no program `{name}` at {}: {error}", path.display())]
    Missing {
        /// Its name.
        name: String,
        /// Where it was looked for.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

/// Runs cargo in the kernel's workspace, and returns what it writes.
fn cargo(words: &[&str]) -> Result<Vec<u8>, BuildError> {
    cargo_in(&place::sources(), words)
}

/// Runs cargo in a workspace that is built for the machine, and returns what it writes.
pub fn cargo_in(folder: &Path, words: &[&str]) -> Result<Vec<u8>, BuildError> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(&cargo);
    command.args(words).current_dir(folder);
    command.stdin(Stdio::null());
    for name in FOREIGN {
        command.env_remove(name);
    }
    let output = command.output();
    let output = output.map_err(|error| BuildError::Cargo(cargo, error))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BuildError::Failed(words));
    }
    Ok(output.stdout)
}

/// Builds all of it, without a word if it can be built.
pub fn all() -> Result<(), BuildError> {
    cargo(&["build", "--release", "--quiet", "--color", "never"]).map(drop)
}

/// The ELF file of a program that was built; the kernel is `aegis`.
pub fn elf(name: &str) -> Result<Vec<u8>, BuildError> {
    let path = place::program(name);
    std::fs::read(&path).map_err(|error| BuildError::Missing {
        name: name.to_owned(),
        path,
        error,
    })
}

/// The names of all programs, as cargo knows them.
pub fn programs() -> Result<Vec<String>, BuildError> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: serde_json::Value = serde_json::from_slice(&output)
        .map_err(|error| BuildError::Failed(format!("cargo's metadata: {error}")))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let programs = packages.filter(|package| package["name"] == "postern-aegis-programs");
    let targets = programs.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let mut names: Vec<String> = targets
        .filter(|target| target["kind"][0] == "bin")
        .filter_map(|target| Some(target["name"].as_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}
