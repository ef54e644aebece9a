//! Where things lie that are made once: the cache folder.

use std::path::{Path, PathBuf};

/// Why a prerequisite is not there.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A package is not installed.
    #[error("{what} was not found at {path}; install it with: apt-get install {package}")]
    Missing {
        /// What.
        what: &'static str,
        /// Where it was looked for.
        path: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A command failed.
    #[error("`{command}` failed: {messages}")]
    Command {
        /// Its name.
        command: &'static str,
        /// What it said.
        messages: String,
    },
}

impl PlaceError {
    /// For `map_err`.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::File { path, source }
    }
}

/// The folder of this tool in the user's cache.
pub fn cache() -> PathBuf {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .filter(|path| path.is_absolute())
        .unwrap_or_else(std::env::temp_dir)
        .join("postern/conformance")
}

/// Fills the folder `name` of the cache with `fill`, unless it is there. It is filled under another
/// name and renamed, so that it is never seen half full.
pub fn cached(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<(), PlaceError>,
) -> Result<PathBuf, PlaceError> {
    let folder = cache().join(name);
    if folder.exists() {
        return Ok(folder);
    }
    let unfinished = cache().join(format!("{name}.{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&unfinished);
    std::fs::create_dir_all(&unfinished).map_err(PlaceError::file(&unfinished))?;
    let filled = fill(&unfinished);
    if filled.is_ok()
        && let Err(source) = std::fs::rename(&unfinished, &folder)
        && !folder.exists()
    {
        return Err(PlaceError::file(&folder)(source));
    }
    let _ = std::fs::remove_dir_all(&unfinished);
    filled.map(|()| folder)
}
