//! Worker processes: each runs confined programs, one after the other, told on its standard input
//! and answering on its standard output, one line of JSON each. A worker that dies names the
//! program by not answering.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use postern_toolchain::sysroot::Sysroot;

use crate::confined;
use crate::program::{Outcome, Program};

/// Serves programs until standard input ends.
///
/// # Errors
/// Standard input or output, or the temporary folder.
pub fn serve() -> std::io::Result<()> {
    let scratch = tempfile::tempdir()?;
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let outcome = match serde_json::from_str::<Program>(&line?) {
            Ok(program) => confined::run(&program, scratch.path()),
            Err(error) => Outcome::NotBuilt(error.to_string()),
        };
        let text = serde_json::to_string(&outcome).map_err(std::io::Error::other)?;
        writeln!(answers, "{text}")?;
        answers.flush()?;
    }
    Ok(())
}

/// Builds what workers share, the C library of extensions, so that they do not wait for each other.
///
/// # Errors
/// The library cannot be built.
pub fn prepare() -> Result<(), String> {
    let built = Sysroot::headers().and_then(|sysroot| sysroot.library());
    built.map(drop).map_err(|error| error.to_string())
}

/// The other end: a worker that is started when it is needed.
pub struct Worker {
    program: PathBuf,
    messages: File,
    running: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
}

impl Worker {
    /// A worker that is the command `program` with the argument `worker`.
    ///
    /// # Errors
    /// The file for its messages.
    pub fn new(program: PathBuf) -> std::io::Result<Self> {
        Ok(Self {
            program,
            messages: tempfile::tempfile()?,
            running: None,
        })
    }

    /// Has `program` built and run.
    ///
    /// # Errors
    /// The worker cannot be started.
    pub fn run(&mut self, program: &Program) -> std::io::Result<Outcome> {
        self.messages.set_len(0)?;
        self.messages.seek(SeekFrom::Start(0))?;
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        let text = serde_json::to_string(program).map_err(std::io::Error::other)?;
        let mut answer = String::new();
        let asked = writeln!(running.1, "{text}").and_then(|()| running.2.read_line(&mut answer));
        let outcome = match asked {
            Ok(length) if length > 0 => serde_json::from_str(&answer).ok(),
            _ => None,
        };
        match outcome {
            Some(outcome) => {
                self.running = Some(running);
                Ok(self.explained(outcome))
            }
            None => {
                drop(running.1);
                let status = running.0.wait()?;
                Ok(Outcome::HostDied(format!("{status}\n{}", self.said())))
            }
        }
    }

    fn start(&self) -> std::io::Result<(Child, ChildStdin, BufReader<ChildStdout>)> {
        let mut child = Command::new(&self.program)
            .arg("worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(self.messages.try_clone()?)
            .spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(to), Some(from)) => Ok((child, to, BufReader::new(from))),
            _ => Err(std::io::Error::other("a worker without pipes")),
        }
    }

    /// A build that failed says why on standard error, if it was gcc that failed.
    fn explained(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::NotBuilt(why) if why.trim().is_empty() => Outcome::NotBuilt(self.said()),
            other => other,
        }
    }

    fn said(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.messages.seek(SeekFrom::Start(0));
        let _ = self.messages.read_to_end(&mut bytes);
        crate::native::first_lines(&String::from_utf8_lossy(&bytes))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some((mut child, to, _)) = self.running.take() {
            drop(to);
            let _ = child.wait();
        }
    }
}
