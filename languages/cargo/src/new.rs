//! `cargo postern new`.

use std::path::Path;

use crate::error::Error;
use crate::library::write;

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
