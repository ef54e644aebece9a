//! What a site is: `serve.toml`, or what its folder says without one.
//!
//! Invariant: a [`Site`] can be served as far as can be known without running anything: keys are known, values make sense, and what is
//! named is there.

mod check;
mod file;

pub use check::Checker;

use crate::components::{Components, RouteSettings};
use crate::timeouts::Timeouts;
use file::{File, discovered};
use postern::input;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// The file's name.
pub const FILE: &str = "serve.toml";

/// What is wrong with a site, and where.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, or a key that there is not.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// With line and column.
        message: String,
    },
    /// A value that makes no sense.
    #[error("{}: {key}: {message}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key, with its table.
        key: String,
        /// What would make sense.
        message: String,
    },
    /// Nothing to serve.
    #[error(
        "{} has nothing to serve: put files into {}/public, programs into {}/handlers, or write a {FILE}",
        .0.display(), .0.display(), .0.display()
    )]
    Nothing(PathBuf),
}

/// How a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Run {
    /// As an extension in the server's process.
    #[default]
    Protected,
    /// As a shared object in the server's process.
    Unprotected,
    /// As processes that serve many requests.
    Fastcgi,
    /// As a process for each request.
    Cgi,
}

impl Run {
    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Run::Protected => "protected",
            Run::Unprotected => "unprotected",
            Run::Fastcgi => "fastcgi",
            Run::Cgi => "cgi",
        }
    }

    /// Whether programs are run in processes of their own.
    pub fn is_process(self) -> bool {
        matches!(self, Run::Fastcgi | Run::Cgi)
    }
}

/// What becomes of an instance between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Recycle {
    /// It stays as it is.
    #[default]
    Keep,
    /// It begins anew.
    Reset,
}

/// Limits of the server as a whole.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once; more wait.
    pub connections: usize,
    /// Those of one address.
    pub connections_per_client: usize,
    /// Requests of one address at once.
    pub requests_per_client: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a request's head.
    pub header_bytes: usize,
    /// Longest time for a request's head to come, also on a connection that is kept.
    pub header: Duration,
    /// How fast bodies of requests must come.
    pub receive: Timeouts,
    /// How fast clients must take their answers.
    pub send: Timeouts,
    /// How long a server that ends waits for requests.
    pub shutdown: Duration,
}

/// One handler.
#[derive(Debug, Clone)]
pub struct HandlerSettings {
    /// The beginning of the paths that it serves, without a slash at the end.
    pub path: String,
    /// Source or program.
    pub program: PathBuf,
    /// How it is run.
    pub run: Run,
    /// Further sources.
    pub sources: Vec<PathBuf>,
    /// For the compiler.
    pub flags: Vec<String>,
    /// Domains, shared objects, or processes.
    pub instances: usize,
    /// Requests that may wait for one.
    pub waiting: usize,
    /// How long they may.
    pub wait: Duration,
    /// Longest time of a call.
    pub call: Duration,
    /// Heap of a domain.
    pub heap: Option<u64>,
    /// Bytes of an answer that the program can write before it hands them over.
    pub buffer: usize,
    /// Longest body of a request.
    pub body_bytes: u64,
    /// What becomes of a domain between two requests.
    pub recycle: Recycle,
    /// Folders that it may read.
    pub files: Vec<PathBuf>,
    /// Further variables.
    pub env: BTreeMap<String, String>,
}

impl HandlerSettings {
    /// Whether it runs in a domain.
    pub fn confined(&self) -> bool {
        self.run == Run::Protected
    }
}

/// Certificate and key, in PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The chain, the server's own first.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The page at `/`.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Whether there is one.
    pub enabled: bool,
    /// A path of the site that the page asks four times a second, to show that requests go on.
    pub heartbeat: Option<String>,
}

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
    /// Encryption.
    pub tls: Option<Tls>,
    /// The page.
    pub page: Page,
    /// Handlers.
    pub handlers: Vec<Arc<HandlerSettings>>,
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
                let checker = Checker {
                    folder,
                    path,
                    text: "",
                    components,
                };
                let site = checker.site(discovered(folder))?;
                match site.public.is_none() && site.handlers.is_empty() {
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
        let checker = Checker {
            folder,
            path: folder.join(FILE),
            text,
            components,
        };
        let file: File = checker.read()?;
        checker.site(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
