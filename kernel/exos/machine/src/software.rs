//! What a machine boots: Aegis, and a package around the root environment with programs.

use std::path::{Path, PathBuf};

use postern_aegis_machine::archive::Archive;
use postern_aegis_machine::emulator::{self, Software};
use postern_aegis_machine::package::{self, PackageError};
use postern_aegis_machine::{build, place as aegis, program};
use postern_exos_abi::{HEADER, VERSION};
use thiserror::Error;

use crate::extensions::ENDING;
use crate::handlers::{self, HandlersError};
use crate::place;

/// Why there is nothing to boot.
#[derive(Debug, Error)]
pub enum SoftwareError {
    /// It cannot be built.
    #[error(transparent)]
    Build(#[from] build::BuildError),
    /// A program cannot be put into the archive.
    #[error("the program `{0}`: {1}")]
    Program(String, program::ProgramError),
    /// A program is of another ExOS than the one that would start it.
    #[error(
        "the program `{name}` reads start pages of version {version}, and this ExOS writes version \
         {VERSION}: link it again, with this repository's exos-cc"
    )]
    Version {
        /// The program.
        name: String,
        /// What its header says; 0: it has none.
        version: u32,
    },
    /// There is no handler for a service.
    #[error(transparent)]
    Handlers(#[from] HandlersError),
    /// The package cannot be made.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// It cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, std::io::Error),
}

/// Files of the archive: names and contents. Programs are ELF files.
pub type Files = [(String, Vec<u8>)];

/// The version of the start page that a program reads, as its own kind of header says.
fn version_of(elf: &[u8]) -> Option<u32> {
    let word = |at: usize| Some(u32::from_le_bytes(*elf.get(at..)?.first_chunk()?));
    let (table, sizes) = (word(32)? as usize, word(54)?);
    let (size, count) = ((sizes & 0xffff) as usize, (sizes >> 16) as usize);
    let entries = (0..count).map(|index| table + index * size);
    let mut own = entries.filter(|entry| word(*entry) == Some(HEADER));
    word(own.next()? + 4)
}

/// Kernel and package as files, the latter below a folder.
pub fn prepare(files: &Files, folder: &Path) -> Result<Software, SoftwareError> {
    let read = |path: PathBuf| {
        std::fs::read(&path).map_err(|error| SoftwareError::File(path.clone(), error))
    };
    let mut archive = Archive::default();
    for (name, bytes) in files {
        if bytes.starts_with(b"\x7fELF") && !name.ends_with(ENDING) {
            let version = version_of(bytes).unwrap_or(0);
            if version != VERSION {
                let name = name.clone();
                return Err(SoftwareError::Version { name, version });
            }
            let program = program::loadable(bytes);
            let program = program.map_err(|e| SoftwareError::Program(name.clone(), e))?;
            archive.page_aligned(name, &program);
        } else {
            archive.page_aligned(name, bytes);
        }
    }
    if let Some((name, image)) = handlers::of(files)? {
        archive.page_aligned(&name, &image);
    }
    let root = read(place::built("init"))?;
    let bytes = package::pack(&root, archive, &build::elf("aegis")?)?;
    let initial = emulator::write(folder, "exos.package", &bytes);
    let initial =
        initial.map_err(|error| SoftwareError::File(folder.join("exos.package"), error))?;
    Ok(Software {
        kernel: aegis::program("aegis"),
        initial,
        line: String::new(),
    })
}
