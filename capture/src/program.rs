//! Extensions that look at packets, from a file or, with the feature `compile`, from source: C, C++
//! and E-code are compiled now.

use postern::Image;
use std::path::Path;
use thiserror::Error;

/// Why there is no extension.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The file cannot be read, or the compiler's cannot be written.
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    /// Source code, where only compiled extensions are taken.
    #[error("{0} is source code; compile it first: `postern {1} {0} -o NAME.px`")]
    Source(String, &'static str),
    /// What the compiler says, with file and line.
    #[error("{0}")]
    Compile(String),
    /// The file is no extension, or refused.
    #[error("{0}: {1}")]
    Load(String, postern::LoadError),
}

/// Loads an extension, or compiles and loads the source of one (`.c`, `.cc`, `.cpp`, `.cxx`; `.ec`
/// is E-code).
///
/// # Errors
/// The file cannot be read, the source has errors, or the verifier refuses the code.
#[cfg(feature = "compile")]
pub fn load(path: &Path) -> Result<Image, ProgramError> {
    use postern_toolchain::{Language, driver::run_captured};
    use std::ffi::OsString;

    let name = || path.display().to_string();
    let file = |error| ProgramError::File(name(), error);
    let refused = |error| ProgramError::Load(name(), error);
    if let Some(language) = Language::of(path) {
        let folder = tempfile::tempdir().map_err(file)?;
        let stem = path.file_stem().unwrap_or_default();
        let output = folder.path().join(stem).with_extension("px");
        let arguments: [OsString; 5] = [
            "-O2".into(),
            "-g".into(),
            path.into(),
            "-o".into(),
            output.clone().into(),
        ];
        run_captured(language, &arguments)
            .map_err(|error| ProgramError::Compile(error.to_string()))?;
        return Image::load(&output).map_err(refused);
    }
    if path.extension().is_some_and(|ending| ending == "ec") {
        let source = postern::input::read_text(path, postern::input::MAX_TEXT)
            .map_err(|error| file(error.into()))?;
        let wrong = |error: &dyn std::fmt::Display| {
            let lines = error.to_string();
            let lines = lines.lines().map(|line| format!("{}:{line}", name()));
            ProgramError::Compile(lines.collect::<Vec<_>>().join("\n"))
        };
        let compiled = postern::compile_image(&name(), &source).map_err(|e| wrong(&e))?;
        return Image::from_bytes(&compiled).map_err(refused);
    }
    Image::load(path).map_err(refused)
}

/// Loads an extension; source code is refused, with what to do. Programs that use this and not
/// [`load`] have no compiler in them.
///
/// # Errors
/// The file cannot be read, is source code, or the verifier refuses the code.
pub fn load_compiled(path: &Path) -> Result<Image, ProgramError> {
    let name = || path.display().to_string();
    let command = match path.extension().and_then(|ending| ending.to_str()) {
        Some("c") => "cc -O2",
        Some("cc" | "cpp" | "cxx") => "c++ -O2",
        Some("ec") => "ecode",
        _ => return Image::load(path).map_err(|error| ProgramError::Load(name(), error)),
    };
    Err(ProgramError::Source(name(), command))
}
