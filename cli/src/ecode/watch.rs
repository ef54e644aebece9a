//! `--watch`: the same again whenever a file changes.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::output::Outcome;

/// Between two looks at the files.
const PAUSE: Duration = Duration::from_millis(100);

/// Does `work` now and after each change, until somebody interrupts it. What goes wrong is said,
/// and may be mended.
pub fn run(files: &[PathBuf], work: impl Fn() -> Outcome) -> Outcome {
    loop {
        let before = state(files);
        if let Err(failure) = work() {
            failure.report();
        }
        eprintln!("postern: watching; change a file, or interrupt");
        while state(files) == before {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Which file it is, when it was changed, and how long it is; one that is not there now may come
/// back.
fn state(files: &[PathBuf]) -> Vec<Option<(u64, SystemTime, u64)>> {
    files
        .iter()
        .map(|path| {
            let data = std::fs::metadata(path).ok()?;
            Some((data.ino(), data.modified().ok()?, data.len()))
        })
        .collect()
}
