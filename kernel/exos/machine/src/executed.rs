//! Instructions that a machine executes, counted by a plugin of the emulator's
//! (`bench/exos/executed.c`) while others look.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use postern_aegis_machine::emulator::{EmulatorError, Machine, Software};
use postern_aegis_machine::place::repository;
use postern_aegis_machine::session::SessionError;
use thiserror::Error;

/// Why nothing is counted.
#[derive(Debug, Error)]
pub enum ExecutedError {
    /// A source of `bench/exos` cannot be compiled.
    #[error("{0} cannot be compiled: {1}")]
    Compiler(String, String),
    /// A file cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, std::io::Error),
    /// The emulator.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The machine does not say what it should.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Compiles a source of `bench/exos`.
pub fn compiled(name: &str, words: &[&str], to: &Path) -> Result<(), ExecutedError> {
    let mut command = Command::new("gcc");
    command.args(["-O2", "-Wall", "-Wextra"]).args(words);
    command.arg(repository().join("bench/exos").join(name));
    let output = command.arg("-o").arg(to).output();
    let output = output.map_err(|error| ExecutedError::File(to.to_owned(), error))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(ExecutedError::Compiler(name.to_owned(), words))
        }
    }
}

/// What the plugin writes.
pub struct Executed(PathBuf);

impl Executed {
    /// Makes the plugin, for a machine with these options of the emulator.
    pub fn new(folder: &Path) -> Result<(Executed, Vec<OsString>), ExecutedError> {
        let (plugin, counter) = (folder.join("executed.so"), folder.join("executed"));
        let words = ["-shared", "-fPIC", "-fvisibility=hidden"];
        compiled("executed.c", &words, &plugin)?;
        let _ = std::fs::remove_file(&counter);
        let option = format!("{},to={}", plugin.display(), counter.display());
        Ok((Executed(counter), vec!["-plugin".into(), option.into()]))
    }

    fn word(&self, at: usize) -> Result<u64, ExecutedError> {
        let bytes = std::fs::read(&self.0);
        let bytes = bytes.map_err(|error| ExecutedError::File(self.0.clone(), error))?;
        let word = bytes.get(at * 8..).and_then(|rest| rest.first_chunk());
        Ok(word.map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// All up to now.
    pub fn all(&self) -> Result<u64, ExecutedError> {
        self.word(0)
    }

    /// All up to the last byte that went out of a port.
    pub fn to_the_last_byte(&self) -> Result<u64, ExecutedError> {
        self.word(1)
    }
}

/// Instructions from a machine's start until it says words, and waits.
pub fn until(software: &Software, words: &str, folder: &Path) -> Result<u64, ExecutedError> {
    let (executed, more) = Executed::new(folder)?;
    let machine = Machine {
        counted: true,
        memory: 512,
        more,
        ..Machine::default()
    };
    let mut session = machine.start(software)?;
    session.hears(words, machine.limit)?;
    let mut last = executed.to_the_last_byte()?;
    loop {
        std::thread::sleep(Duration::from_millis(500));
        match executed.to_the_last_byte()? {
            same if same == last => return Ok(last),
            later => last = later,
        }
    }
}
