//! A cold start: instructions from the machine's start to a shell's prompt, of ExOS with the shell
//! and all tools, and of Debian's Linux with a first process that does nothing else.

use std::path::Path;

use postern_aegis_machine::archive::Archive;
use postern_aegis_machine::emulator;
use postern_aegis_machine::linux::{Linux, LinuxError};
use postern_aegis_machine::said::Figure;

use crate::executed::{self, ExecutedError};
use crate::measure::MeasureError;
use crate::{programs, software};

/// The row.
pub const NAME: &str = "boot";

/// What both say when they wait for a line.
const PROMPT: &str = "/$ ";

fn figure(instructions: u64) -> Figure {
    Figure {
        instructions,
        repeats: 1,
        heavy: None,
    }
}

/// As `make exos` boots without a disk: a file system in memory, then the shell.
pub fn of_exos(folder: &Path) -> Result<Figure, MeasureError> {
    let mut all = programs::commands()?;
    all.extend(programs::of("services")?);
    let mut files = programs::make(&all)?;
    files.push(("init".to_owned(), b"sh -l".to_vec()));
    files.push(("services.list".to_owned(), b"ramd /tmp\n".to_vec()));
    let software = software::prepare(&files, folder)?;
    Ok(figure(executed::until(&software, PROMPT, folder)?))
}

/// The kernel as Debian packs it, and a static program: it mounts `/proc` and `/tmp`, says the
/// prompt, and waits.
pub fn of_linux(linux: &Linux, folder: &Path) -> Result<Figure, LinuxError> {
    let failed = |error: ExecutedError| match error {
        ExecutedError::File(path, error) => LinuxError::File(path, error),
        ExecutedError::Compiler(_, words) => LinuxError::Compiler(words),
        other => LinuxError::Failed {
            version: linux.version.clone(),
            said: other.to_string(),
        },
    };
    let file = |error| LinuxError::File(folder.to_owned(), error);
    std::fs::create_dir_all(folder).map_err(file)?;
    let init = folder.join("prompt");
    executed::compiled("prompt.c", &["-static", "-s"], &init).map_err(failed)?;
    let mut archive = Archive::default();
    for name in ["dev", "proc", "tmp"] {
        archive.folder(name);
    }
    archive.device("dev/console", (5, 1));
    archive.file("init", &std::fs::read(&init).map_err(file)?);
    let initial = emulator::write(folder, "prompt.cpio", &archive.finish()).map_err(file)?;
    let software = linux.software(initial)?;
    let instructions = executed::until(&software, PROMPT, folder).map_err(failed)?;
    Ok(figure(instructions))
}
