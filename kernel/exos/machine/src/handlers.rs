//! Handlers that run in the kernel when messages arrive, of E-code in `programs/handlers`. Who
//! starts the service `net` has its handler in the archive, too.

use std::path::PathBuf;

use postern_aegis_machine::images;
use postern_exos_abi::network;
use thiserror::Error;

use crate::place;

/// The program that loads the handler.
const SERVICE: &str = "netd";

/// Why there is no handler.
#[derive(Debug, Error)]
pub enum HandlersError {
    /// Its source is not there.
    #[error("{path}: {1}", path = .0.display())]
    Read(PathBuf, std::io::Error),
    /// Its source is wrong.
    #[error("{path}: {1}", path = .0.display())]
    Source(PathBuf, String),
}

/// What belongs to files of an archive: names and images of handlers.
pub fn of(files: &[(String, Vec<u8>)]) -> Result<Option<(String, Vec<u8>)>, HandlersError> {
    let name = String::from_utf8_lossy(network::HANDLER).into_owned();
    let has = |wanted: &str| files.iter().any(|(name, _)| name == wanted);
    if !has(SERVICE) || has(&name) {
        return Ok(None);
    }
    let path = place::sources().join("programs/handlers/net.c");
    let source = std::fs::read(&path).map_err(|e| HandlersError::Read(path.clone(), e))?;
    let image = images::handler(&source, &[]).map_err(|e| HandlersError::Source(path, e))?;
    Ok(Some((name, image)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_has_its_handler() {
        let file = |name: &str| (name.to_owned(), Vec::new());
        let made = of(&[file("netd")]).expect("an image");
        let (name, image) = made.expect("one");
        assert_eq!(name.as_bytes(), network::HANDLER);
        assert!(image.starts_with(b"\x7fELF"));
        assert!(of(&[file("sh")]).expect("nothing").is_none());
        assert!(of(&[file("netd"), file(&name)]).expect("nothing").is_none());
    }
}
