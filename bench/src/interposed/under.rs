//! Who sees the calls of a program, and how it is started so.

use crate::serve::postern;
use postern_figures::trusted::tracing::{self, Shown};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Who sees the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Under {
    Nobody,
    /// `count`, with options of `postern interpose`.
    Agent(&'static [&'static str]),
    Strace,
    /// Somebody in this process to whom the kernel shows each call.
    Kernel(Shown),
}

impl Under {
    /// `count` in the program.
    pub const COUNT: Under = Under::Agent(&[]);
    /// The same, each call by the kernel's signal.
    pub const SLOW: Under = Under::Agent(&["--slow"]);
    /// `count` in a supervisor.
    pub const ENFORCE: Under = Under::Agent(&["--enforce"]);

    /// Runs a program so until it and all that it started have ended: whether it was successful.
    /// What agents and tracers say goes nowhere.
    pub fn run(self, agent: &Path, words: &[&OsStr]) -> Result<bool, String> {
        let mut command = match self {
            Under::Kernel(shown) => return tracing::run(shown, words),
            Under::Nobody => Command::new("env"),
            Under::Strace => {
                let mut command = Command::new("strace");
                command.args(["-f", "-o", "/dev/null"]);
                command
            }
            Under::Agent(options) => {
                let mut command = Command::new(postern()?);
                command.args(["interpose", "-o", "/dev/null"]).args(options);
                command.arg(agent).arg("--");
                command
            }
        };
        let status = command.args(words).stdin(Stdio::null()).status();
        status
            .map(|status| status.success())
            .map_err(|error| error.to_string())
    }
}

/// The agent `count`.
pub fn agent(folder: &Path) -> Result<PathBuf, String> {
    let files = [
        ("count.c", include_str!("../../../examples/agents/count.c")),
        ("names.h", include_str!("../../../examples/agents/names.h")),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
    }
    let mut compile = Command::new(postern()?);
    compile.args(["cc", "-O2", "-o", "count.px", "count.c"]);
    match compile.current_dir(folder).status() {
        Ok(status) if status.success() => Ok(folder.join("count.px")),
        Ok(_) => Err("the agent was not compiled".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
