//! Why a source was not compiled: the error under all others, which the making of libraries, the
//! link and the driver add theirs to.

use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::tools::ToolError;

/// Why a source was not compiled, or a file not made.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A tool.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The source.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Source(Vec<Diagnostic>),
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl CompileError {
    /// For `map_err`: what is wrong with the file at `path`.
    pub(crate) fn file(path: &Path) -> impl Fn(std::io::Error) -> CompileError + use<> {
        let path = path.to_owned();
        move |source| CompileError::File {
            path: path.clone(),
            source,
        }
    }
}
