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

/// Makes all: names of files in the archive, and their bytes.
pub fn make() -> Result<Vec<(String, Vec<u8>)>, ExtensionsError> {
    let mut made = Vec::new();
    for folder in FOLDERS {
        let path = place::sources()
            .join("programs")
            .join(folder)
            .join("extension");
        let Ok(entries) = std::fs::read_dir(&path) else {
            // A folder without extensions.
            continue;
        };
        for entry in entries {
            let source = entry.map_err(file(&path))?.path();
            let stem = source.file_stem().and_then(|stem| stem.to_str());
            if let Some(stem) = stem.filter(|_| source.extension().is_some_and(|end| end == "c")) {
                let name = format!("{stem}{ENDING}");
                made.push((name.clone(), one(&source, &name)?));
            }
        }
    }
    made.sort();
    Ok(made)
}

fn one(source: &Path, name: &str) -> Result<Vec<u8>, ExtensionsError> {
    let folder = place::target().join("extensions");
    std::fs::create_dir_all(&folder).map_err(file(&folder))?;
    let to = folder.join(name);
    let words = ["-O1", "-Wno-div-by-zero", "-Wno-infinite-recursion", "-o"];
    let mut arguments: Vec<OsString> = words.map(OsString::from).into();
    arguments.extend([to.clone().into(), source.into()]);
    run_captured(Language::C, &arguments)
        .map_err(|error| ExtensionsError::Compile(name.to_owned(), error.to_string()))?;
    std::fs::read(&to).map_err(file(&to))
}
