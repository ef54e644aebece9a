//! What a machine boots, of what was built: the kernel, and a package around a root program with
//! all other programs in it.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::archive::Archive;
use crate::build::{self, BuildError};
use crate::emulator::{self, Software};
use crate::images;
use crate::package::{self, PackageError};
use crate::place;
use crate::program::{self, ProgramError};

/// Small files of the archive, which programs read as what they are asked to do: name and content.
pub type Parameters = [(String, String)];

/// Why there is nothing to boot.
#[derive(Debug, Error)]
pub enum SoftwareError {
    /// It cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A program cannot be put into the archive.
    #[error("the program `{0}`: {1}")]
    Program(String, ProgramError),
    /// A handler cannot be made.
    #[error(transparent)]
    Handler(#[from] images::HandlerError),
    /// The package cannot be made.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// It cannot be written.
    #[error("{path}: {1}", path = .0.display())]
    Write(PathBuf, std::io::Error),
}

/// The package of a root program, by its name.
pub fn package(root: &str, parameters: &Parameters) -> Result<Vec<u8>, SoftwareError> {
    let mut archive = Archive::default();
    for name in build::programs()? {
        let elf = program::loadable(&build::elf(&name)?);
        let elf = elf.map_err(|error| SoftwareError::Program(name.clone(), error))?;
        archive.file(&name, &elf);
    }
    for (name, file) in images::all() {
        archive.file(&format!("{name}.verdict"), &images::verdict(&file));
        archive.file(name, &file);
    }
    for (name, file) in images::handlers()? {
        archive.file(&name, &file);
    }
    for (name, value) in parameters {
        archive.file(name, value.as_bytes());
    }
    let (root, kernel) = (build::elf(root)?, build::elf("aegis")?);
    Ok(package::pack(&root, archive, &kernel)?)
}

/// Kernel and package as files, the latter below a folder.
pub fn prepare(
    root: &str,
    parameters: &Parameters,
    folder: &Path,
) -> Result<Software, SoftwareError> {
    let bytes = package(root, parameters)?;
    let name = format!("{root}.package");
    let initial = emulator::write(folder, &name, &bytes);
    let initial = initial.map_err(|error| SoftwareError::Write(folder.join(&name), error))?;
    let kernel = place::program("aegis");
    Ok(Software {
        kernel,
        initial,
        line: String::new(),
    })
}
