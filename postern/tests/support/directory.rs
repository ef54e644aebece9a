//! Directories of the host's for tests, and extensions in C that are compiled in one.

use postern::Image;
use postern_toolchain::{Build, Language};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A new directory that goes when the test ends.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("postern-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles C to an image; `file` is what faults call the source.
pub fn compile(file: &str, source: &str, flags: &[&str]) -> Image {
    let directory = Directory::new();
    let path = directory.path(file);
    std::fs::write(&path, source).unwrap();
    let built = Build::new(Language::C)
        .file(&path)
        .flags(flags.iter().copied())
        .output(directory.path("built.px"))
        .run()
        .unwrap_or_else(|error| panic!("{error}"));
    Image::load(built).unwrap()
}
