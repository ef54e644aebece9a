//! Debian's Linux in the same emulator, as Ultrix stood beside Aegis in the paper: `bench/aegis`,
//! compiled, as the only program of a machine. `scripts/linux-kernels.sh` fetches the kernels,
//! which are unpacked and not installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use thiserror::Error;

use crate::archive::Archive;
use crate::count::{self, CountError};
use crate::emulator::{self, Ended, Machine, Software};
use crate::place;
use crate::said::{self, Figures};

/// What a program says last.
const DONE: &str = "linux: done";

/// Which Linux.
#[derive(Clone, Debug)]
pub struct Linux {
    /// `6.1` or `6.12`.
    pub version: String,
    /// Without what the kernel does about faults of processors.
    pub mitigations_off: bool,
}

/// What it takes there.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// Instructions by row.
    pub figures: Figures,
    /// What the kernel does about faults of this processor.
    pub notes: Vec<String>,
}

/// Why there are no figures of Linux.
#[derive(Debug, Error)]
pub enum LinuxError {
    /// The kernel was not fetched.
    #[error("there is no kernel {0}: `make setup-kernel` fetches it on Debian 12")]
    Kernel(String),
    /// Its program cannot be compiled.
    #[error("the program for Linux cannot be compiled: {0}")]
    Compiler(String),
    /// A file cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, std::io::Error),
    /// It cannot be run and counted.
    #[error(transparent)]
    Count(#[from] CountError),
    /// The program did not come to its end.
    #[error("Linux {version} did not come to the end of its program; it said:\n{said}")]
    Failed {
        /// Which one.
        version: String,
        /// The last lines.
        said: String,
    },
}

impl Linux {
    /// The kernel's file, if it was fetched.
    pub fn kernel(&self) -> Option<PathBuf> {
        let path = place::repository()
            .join("target/linux")
            .join(&self.version)
            .join("vmlinuz");
        path.exists().then_some(path)
    }

    /// Boots it with a first file system, and reads what its program measures.
    pub fn measure_first(&self, initial: PathBuf, folder: &Path) -> Result<Baseline, LinuxError> {
        let alone = alone();
        let (ended, counts) = count::run(&alone, &self.software(initial)?, folder)?;
        self.read(&ended, &counts)
    }

    /// The kernel with a first file system.
    pub fn software(&self, initial: PathBuf) -> Result<Software, LinuxError> {
        let kernel = self.kernel();
        let kernel = kernel.ok_or_else(|| LinuxError::Kernel(self.version.clone()))?;
        let mut line =
            "console=ttyS0 quiet loglevel=4 panic=-1 oops=panic reboot=t tsc=reliable".to_owned();
        if self.mitigations_off {
            line += " mitigations=off";
        }
        Ok(Software {
            kernel,
            initial,
            line,
        })
    }

    /// Boots it and has everything measured.
    pub fn measure(&self) -> Result<Baseline, LinuxError> {
        let kernel = self
            .kernel()
            .ok_or_else(|| LinuxError::Kernel(self.version.clone()))?;
        let folder = place::target().join("linux");
        let modules = kernel.with_file_name("modules");
        let initial = first_files(&folder, &modules)?;
        let mut software = self.software(initial)?;
        let mut baseline = self.measure_first(software.initial.clone(), &folder)?;
        let with_peer = Machine {
            waits: true,
            network: true,
            ..alone()
        };
        // Idling is a halt, not a loop.
        software.line += " idle=halt cpuidle.off=1 -- network";
        let (ended, counts) = count::run(&with_peer, &software, &folder)?;
        let with_peer = self.read(&ended, &counts)?;
        baseline.figures.extend(with_peer.figures);
        Ok(baseline)
    }

    fn read(&self, ended: &Ended, counts: &str) -> Result<Baseline, LinuxError> {
        let lines = || ended.lines.iter().map(String::as_str);
        if !lines().any(|line| line == DONE) {
            let last = ended.lines.len().saturating_sub(20);
            return Err(LinuxError::Failed {
                version: self.version.clone(),
                said: ended.lines[last..].join("\n"),
            });
        }
        Ok(Baseline {
            figures: said::figures(lines(), counts),
            notes: said::notes(lines()),
        })
    }
}

/// The machine without anybody outside.
fn alone() -> Machine {
    Machine {
        counted: true,
        memory: 512,
        limit: Duration::from_secs(300),
        ..Machine::default()
    }
}

/// Compiles the program and puts it into a first file system, with modules for its network.
fn first_files(folder: &Path, modules: &Path) -> Result<PathBuf, LinuxError> {
    let file = |path: &Path| {
        let path = path.to_owned();
        move |error| LinuxError::File(path, error)
    };
    std::fs::create_dir_all(folder).map_err(file(folder))?;
    let init = folder.join("init");
    let sources = place::repository().join("bench/aegis");
    let compiler = |error: std::io::Error| LinuxError::Compiler(error.to_string());
    let output = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-static", "-s", "-o"])
        .arg(&init)
        .args([
            "main.c",
            "exceptions.c",
            "transfer.c",
            "memory.c",
            "filters.c",
            "network.c",
            "-lpthread",
        ])
        .current_dir(&sources)
        .output()
        .map_err(compiler)?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(LinuxError::Compiler(words));
    }
    let mut archive = Archive::default();
    archive.folder("dev");
    archive.device("dev/console", (5, 1));
    archive.folder("sys");
    archive.folder("modules");
    for entry in std::fs::read_dir(modules).map_err(file(modules))? {
        let path = entry.map_err(file(modules))?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            let bytes = std::fs::read(&path).map_err(file(&path))?;
            archive.file(&format!("modules/{name}"), &bytes);
        }
    }
    archive.file("init", &std::fs::read(&init).map_err(file(&init))?);
    emulator::write(folder, "first.cpio", &archive.finish()).map_err(file(folder))
}
