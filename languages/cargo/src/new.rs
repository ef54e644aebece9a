//! `cargo postern new`, and the crate that extensions use, which this program brings along.

use std::path::{Path, PathBuf};

use crate::Error;

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

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(Error::file(parent))?;
    // Whole or not there: another one may be at it, too.
    let unfinished = path.with_extension(format!("{}", std::process::id()));
    std::fs::write(&unfinished, text)
        .and_then(|()| std::fs::rename(&unfinished, path))
        .map_err(Error::file(path))
}

/// Makes a crate.
pub fn make(path: &Path, std: bool) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(plain) {
        return Err(Error::Other(format!(
            "`{name}` cannot be a crate's name: that is a letter, and letters, digits, - and _"
        )));
    }
    if path.exists() {
        return Err(Error::Other(format!(
            "{}: this is there already",
            path.display()
        )));
    }
    let version = env!("CARGO_PKG_VERSION");
    let (features, profile, attribute) = match std {
        true => (", features = [\"std\"]", "", ""),
        false => (
            "",
            "\n[profile.release]\npanic = \"abort\"\n",
            "#![cfg_attr(not(test), no_std)]\n\n",
        ),
    };
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         postern = {{ package = \"postern-extension\", version = \"{version}\"{features} }}\n{profile}"
    );
    let source = format!(
        "//! An extension: `cargo postern build`, then `cargo postern run -- checksum =Wikipedia 9`.\n{attribute}\
         /// Adler-32 of the bytes.\n#[postern::export]\npub fn checksum(data: &[u8]) -> u32 {{\n    \
         let (mut a, mut b) = (1, 0);\n    for byte in data {{\n        a = (a + u32::from(*byte)) % 65521;\n        \
         b = (b + a) % 65521;\n    }}\n    b << 16 | a\n}}\n"
    );
    write(&path.join("Cargo.toml"), &manifest)?;
    write(&path.join("src/lib.rs"), &source)?;
    write(&path.join(".gitignore"), "/target\n")
}
