//! From what `serve.toml` says to a [`Site`]: values that make sense, paths that are there.

use super::file::{File, FileHandler, FileLimits, FilePage};
use super::{ConfigError, HandlerSettings, Limits, Page, Recycle, Run, Site, Tls};
use crate::components::Components;
use crate::timeouts::Timeouts;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Checks what stands in one file. Its errors name the file and the key.
pub struct Checker<'a> {
    /// Paths begin there.
    pub(super) folder: &'a Path,
    /// The file, for complaints.
    pub(super) path: PathBuf,
    /// All of it.
    pub(super) text: &'a str,
    /// Who can serve what it says.
    pub(super) components: Components,
}

impl Checker<'_> {
    /// The error for a key's value.
    pub fn wrong(&self, key: impl Into<String>, message: impl Into<String>) -> ConfigError {
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

    /// A file, or a folder, that is there.
    ///
    /// # Errors
    /// It is not.
    pub fn there(&self, key: &str, path: &Path, folder: bool) -> Result<PathBuf, ConfigError> {
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

    /// A number that is not 0.
    ///
    /// # Errors
    /// It is.
    pub fn positive<N: PartialEq + Default>(&self, key: &str, number: N) -> Result<N, ConfigError> {
        match number == N::default() {
            true => Err(self.wrong(key, "must be more than 0")),
            false => Ok(number),
        }
    }

    /// A time that is not 0.
    ///
    /// # Errors
    /// It is.
    pub fn time(&self, key: &str, milliseconds: u64) -> Result<Duration, ConfigError> {
        self.positive(key, milliseconds).map(Duration::from_millis)
    }

    /// The file as `T` has it. The whole file's keys are known already; `T` has those that are a component's.
    ///
    /// # Errors
    /// A key that there is not, or a value of another type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        toml::from_str(self.text).map_err(|error| ConfigError::Syntax {
            path: self.path.clone(),
            message: error.to_string().trim_end().to_owned(),
        })
    }

    /// The whole file.
    pub(super) fn site(&self, file: File) -> Result<Site, ConfigError> {
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
        let routes = match (file.plugins, self.components.plugins) {
            (None, _) => None,
            (Some(_), Some(read)) => Some(read(self, workers)?),
            (Some(_), None) => return Err(self.wrong("plugins", "this server has none")),
        };
        if file.transcode && routes.is_none() {
            return Err(self.wrong("transcode", "needs [plugins]: whose plugins shall it be"));
        }
        Ok(Site {
            transcode: file.transcode,
            routes,
            components: self.components,
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
                connections_per_client: self.positive(
                    "limits.connections_per_client",
                    limits.connections_per_client,
                )?,
                requests_per_client: self
                    .positive("limits.requests_per_client", limits.requests_per_client)?,
                headers: limits.headers,
                header_bytes: limits.header_bytes,
                header: self.time("limits.header_ms", limits.header_ms)?,
                receive: Timeouts {
                    idle: self.time("limits.body_ms", limits.body_ms)?,
                    rate: limits.bytes_per_second,
                },
                send: Timeouts {
                    idle: self.time("limits.send_ms", limits.send_ms)?,
                    rate: limits.bytes_per_second,
                },
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
            page: self.page(file.page)?,
            handlers,
        })
    }

    fn page(&self, page: FilePage) -> Result<Page, ConfigError> {
        match &page.heartbeat {
            Some(path) if !path.starts_with('/') => {
                Err(self.wrong("page.heartbeat", "must be a path, like /guest"))
            }
            _ if page.enabled && self.components.page.is_none() => {
                Err(self.wrong("page.enabled", "this server has no page"))
            }
            _ => Ok(Page {
                enabled: page.enabled,
                heartbeat: page.heartbeat,
            }),
        }
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
    ) -> Result<HandlerSettings, ConfigError> {
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
        let own = [
            "/healthz",
            "/metrics",
            "/status",
            "/_postern",
            "/plugins",
            "/transcode",
        ];
        if own.contains(&&*path) {
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
        if handler.run.is_process() && self.components.processes.is_none() {
            let text = format!(
                "this server starts no processes: `{}` is not possible",
                handler.run.name()
            );
            return Err(self.wrong(key("run"), text));
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
        Ok(HandlerSettings {
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
