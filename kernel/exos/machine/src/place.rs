//! Where things lie. All that is built is below `target/exos` of the repository.

use std::path::PathBuf;

pub use postern_aegis_machine::place::repository;

/// The folder of ExOS' sources.
pub fn sources() -> PathBuf {
    repository().join("kernel/exos")
}

/// The folder of everything that is built for it.
pub fn target() -> PathBuf {
    repository().join("target/exos")
}

/// Where cargo builds for programs of ours, whose paths are not those of the host.
pub fn builds() -> PathBuf {
    target().join("builds")
}

/// What cargo builds: `init`, `libexos.a`.
pub fn built(name: &str) -> PathBuf {
    builds().join("x86_64-unknown-linux-gnu/release").join(name)
}

/// The library that programs are linked with.
pub fn library() -> PathBuf {
    target().join("libexos.a")
}
