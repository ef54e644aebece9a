//! The crate that extensions use, which this program brings along.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The files of `postern-extension`, by their place beside each other.
const FILES: &[(&str, &str)] = &[
    (
        "extension/src/lib.rs",
        include_str!("../../extension/src/lib.rs"),
    ),
    (
        "extension/src/trusted.rs",
        include_str!("../../extension/src/trusted.rs"),
    ),
    ("macros/src/lib.rs", include_str!("../../macros/src/lib.rs")),
];

const MANIFESTS: &[(&str, &str)] = &[
    (
        "extension/Cargo.toml",
        include_str!("../../extension/Cargo.toml"),
    ),
    ("macros/Cargo.toml", include_str!("../../macros/Cargo.toml")),
];

/// The folder of `postern-extension` in the cache, where cargo finds it under its name.
pub fn library() -> Result<PathBuf, Error> {
    let texts = FILES.iter().chain(MANIFESTS).map(|(_, text)| *text);
    let folder = postern_toolchain::cache().join(format!(
        "rust-{}-{:016x}",
        env!("CARGO_PKG_VERSION"),
        hash(texts)
    ));
    if !folder.join("extension/Cargo.toml").is_file() {
        for (name, text) in FILES {
            write(&folder.join(name), text)?;
        }
        for (name, text) in MANIFESTS {
            write(&folder.join(name), &alone(text))?;
        }
    }
    Ok(folder.join("extension"))
}

fn hash<'a>(texts: impl Iterator<Item = &'a str>) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    texts.for_each(|text| text.hash(&mut hasher));
    hasher.finish()
}

/// The manifest outside of Postern's workspace.
fn alone(manifest: &str) -> String {
    manifest
        .replace("rust-version.workspace = true\n", "")
        .replace(
            "version.workspace = true",
            concat!("version = \"", env!("CARGO_PKG_VERSION"), "\""),
        )
        .replace("edition.workspace = true", "edition = \"2024\"")
        .replace("license.workspace = true\n", "")
        + "\n[workspace]\n"
}

/// Writes a file, whole or not at all.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(Error::file(parent))?;
    // Whole or not there: another one may be at it, too.
    let unfinished = path.with_extension(format!("{}", std::process::id()));
    std::fs::write(&unfinished, text)
        .and_then(|()| std::fs::rename(&unfinished, path))
        .map_err(Error::file(path))
}
