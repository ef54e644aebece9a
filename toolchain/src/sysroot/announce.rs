//! What a long build says on the terminal, and the lock that lets a second driver wait for the first.

use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::fs::{FlockOperation, flock};

use crate::driver::DriverError;

/// A file that one process at a time holds; it is given back when the process ends, however that is.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock, and says so if there is something to wait for.
    pub fn take(path: &Path) -> Result<Self, DriverError> {
        let error = |source| DriverError::File {
            path: path.to_owned(),
            source,
        };
        let file = File::create(path).map_err(error)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            eprintln!(
                "postern: another process is building the library for extensions; waiting for it"
            );
            flock(&file, FlockOperation::LockExclusive).map_err(|source| error(source.into()))?;
        }
        Ok(Self { _file: file })
    }
}

/// A bar on a terminal; elsewhere one line at the beginning and one at the end.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    what: &'static str,
}

impl Progress {
    /// Announces that `what` is built of `count` files of `source`.
    pub fn new(what: &'static str, source: &str, count: usize) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = ProgressBar::new(count as u64);
        if plain {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            eprintln!("postern: building {what} for extensions, once ({count} files of {source})");
        } else if let Ok(style) = ProgressStyle::with_template(&format!(
            "building {what}, once {{bar:30}} {{pos}}/{{len}} {{msg}}"
        )) {
            bar.set_style(style);
        }
        Self { bar, plain, what }
    }

    /// One file more is done.
    pub fn step(&self, name: &str) {
        self.bar.set_message(name.to_owned());
        self.bar.inc(1);
    }

    /// All is done.
    pub fn finish(self) {
        self.bar.finish_and_clear();
        if self.plain {
            eprintln!("postern: {} is built", self.what);
        }
    }
}
