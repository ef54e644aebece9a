//! A machine that runs while somebody is at its serial line, who waits for words and types others.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::emulator::{Attached, EmulatorError, Machine, Software};
use crate::status::Status;

/// Somebody waited in vain.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The machine does not run.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The words were not said.
    #[error("the machine did not say {wanted:?} {why}; the last that it said:\n{said}")]
    Silent {
        /// The words.
        wanted: String,
        /// Whether it has ended, or took too long.
        why: &'static str,
        /// What it said instead.
        said: String,
    },
    /// Nothing can be typed.
    #[error("nobody reads what is typed: {0}")]
    Typing(std::io::Error),
}

/// A machine that runs; it ends with this value at the latest.
pub struct Session {
    child: Child,
    line: ChildStdin,
    pieces: mpsc::Receiver<Vec<u8>>,
    /// What it said and nobody has waited for.
    said: Vec<u8>,
    begun: Instant,
    limit: Duration,
    _attached: Attached,
}

impl Machine {
    /// Starts it; what is [`Machine::typed`] is typed by others.
    pub fn start(&self, software: &Software) -> Result<Session, EmulatorError> {
        let attached = self.attach().map_err(EmulatorError::Devices)?;
        let mut child = self
            .command(software, &attached)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| EmulatorError::Start("setpriv", error))?;
        let missing = || EmulatorError::Serial(std::io::ErrorKind::BrokenPipe.into());
        let line = child.stdin.take().ok_or_else(missing)?;
        let mut serial = child.stdout.take().ok_or_else(missing)?;
        let (says, pieces) = mpsc::channel();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = serial.read(&mut piece) {
                let bytes = piece.get(..count).unwrap_or_default();
                if says.send(bytes.to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok(Session {
            child,
            line,
            pieces,
            said: Vec::new(),
            begun: Instant::now(),
            limit: self.limit,
            _attached: attached,
        })
    }
}

impl Session {
    /// Waits until it says these words: what it said up to their end, since it was waited for last.
    pub fn hears(&mut self, wanted: &str, within: Duration) -> Result<String, SessionError> {
        let until = Instant::now() + within;
        loop {
            let place = self
                .said
                .windows(wanted.len().max(1))
                .position(|window| window == wanted.as_bytes());
            if let Some(place) = place {
                let rest = self.said.split_off(place + wanted.len());
                let heard = std::mem::replace(&mut self.said, rest);
                return Ok(String::from_utf8_lossy(&heard).replace('\r', ""));
            }
            let left = until.saturating_duration_since(Instant::now());
            let why = match self.pieces.recv_timeout(left) {
                Ok(piece) => {
                    self.said.extend(piece);
                    continue;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => "in time",
                Err(mpsc::RecvTimeoutError::Disconnected) => "before its end",
            };
            return Err(SessionError::Silent {
                wanted: wanted.to_owned(),
                why,
                said: String::from_utf8_lossy(&self.said).into_owned(),
            });
        }
    }

    /// Types.
    pub fn types(&mut self, text: &str) -> Result<(), SessionError> {
        let typed = self.line.write_all(text.as_bytes());
        typed
            .and_then(|()| self.line.flush())
            .map_err(SessionError::Typing)
    }

    /// Waits for its end: what it said meanwhile, and how it ended.
    pub fn ends(mut self) -> Result<(String, Status), SessionError> {
        while let Ok(piece) = self.pieces.recv() {
            self.said.extend(piece);
        }
        let status = self.child.wait().map_err(EmulatorError::Serial)?;
        let said = String::from_utf8_lossy(&self.said).replace('\r', "");
        Ok((said, Status::of(status, self.begun.elapsed() >= self.limit)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Whoever limits the emulator's time hands the signal on to it.
            let mut command = Command::new("sh");
            command.args(["-c", "kill \"$1\"", "kill", &self.child.id().to_string()]);
            if command.status().is_ok_and(|status| status.success()) {
                let _ = self.child.wait();
            }
        }
    }
}
