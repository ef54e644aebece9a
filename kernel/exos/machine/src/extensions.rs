//! Extensions for programs of ExOS: `postern cc` makes them, as for hosts on Linux, of the sources
//! in folders named `extension` below those of programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use postern_toolchain::Language;
use postern_toolchain::driver::run_captured;
use thiserror::Error;

use crate::place;
use crate::programs::FOLDERS;

/// How the files of extensions end.
pub const ENDING: &str = ".px";

/// Why there are no extensions.
#[derive(Debug, Error)]
pub enum ExtensionsError {
    /// A source is wrong, or there is no compiler.
    #[error("{0}: {1}")]
    Compile(String, String),
    /// A file or folder.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, std::io::Error),
}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> ExtensionsError {
    let path = path.to_owned();
    move |error| ExtensionsError::File(path, error)
}

/// How ours are compiled.
const FLAGS: &[&str] = &["-O1", "-Wno-div-by-zero", "-Wno-infinite-recursion"];

/// Makes all: names of files in the archive, and their bytes.
pub fn make() -> Result<Vec<(String, Vec<u8>)>, ExtensionsError> {
    let mut made = Vec::new();
    for folder in FOLDERS {
        let path = place::sources().join("programs").join(folder);
        let path = path.join("extension");
        if path.is_dir() {
            made.extend(of(&path, FLAGS)?);
        }
    }
    made.sort();
    Ok(made)
}

/// Makes those of the sources in a folder, by name.
pub fn of(folder: &Path, flags: &[&str]) -> Result<Vec<(String, Vec<u8>)>, ExtensionsError> {
    let mut made = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(file(folder))? {
        let source = entry.map_err(file(folder))?.path();
        let stem = source.file_stem().and_then(|stem| stem.to_str());
        if let Some(stem) = stem.filter(|_| source.extension().is_some_and(|end| end == "c")) {
            let name = format!("{stem}{ENDING}");
            made.push((name.clone(), one(&source, &name, flags)?));
        }
    }
    made.sort();
    Ok(made)
}

fn one(source: &Path, name: &str, flags: &[&str]) -> Result<Vec<u8>, ExtensionsError> {
    let folder = place::target().join("extensions");
    std::fs::create_dir_all(&folder).map_err(file(&folder))?;
    // In a file of its own until it is whole: others may make the same.
    let scratch = tempfile::tempdir_in(&folder).map_err(file(&folder))?;
    let to = scratch.path().join(name);
    let mut arguments: Vec<OsString> = flags.iter().map(OsString::from).collect();
    arguments.extend(["-o".into(), to.clone().into(), source.into()]);
    run_captured(Language::C, &arguments)
        .map_err(|error| ExtensionsError::Compile(name.to_owned(), error.to_string()))?;
    std::fs::read(&to).map_err(file(&to))
}
