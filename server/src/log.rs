//! The two logs: one line for each request, and one for each thing that the operator should know.
//!
//! Invariant: whoever has something to say never waits for whoever reads it. Lines go to a
//! [`sink`], whose thread writes them; what there is no room for is dropped and counted.

mod sink;

use sink::{Destination, Sink};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long the end of a log waits for what was not written yet.
const LAST: Duration = Duration::from_secs(1);

/// Both logs.
pub struct Log {
    access: Option<Sink>,
    error: Option<Sink>,
    /// Lines of programs beyond what they may say.
    left_out: AtomicU64,
}

impl Log {
    /// To files, which are appended to. `-` is standard output for the access log and standard
    /// error for the other; an empty name is none.
    ///
    /// # Errors
    /// A file cannot be opened; which one.
    pub fn open(access: &Path, error: &Path) -> io::Result<Log> {
        let error = Destination::open(error, || rustix::io::dup(io::stderr()))?;
        let access = Destination::open(access, || rustix::io::dup(io::stdout()))?;
        Log::with(access, error)
    }

    /// To where `write` says, for hosts and tests.
    ///
    /// # Errors
    /// There are no more threads.
    pub fn to(access: Box<dyn Write + Send>, error: Box<dyn Write + Send>) -> io::Result<Log> {
        let [access, error] = [access, error].map(|to| Some(Destination::Stream(to)));
        Log::with(access, error)
    }

    fn with(access: Option<Destination>, error: Option<Destination>) -> io::Result<Log> {
        let error = error.map(|to| Sink::new("error", to, None)).transpose()?;
        let access = access.map(|to| Sink::new("access", to, error.as_ref()));
        Ok(Log {
            access: access.transpose()?,
            error,
            left_out: AtomicU64::new(0),
        })
    }

    /// Whether anybody reads the access log.
    pub fn has_access(&self) -> bool {
        self.access.is_some()
    }

    /// A line of the access log; it is written when enough have come, or soon.
    pub fn access(&self, line: &str) {
        if let Some(sink) = &self.access {
            sink.say(line, false);
        }
    }

    /// Lines of the error log, written at once. Control characters in them are shown, and lines
    /// after the first are indented, so that no program can write lines in the server's name.
    pub fn error(&self, text: &str) {
        let Some(sink) = &self.error else {
            return;
        };
        let shown = |c: char| {
            let escaped = (c.is_control() && c != '\t').then(|| c.escape_default());
            let plain = escaped.is_none().then_some(c);
            escaped.into_iter().flatten().chain(plain)
        };
        for (number, line) in text.trim_end().split('\n').enumerate() {
            let begin = if number == 0 { "postern: " } else { "    " };
            let line: String = begin.chars().chain(line.chars().flat_map(shown)).collect();
            sink.say(&line, true);
        }
    }

    /// A line of a program's beyond what it may say: it is counted.
    pub fn leave_out(&self) {
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }

    /// Opens the files again: somebody has moved them away.
    pub fn reopen(&self) {
        for sink in self.access.iter().chain(&self.error) {
            sink.reopen();
        }
    }

    /// Waits until all is written, if that does not take long.
    pub fn flush(&self) {
        for sink in self.access.iter().chain(&self.error) {
            sink.flush(LAST);
        }
    }

    /// Lines that were dropped, by log: nobody took them.
    pub fn dropped(&self) -> [(&'static str, u64); 2] {
        let dropped = |sink: &Option<Sink>| sink.as_ref().map_or(0, Sink::dropped);
        [
            ("access", dropped(&self.access)),
            ("error", dropped(&self.error)),
        ]
    }

    /// Lines of programs that were left out, since the program had said enough.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }
}
