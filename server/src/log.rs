//! The two logs: one line for each request, and one for each thing that the operator should know.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

type Sink = Mutex<Option<BufWriter<Box<dyn Write + Send>>>>;

/// Both logs.
pub struct Log {
    access: Sink,
    error: Sink,
}

impl Log {
    /// To files, which are appended to. `-` is standard output for the access log and standard error for the other; an empty name is
    /// none.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn open(access: &Path, error: &Path) -> io::Result<Log> {
        Ok(Log {
            access: sink(access, || Box::new(io::stdout()))?,
            error: sink(error, || Box::new(io::stderr()))?,
        })
    }

    /// To where `write` says, for hosts and tests.
    pub fn to(access: Box<dyn Write + Send>, error: Box<dyn Write + Send>) -> Log {
        Log {
            access: Mutex::new(Some(BufWriter::new(access))),
            error: Mutex::new(Some(BufWriter::new(error))),
        }
    }

    /// Whether anybody reads the access log.
    pub fn has_access(&self) -> bool {
        self.access
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    /// A line of the access log; it is written when enough have come, or at [`Log::flush`].
    pub fn access(&self, line: &str) {
        write(&self.access, line, false);
    }

    /// A line of the error log, written at once. Line ends and control characters in it are shown, so that no program can write
    /// lines in the server's name.
    pub fn error(&self, text: &str) {
        let line: String = text
            .chars()
            .flat_map(|c| {
                let shown = c.is_control().then(|| c.escape_default());
                let plain = shown.is_none().then_some(c);
                shown.into_iter().flatten().chain(plain)
            })
            .collect();
        write(&self.error, &format!("postern: {line}"), true);
    }

    /// Writes what waits.
    pub fn flush(&self) {
        for sink in [&self.access, &self.error] {
            if let Some(sink) = sink.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                // Nobody can be told that the log cannot be written.
                let _ = sink.flush();
            }
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.flush();
    }
}

fn sink(path: &Path, standard: impl FnOnce() -> Box<dyn Write + Send>) -> io::Result<Sink> {
    let writer: Option<Box<dyn Write + Send>> = match path.to_str() {
        Some("") => None,
        Some("-") => Some(standard()),
        _ => Some(Box::new(append(path)?)),
    };
    Ok(Mutex::new(
        writer.map(|writer| BufWriter::with_capacity(64 << 10, writer)),
    ))
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn write(sink: &Sink, line: &str, now: bool) {
    if let Some(sink) = sink.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        let _ = writeln!(sink, "{line}");
        if now {
            let _ = sink.flush();
        }
    }
}
