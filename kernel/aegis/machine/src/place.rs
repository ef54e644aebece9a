//! Where things lie. All that is built is below `target/aegis` of the repository.

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(3).unwrap_or(here);
    root.to_owned()
}

/// The folder of the kernel's sources, a workspace of its own.
pub fn sources() -> PathBuf {
    repository().join("kernel/aegis")
}

/// The folder of everything that is built for the machine or drawn of it.
pub fn target() -> PathBuf {
    repository().join("target/aegis")
}

/// A program of that workspace as cargo builds it; the kernel is the program `aegis`.
pub fn program(name: &str) -> PathBuf {
    let folder = target().join("x86_64-unknown-linux-gnu/release");
    folder.join(name)
}
