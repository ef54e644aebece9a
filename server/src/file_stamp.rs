//! What files look like from outside, to see that they have changed.

use std::path::PathBuf;
use std::time::SystemTime;

/// What a file looked like: gone, or its size and time.
pub type FileStamp = (PathBuf, Option<(u64, SystemTime)>);

/// What files look like now.
pub fn stamps(files: Vec<PathBuf>) -> Vec<FileStamp> {
    let stamp = |path: PathBuf| {
        let found = std::fs::metadata(&path).ok();
        let found = found.and_then(|found| Some((found.len(), found.modified().ok()?)));
        (path, found)
    };
    files.into_iter().map(stamp).collect()
}
