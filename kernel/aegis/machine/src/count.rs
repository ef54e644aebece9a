//! A run in which heavy instructions are counted, too, by a plugin of the emulator's
//! (`bench/aegis/count.c`). An emulator without plugins runs without.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use crate::emulator::{EmulatorError, Ended, Machine, Software};
use crate::place;

/// Why nothing was counted.
#[derive(Debug, Error)]
pub enum CountError {
    /// The plugin cannot be compiled.
    #[error("bench/aegis/count.c cannot be compiled: {0}")]
    Compiler(String),
    /// The emulator.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
}

/// Whether the emulator takes plugins.
fn is_possible() -> bool {
    let help = Command::new("qemu-system-x86_64").arg("--help").output();
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("\n-plugin "))
}

/// Compiles the plugin.
fn plugin(folder: &Path) -> Result<PathBuf, CountError> {
    let compiler = |error: std::io::Error| CountError::Compiler(error.to_string());
    std::fs::create_dir_all(folder).map_err(compiler)?;
    let plugin = folder.join("count.so");
    let output = Command::new("gcc")
        .args([
            "-O2",
            "-Wall",
            "-Wextra",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            "-o",
        ])
        .arg(&plugin)
        .arg(place::repository().join("bench/aegis/count.c"))
        .output()
        .map_err(compiler)?;
    match output.status.success() {
        true => Ok(plugin),
        false => Err(CountError::Compiler(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}

/// Runs a machine, and returns what it said and the plugin's lines.
pub fn run(
    machine: &Machine,
    software: &Software,
    folder: &Path,
) -> Result<(Ended, String), CountError> {
    let mut machine = machine.clone();
    let counts = folder.join("counts");
    if is_possible() {
        let mut option: OsString = plugin(folder)?.into();
        option.push(",to=");
        option.push(&counts);
        machine.more.extend(["-plugin".into(), option]);
    }
    let ended = machine.run(software, |_| ())?;
    let counts = std::fs::read_to_string(&counts).unwrap_or_default();
    Ok((ended, counts))
}
