//! `/tmp/perf-PID.map`: a line for each function, `address size name` in hexadecimal
//! (tools/perf/Documentation/jit-interface.txt of Linux). It knows no time: where domains follow
//! each other in a window, the last one is shown.

use super::shown::{Shown, name};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;

/// Makes the file anew. What a former process of this number has left is removed, and no link is
/// followed: everybody may write there.
pub(super) fn open(process: u32) -> io::Result<File> {
    let path = format!("/tmp/perf-{process}.map");
    let _ = std::fs::remove_file(&path);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

pub(super) fn write(file: &mut File, shown: &Shown<'_>) -> io::Result<()> {
    let mut text = String::new();
    for f in &shown.functions {
        let address = shown.base + u64::from(f.start);
        let _ = writeln!(text, "{address:x} {:x} {}", f.end - f.start, name(shown, f));
    }
    file.write_all(text.as_bytes())
}
