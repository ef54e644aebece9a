//! Where the source of a crate lies: `cargo` fetches it, compares its checksum with the registry's,
//! and keeps it.
//!
//! Each crate has a package of its own in the cache that depends on it and on nothing else, so that
//! crates do not disturb each other's versions. Once the source is there, neither network nor cargo
//! is needed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use super::ProjectError;
use crate::cache;

/// The folder of `name` in exactly `version`. `project` is where cargo looks for its configuration.
pub fn folder(project: &Path, name: &str, version: &str) -> Result<PathBuf, ProjectError> {
    let config = cache::hash(configuration(project));
    let package = cache::cache().join(format!("crate-{name}-{version}-{config:016x}"));
    let note = package.join("folder");
    if let Ok(known) = std::fs::read_to_string(&note) {
        let known = PathBuf::from(known);
        if known.join("Cargo.toml").exists() {
            return Ok(known);
        }
    }
    let failed = |reason: String| ProjectError::Crate {
        name: name.to_owned(),
        version: version.to_owned(),
        reason,
    };
    let manifest = format!(
        "# Made by postern build, so that cargo fetches the source of {name}.\n\
         [package]\nname = \"postern-sources\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
         [lib]\npath = \"lib.rs\"\n\n\
         [dependencies.{name:?}]\nversion = \"={version}\"\ndefault-features = false\n\n[workspace]\n"
    );
    write(&package.join("lib.rs"), "")?;
    write(&package.join("Cargo.toml"), &manifest)?;
    let metadata = ask(project, &package, true)
        .or_else(|_| ask(project, &package, false))
        .map_err(failed)?;
    let found = source_folder(&metadata, name)
        .ok_or_else(|| failed("cargo's answer does not mention it".to_owned()))?;
    write(&note, &found.to_string_lossy())?;
    Ok(found)
}

/// What makes cargo answer otherwise in this project than in another: where it keeps things, and
/// its configuration files.
fn configuration(project: &Path) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(std::env::var("CARGO_HOME").ok());
    let project = std::fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
    for folder in project.ancestors() {
        for name in ["config.toml", "config"] {
            let path = folder.join(".cargo").join(name);
            if let Ok(text) = std::fs::read_to_string(&path) {
                // Paths in it are relative to its place.
                found.push(path.display().to_string());
                found.push(text);
            }
        }
    }
    found
}

/// Writes a file in one step, so that builds at the same time see all of it or nothing.
fn write(path: &Path, text: &str) -> Result<(), ProjectError> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let parent = path.parent().unwrap_or(Path::new(""));
    // Threads of one process write at the same time, too.
    let write = WRITES.fetch_add(1, Ordering::Relaxed);
    let unfinished = path.with_extension(format!("{}-{write}-new", std::process::id()));
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(&unfinished, text))
        .and_then(|()| std::fs::rename(&unfinished, path))
        .map_err(|source| ProjectError::File {
            path: path.to_owned(),
            source,
        })
}

/// `cargo metadata`, which fetches what it tells of.
fn ask(project: &Path, package: &Path, offline: bool) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["metadata", "--format-version", "1", "--quiet"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml"))
        .current_dir(if project == Path::new("") {
            Path::new(".")
        } else {
            project
        })
        .stdin(Stdio::null());
    if offline {
        command.arg("--offline");
    }
    let output = command.output().map_err(|error| {
        format!("`cargo` could not be run ({error}); install a Rust toolchain with rustup")
    })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr)
            .trim_end()
            .to_owned())
    }
}

fn source_folder(metadata: &str, name: &str) -> Option<PathBuf> {
    let metadata: serde_json::Value = serde_json::from_str(metadata).ok()?;
    let packages = metadata.get("packages")?.as_array()?;
    let package = packages
        .iter()
        .find(|package| package.get("name").and_then(|n| n.as_str()) == Some(name))?;
    let manifest = Path::new(package.get("manifest_path")?.as_str()?);
    Some(manifest.parent()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_write_a_file_at_once() {
        let folder = std::env::temp_dir().join(format!("postern-write-{}", std::process::id()));
        let path = folder.join("file");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..200).for_each(|_| write(&path, "text").unwrap()));
            }
        });
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
