//! Runs the command as a user would, and keeps what came of it.
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `postern` with these arguments in the folder of the test.
pub fn postern<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(arguments)
        .current_dir(folder())
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    Run {
        code: output.status.code().expect("exits, and is not killed"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

impl Run {
    /// The output, of a run that succeeded and had nothing to complain about.
    pub fn good(self) -> String {
        assert!(self.code == 0 && self.stderr.is_empty(), "{self:?}");
        self.stdout
    }

    /// The complaint, of a run that ended with `code`.
    pub fn bad(self, code: i32) -> String {
        assert!(
            self.code == code && self.stderr.starts_with("postern: "),
            "{self:?}"
        );
        self.stderr
    }

    /// The output of a run that ended with `code`, as JSON.
    pub fn json(&self, code: i32) -> serde_json::Value {
        assert_eq!(self.code, code, "{self:?}");
        serde_json::from_str(&self.stdout).expect("JSON")
    }
}

/// A folder for the files of this test program.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Writes a file there.
pub fn file(name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, bytes).expect("writes");
    path
}

/// Compiles C there to an extension and returns its name.
pub fn extension(name: &str, source: &str) -> String {
    file(&format!("{name}.c"), source);
    let image = format!("{name}.px");
    let run = postern(&["cc", "-O1", "-g", "-o", &image, &format!("{name}.c")]);
    assert_eq!(run.code, 0, "{run:?}");
    image
}
