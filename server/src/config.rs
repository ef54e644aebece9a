//! What a site is: `serve.toml`, or what its folder says without one.
//!
//! Invariant: a [`Site`] can be served as far as can be known without running anything: keys are known, values make sense, and what is
//! named is there.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: String,
    public: Option<PathBuf>,
    workers: Option<usize>,
    limits: FileLimits,
    log: FileLog,
    operations: FileOperations,
    tls: Option<FileTls>,
    handler: Vec<FileHandler>,
}

impl Default for File {
    fn default() -> File {
        File {
            listen: "127.0.0.1:8080".to_owned(),
            public: None,
            workers: None,
            limits: FileLimits::default(),
            log: FileLog::default(),
            operations: FileOperations::default(),
            tls: None,
            handler: Vec::new(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLimits {
    connections: usize,
    requests_per_client: usize,
    headers: usize,
    header_bytes: usize,
    header_ms: u64,
    body_bytes: u64,
    body_ms: u64,
    send_ms: u64,
    shutdown_ms: u64,
}

impl Default for FileLimits {
    fn default() -> FileLimits {
        FileLimits {
            connections: 1024,
            requests_per_client: 256,
            headers: 100,
            header_bytes: 16 << 10,
            header_ms: 10_000,
            body_bytes: 1 << 20,
            body_ms: 10_000,
            send_ms: 10_000,
            shutdown_ms: 10_000,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLog {
    access: PathBuf,
    error: PathBuf,
}

impl Default for FileLog {
    fn default() -> FileLog {
        FileLog {
            access: "-".into(),
            error: "-".into(),
        }
    }
}

#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct FileOperations {
    listen: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTls {
    certificate: PathBuf,
    key: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHandler {
    path: String,
    program: PathBuf,
    #[serde(default)]
    run: Run,
    #[serde(default)]
    sources: Vec<PathBuf>,
    #[serde(default)]
    flags: Vec<String>,
    instances: Option<usize>,
    #[serde(default = "default_waiting")]
    waiting: usize,
    #[serde(default = "default_wait")]
    wait_ms: u64,
    #[serde(default = "default_call")]
    call_ms: u64,
    heap_bytes: Option<u64>,
    #[serde(default = "default_buffer")]
    buffer_bytes: usize,
    body_bytes: Option<u64>,
    #[serde(default)]
    recycle: Recycle,
    #[serde(default)]
    files: Vec<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

fn default_waiting() -> usize {
    128
}
fn default_wait() -> u64 {
    5_000
}
fn default_call() -> u64 {
    10_000
}
fn default_buffer() -> usize {
    128 << 10
}

/// Limits of the server as a whole.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once; more wait.
    pub connections: usize,
    /// Requests of one address at once.
    pub requests_per_client: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a request's head.
    pub header_bytes: usize,
    /// Longest time for a request's head to come, also on a connection that is kept.
    pub header: Duration,
    /// Longest time without anything of a body that is due.
    pub body: Duration,
    /// Longest time for which a client takes nothing of its answer.
    pub send: Duration,
    /// How long a server that ends waits for requests.
    pub shutdown: Duration,
}

/// One handler.
#[derive(Debug, Clone)]
pub struct Settings {
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

impl Settings {
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
    /// Handlers.
    pub handlers: Vec<Arc<Settings>>,
}

impl Site {
    /// Reads what a folder serves.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn load(folder: &Path) -> Result<Site, ConfigError> {
        let path = folder.join(FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => Site::parse(folder, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let site = Checker { folder, path }.site(discovered(folder))?;
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
    pub fn parse(folder: &Path, text: &str) -> Result<Site, ConfigError> {
        let path = folder.join(FILE);
        let file: File = toml::from_str(text).map_err(|error| ConfigError::Syntax {
            path: path.clone(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        Checker { folder, path }.site(file)
    }
}

/// `public/`, and a handler for each source in `handlers/`.
fn discovered(folder: &Path) -> File {
    let sources = std::fs::read_dir(folder.join("handlers"))
        .into_iter()
        .flatten();
    let mut names: Vec<PathBuf> = sources.flatten().map(|entry| entry.path()).collect();
    names.retain(|path| path.extension().is_some_and(|e| e == "c" || e == "px"));
    names.sort();
    let handler = names.iter().filter_map(|path| {
        let stem = path.file_stem()?.to_str()?;
        let file = path.file_name()?.to_str()?;
        let text = format!(
            "path = {:?}\nprogram = {:?}",
            format!("/{stem}"),
            format!("handlers/{file}")
        );
        toml::from_str(&text).ok()
    });
    File {
        handler: handler.collect(),
        ..File::default()
    }
}

struct Checker<'a> {
    folder: &'a Path,
    path: PathBuf,
}

impl Checker<'_> {
    fn wrong(&self, key: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::Value {
            path: self.path.clone(),
            key: key.into(),
            message: message.into(),
        }
    }

    fn address(&self, key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
        text.parse().map_err(|_| {
            self.wrong(
                key,
                format!("`{text}` is no address with a port, like 127.0.0.1:8080 or [::]:80"),
            )
        })
    }

    fn there(&self, key: &str, path: &Path, folder: bool) -> Result<PathBuf, ConfigError> {
        let full = self.folder.join(path);
        let what = if folder { "folder" } else { "file" };
        match std::fs::metadata(&full) {
            Ok(found) if found.is_dir() == folder => Ok(full),
            Ok(_) => Err(self.wrong(key, format!("{} is no {what}", full.display()))),
            Err(error) => Err(self.wrong(
                key,
                format!("there is no {what} {}: {error}", full.display()),
            )),
        }
    }

    fn positive<N: PartialEq + Default>(&self, key: &str, number: N) -> Result<N, ConfigError> {
        match number == N::default() {
            true => Err(self.wrong(key, "must be more than 0")),
            false => Ok(number),
        }
    }

    fn time(&self, key: &str, milliseconds: u64) -> Result<Duration, ConfigError> {
        self.positive(key, milliseconds).map(Duration::from_millis)
    }

    fn site(&self, file: File) -> Result<Site, ConfigError> {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let workers = self.positive("workers", file.workers.unwrap_or(processors + 1))?;
        if !(2..=1024).contains(&workers) {
            return Err(self.wrong("workers", "must be 2 to 1024: a program may keep one busy"));
        }
        let public = match &file.public {
            Some(path) => Some(self.there("public", path, true)?),
            None => Some(self.folder.join("public")).filter(|path| path.is_dir()),
        };
        let limits = &file.limits;
        if !(8 << 10..=1 << 20).contains(&limits.header_bytes) {
            return Err(self.wrong("limits.header_bytes", "must be 8192 to 1048576"));
        }
        if !(1..=1000).contains(&limits.headers) {
            return Err(self.wrong("limits.headers", "must be 1 to 1000"));
        }
        let mut paths = BTreeSet::new();
        let mut handlers = Vec::new();
        for (number, handler) in file.handler.into_iter().enumerate() {
            let settings = self.handler(number + 1, handler, limits, workers)?;
            if !paths.insert(settings.path.clone()) {
                let key = format!("handler {}: path", number + 1);
                return Err(self.wrong(key, format!("`{}` has a handler already", settings.path)));
            }
            handlers.push(Arc::new(settings));
        }
        Ok(Site {
            folder: self.folder.to_owned(),
            listen: self.address("listen", &file.listen)?,
            operations: match &file.operations.listen {
                Some(text) => Some(self.address("operations.listen", text)?),
                None => None,
            },
            public,
            workers,
            limits: Limits {
                connections: self.positive("limits.connections", limits.connections)?,
                requests_per_client: self
                    .positive("limits.requests_per_client", limits.requests_per_client)?,
                headers: limits.headers,
                header_bytes: limits.header_bytes,
                header: self.time("limits.header_ms", limits.header_ms)?,
                body: self.time("limits.body_ms", limits.body_ms)?,
                send: self.time("limits.send_ms", limits.send_ms)?,
                shutdown: Duration::from_millis(limits.shutdown_ms),
            },
            access_log: self.log(file.log.access),
            error_log: self.log(file.log.error),
            tls: match file.tls {
                Some(tls) => Some(Tls {
                    certificate: self.there("tls.certificate", &tls.certificate, false)?,
                    key: self.there("tls.key", &tls.key, false)?,
                }),
                None => None,
            },
            handlers,
        })
    }

    fn log(&self, path: PathBuf) -> PathBuf {
        match path.to_str() {
            Some("" | "-") => path,
            _ => self.folder.join(path),
        }
    }

    fn handler(
        &self,
        number: usize,
        handler: FileHandler,
        limits: &FileLimits,
        workers: usize,
    ) -> Result<Settings, ConfigError> {
        let key = |name: &str| format!("handler {number}: {name}");
        let path = handler.path.trim_end_matches('/').to_owned();
        let segments = path.split('/').skip(1);
        let plain = |segment: &str| {
            let letter = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
            !segment.is_empty() && !segment.starts_with('.') && segment.bytes().all(letter)
        };
        let rooted = handler.path.starts_with('/');
        if !rooted || !segments.into_iter().all(plain) {
            let text = "must begin with a slash, and have segments of letters, digits, `-`, `.`, `_` and `~`";
            return Err(self.wrong(key("path"), text));
        }
        if path == "/healthz" || path == "/metrics" {
            return Err(self.wrong(key("path"), format!("`{path}` is the server's own")));
        }
        let sources = handler
            .sources
            .iter()
            .map(|path| self.there(&key("sources"), path, false));
        let files = handler
            .files
            .iter()
            .map(|path| self.there(&key("files"), path, true));
        if handler.buffer_bytes % 4096 != 0
            || !(32 << 10..=64 << 20).contains(&handler.buffer_bytes)
        {
            return Err(self.wrong(
                key("buffer_bytes"),
                "must be a multiple of 4096 from 32768 to 67108864",
            ));
        }
        let confined = handler.run == Run::Protected;
        let only = [
            ("heap_bytes", handler.heap_bytes.is_some()),
            ("files", !handler.files.is_empty()),
            ("recycle", handler.recycle == Recycle::Reset),
        ];
        if let Some((name, _)) = only.iter().find(|(_, said)| *said && !confined) {
            let text = format!(
                "means nothing with run = \"{}\": only a domain has it",
                handler.run.name()
            );
            return Err(self.wrong(key(name), text));
        }
        let named = |name: &&String| {
            let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            name.is_empty() || !name.bytes().all(letter) || name.starts_with("HTTP_")
        };
        if let Some(name) = handler.env.keys().find(named) {
            return Err(self.wrong(key("env"), format!("`{name}` is no name for a variable")));
        }
        let instances =
            self.positive(&key("instances"), handler.instances.unwrap_or(2 * workers))?;
        if instances > 1024 {
            return Err(self.wrong(key("instances"), "must be at most 1024"));
        }
        Ok(Settings {
            program: self.there(&key("program"), &handler.program, false)?,
            run: handler.run,
            sources: sources.collect::<Result<_, _>>()?,
            flags: handler.flags,
            instances,
            waiting: handler.waiting,
            wait: Duration::from_millis(handler.wait_ms),
            call: self.time(&key("call_ms"), handler.call_ms)?,
            heap: handler.heap_bytes,
            buffer: handler.buffer_bytes,
            body_bytes: handler.body_bytes.unwrap_or(limits.body_bytes),
            recycle: handler.recycle,
            files: files.collect::<Result<_, _>>()?,
            env: handler.env,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.c"), "").unwrap();
        Site::parse(folder.path(), text).unwrap_err().to_string()
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
            Site::load(folder.path()),
            Err(ConfigError::Nothing(_))
        ));
        std::fs::create_dir(folder.path().join("handlers")).unwrap();
        std::fs::write(folder.path().join("handlers/hello.c"), "").unwrap();
        let site = Site::load(folder.path()).unwrap();
        assert_eq!(site.handlers[0].path, "/hello");
        assert_eq!(site.handlers[0].run, Run::Protected);
    }
}
