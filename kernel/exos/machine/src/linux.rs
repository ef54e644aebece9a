//! The same programs under Debian's Linux in the same emulator: compiled for it, and started one
//! after the other by `bench/exos/init.c`.

use std::path::{Path, PathBuf};
use std::process::Command;

use postern_aegis_machine::archive::Archive;
use postern_aegis_machine::emulator;
use postern_aegis_machine::linux::{Baseline, Linux, LinuxError};
use postern_aegis_machine::place::repository;

use crate::{cold, programs};

/// What the programs take there.
pub fn measure(linux: &Linux, folder: &Path) -> Result<Baseline, LinuxError> {
    let folder = folder.join("linux");
    std::fs::create_dir_all(&folder).map_err(file(&folder))?;
    let mut archive = Archive::default();
    archive.folder("dev");
    archive.device("dev/console", (5, 1));
    archive.folder("proc");
    archive.folder("tmp");
    let init = repository().join("bench/exos/init.c");
    archive.file("init", &compiled(&[init], &folder.join("init"))?);
    archive.folder("bench");
    let sources = programs::of("bench");
    let sources = sources.map_err(|error| LinuxError::Compiler(error.to_string()))?;
    let mut list = String::new();
    for program in sources {
        if program.measures() {
            list += &format!("{}\n", program.name);
        }
        let bytes = compiled(&program.sources, &folder.join(&program.name))?;
        archive.file(&format!("bench/{}", program.name), &bytes);
    }
    archive.file("list", list.as_bytes());
    let path = emulator::write(&folder, "first.cpio", &archive.finish());
    let mut baseline = linux.measure_first(path.map_err(file(&folder))?, &folder)?;
    let cold = cold::of_linux(linux, &folder)?;
    baseline.figures.insert(cold::NAME.to_owned(), cold);
    Ok(baseline)
}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> LinuxError {
    let path: PathBuf = path.to_owned();
    move |error| LinuxError::File(path, error)
}

/// A program of sources, for Linux.
fn compiled(sources: &[PathBuf], to: &Path) -> Result<Vec<u8>, LinuxError> {
    let output = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-static", "-s"])
        .args(sources)
        .arg("-o")
        .arg(to)
        .output()
        .map_err(|error| LinuxError::Compiler(error.to_string()))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(LinuxError::Compiler(words));
    }
    std::fs::read(to).map_err(file(to))
}
