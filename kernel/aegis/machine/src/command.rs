//! What subcommands share: the build with a word about it, and the files that are booted.

use std::error::Error;
use std::path::{Path, PathBuf};

use postern_aegis_machine::archive::Archive;
use postern_aegis_machine::emulator::{self, Software};
use postern_aegis_machine::{build, package, place, program};

/// What a subcommand ends with: whether all went well, or why it could not be done.
pub type Outcome = Result<bool, Box<dyn Error>>;

/// Builds all, and says so: it may take a minute.
pub fn build() -> Result<(), Box<dyn Error>> {
    eprintln!("aegis-machine: building the kernel and its programs");
    Ok(build::all()?)
}

/// The package of a root program of this name, with all programs that there are and parameters.
pub fn package(root: &str, parameters: &[(String, String)]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut archive = Archive::default();
    for name in build::programs()? {
        archive.file(&name, &program::loadable(&build::elf(&name)?)?);
    }
    for (name, value) in parameters {
        archive.file(name, value.as_bytes());
    }
    Ok(package::pack(
        &build::elf(root)?,
        archive,
        &build::elf("aegis")?,
    )?)
}

/// Kernel and package as files of a folder.
pub fn software(
    root: &str,
    parameters: &[(String, String)],
    folder: &Path,
) -> Result<Software, Box<dyn Error>> {
    let initial = emulator::write(
        folder,
        &format!("{root}.package"),
        &package(root, parameters)?,
    )?;
    let kernel: PathBuf = place::program("aegis");
    Ok(Software {
        kernel,
        initial,
        line: String::new(),
    })
}
