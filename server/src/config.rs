//! What a site is: `serve.toml`, or what its folder says without one.
//!
//! Invariant: a [`Site`] can be served as far as can be known without running anything: keys are
//! known, values make sense, and what is named is there.

mod check;
mod file;

use crate::checker::{Checker, ConfigError, FILE};
use crate::components::{Components, RouteSettings};
use crate::settings::{HandlerSettings, Limits, Page, Tls};
use check::SiteChecker;
use file::{File, discovered};
use postern::input;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All that is served.
#[derive(Debug, Clone)]
pub struct Site {
    /// The folder.
    pub folder: PathBuf,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where metrics and health are, if not with the rest.
    pub operations: Option<SocketAddr>,
    /// Folder of static files.
    pub public: Option<PathBuf>,
    /// Worker threads.
    pub workers: usize,
    /// Limits.
    pub limits: Limits,
    /// Access log.
    pub access_log: PathBuf,
    /// Error log.
    pub error_log: PathBuf,
    /// Whether lines of the access log have the time that requests took.
    pub log_seconds: bool,
    /// Encryption.
    pub tls: Option<Tls>,
    /// The page.
    pub page: Page,
    /// Handlers.
    pub handlers: Vec<Arc<HandlerSettings>>,
    /// Whether they are what the folder `handlers` has, which may change.
    pub discovered: bool,
    /// Whether static pictures can be passed through plugins.
    pub transcode: bool,
    /// Routes of `[plugins]`.
    pub routes: Option<Arc<dyn RouteSettings>>,
    /// What the server has besides its own.
    pub components: Components,
}

impl Site {
    /// Reads what a folder serves, for a server that has these components.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn load(folder: &Path, components: Components) -> Result<Site, ConfigError> {
        let path = folder.join(FILE);
        match input::read_text(&path, input::MAX_TEXT).map_err(std::io::Error::from) {
            Ok(text) => Site::parse(folder, &text, components),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let site = checker(folder, "", components).site(discovered(folder))?;
                let site = Site {
                    discovered: true,
                    ..site
                };
                // An empty folder may get some.
                let none = site.public.is_none() && site.handlers.is_empty();
                match none && !folder.join("handlers").is_dir() {
                    true => Err(ConfigError::Nothing(folder.to_owned())),
                    false => Ok(site),
                }
            }
            Err(source) => Err(ConfigError::Read { path, source }),
        }
    }

    /// The same for the text of a `serve.toml`.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn parse(folder: &Path, text: &str, components: Components) -> Result<Site, ConfigError> {
        let checker = checker(folder, text, components);
        let file: File = checker.read()?;
        checker.site(file)
    }
}

fn checker<'a>(folder: &'a Path, text: &'a str, components: Components) -> SiteChecker<'a> {
    SiteChecker {
        checker: Checker {
            folder,
            path: folder.join(FILE),
            text,
        },
        components,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Run;

    fn wrong(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.c"), "").unwrap();
        Site::parse(folder.path(), text, Components::default())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, expected) in [
            ("lisen = \"x\"", "unknown field `lisen`"),
            (
                "listen = \"here\"",
                "listen: `here` is no address with a port",
            ),
            ("workers = 1", "workers: must be 2 to 1024"),
            ("public = \"nowhere\"", "public: there is no folder"),
            (
                "[limits]\nheader_bytes = 1",
                "limits.header_bytes: must be 8192",
            ),
            (
                "[limits]\nheader_ms = 0",
                "limits.header_ms: must be more than 0",
            ),
            ("[[handler]]\npath = \"/a\"", "missing field `program`"),
            (
                "[[handler]]\npath = \"a\"\nprogram = \"a.c\"",
                "handler 1: path: must begin with a slash",
            ),
            (
                "[[handler]]\npath = \"/a/../b\"\nprogram = \"a.c\"",
                "handler 1: path: must begin",
            ),
            (
                "[[handler]]\npath = \"/metrics\"\nprogram = \"a.c\"",
                "is the server's own",
            ),
            (
                "[[handler]]\npath = \"/a\"\nprogram = \"b.c\"",
                "handler 1: program: there is no file",
            ),
            (
                "[[handler]]\npath = \"/a\"\nprogram = \"a.c\"\nrun = \"fast\"",
                "unknown variant `fast`",
            ),
            (
                "[[handler]]\npath = \"/a\"\nprogram = \"a.c\"\nrun = \"cgi\"\nheap_bytes = 1",
                "means nothing with run = \"cgi\"",
            ),
            (
                "[[handler]]\npath = \"/a\"\nprogram = \"a.c\"\nenv = { HTTP_A = \"b\" }",
                "`HTTP_A` is no name",
            ),
            (
                "[[handler]]\npath = \"/a\"\nprogram = \"a.c\"\n[[handler]]\npath = \"/a/\"\nprogram = \"a.c\"",
                "handler 2: path: `/a` has a handler already",
            ),
            (
                "[page]\nheartbeat = \"guest\"",
                "page.heartbeat: must be a path",
            ),
            ("transcode = true", "transcode: needs [plugins]"),
            ("[plugins]", "plugins: this server has none"),
            (
                "[page]\nenabled = true",
                "page.enabled: this server has no page",
            ),
            (
                "[[handler]]\npath = \"/a\"\nprogram = \"a.c\"\nrun = \"cgi\"",
                "handler 1: run: this server starts no processes",
            ),
            (
                "[[handler]]\npath = \"/plugins\"\nprogram = \"a.c\"",
                "is the server's own",
            ),
            (
                "[tls]\ncertificate = \"a\"\nkey = \"b\"",
                "tls.certificate: there is no file",
            ),
        ] {
            let said = wrong(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn a_folder_without_a_file_says_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            Site::load(folder.path(), Components::default()),
            Err(ConfigError::Nothing(_))
        ));
        std::fs::create_dir(folder.path().join("handlers")).unwrap();
        std::fs::write(folder.path().join("handlers/hello.c"), "").unwrap();
        let site = Site::load(folder.path(), Components::default()).unwrap();
        assert_eq!(site.handlers[0].path, "/hello");
        assert_eq!(site.handlers[0].run, Run::Protected);
    }
}
