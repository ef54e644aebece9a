//! Building extensions from a program: what build scripts, tests and benches use instead of the
//! command.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{DriverError, run};
use crate::compile::Language;

/// Sources and options for one extension.
///
/// ```no_run
/// use postern_toolchain::{Build, Language};
/// let image = Build::new(Language::C).file("gray.c").flag("-O2").output("gray.px").run()?;
/// # Ok::<(), postern_toolchain::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Build {
    language: Language,
    arguments: Vec<OsString>,
    output: PathBuf,
}

/// Why no extension was built: the message, in the compiler's form where a source is to blame.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BuildError(#[from] DriverError);

impl Build {
    /// Nothing yet; the output is `a.px`.
    pub fn new(language: Language) -> Self {
        Self {
            language,
            arguments: Vec::new(),
            output: "a.px".into(),
        }
    }

    /// Adds a source, object or archive.
    pub fn file(self, path: impl AsRef<Path>) -> Self {
        self.flag(path.as_ref().as_os_str())
    }

    /// Adds an option as the command line has it.
    pub fn flag(mut self, flag: impl AsRef<OsStr>) -> Self {
        self.arguments.push(flag.as_ref().to_owned());
        self
    }

    /// Adds options.
    pub fn flags<A: AsRef<OsStr>>(self, flags: impl IntoIterator<Item = A>) -> Self {
        flags.into_iter().fold(self, Self::flag)
    }

    /// Names the file to write.
    pub fn output(mut self, path: impl Into<PathBuf>) -> Self {
        self.output = path.into();
        self
    }

    /// Builds an ordinary shared object instead.
    pub fn native(self) -> Self {
        self.flag("--native")
    }

    /// Compiles and links; returns the output's path.
    ///
    /// # Errors
    /// As the command would print it.
    pub fn run(mut self) -> Result<PathBuf, BuildError> {
        self.arguments
            .extend(["-o".into(), self.output.clone().into_os_string()]);
        run(self.language, &self.arguments)?;
        Ok(self.output)
    }
}
