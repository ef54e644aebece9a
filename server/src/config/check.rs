//! From what `serve.toml` says to a [`Site`]: values that make sense, paths that are there.

use super::Site;
use super::file::{File, FileHandler, FileLimits, FilePage};
use crate::checker::{Checker, ConfigError};
use crate::components::Components;
use crate::program::BuildFolder;
use crate::settings::{HandlerSettings, Limits, Page, Recycle, Run, Tls};
use crate::timeouts::Timeouts;
use postern::socket_of;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Checks a whole site, for a server that has these components.
pub(super) struct SiteChecker<'a> {
    pub(super) checker: Checker<'a>,
    /// Who can serve what it says.
    pub(super) components: Components,
}

impl<'a> Deref for SiteChecker<'a> {
    type Target = Checker<'a>;

    fn deref(&self) -> &Checker<'a> {
        &self.checker
    }
}

impl SiteChecker<'_> {
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
            let mut settings = self.handler(number + 1, handler, limits, workers)?;
            if !paths.insert(settings.path.clone()) {
                let key = format!("handler {}: path", number + 1);
                return Err(self.wrong(key, format!("`{}` has a handler already", settings.path)));
            }
            // As other servers call it. What the site says itself stays.
            let root = public
                .as_ref()
                .and_then(|path| std::path::absolute(path).ok());
            if let Some(root) = root.as_ref().and_then(|root| root.to_str()) {
                let own = settings.env.entry("DOCUMENT_ROOT".to_owned());
                own.or_insert_with(|| root.to_owned());
            }
            handlers.push(Arc::new(settings));
        }
        let routes = match (file.plugins, self.components.plugins) {
            (None, _) => None,
            (Some(_), Some(read)) => Some(read(&self.checker, workers)?),
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
            log_seconds: file.log.seconds,
            tls: match file.tls {
                Some(tls) => Some(Tls {
                    certificate: self.there("tls.certificate", &tls.certificate, false)?,
                    key: self.there("tls.key", &tls.key, false)?,
                }),
                None => None,
            },
            page: self.page(file.page)?,
            handlers,
            discovered: false,
        })
    }

    /// The socket of the broker of a handler's domain, whose state is not this server's alone.
    fn share(
        &self,
        name: &str,
        handler: &FileHandler,
        key: &dyn Fn(&str) -> String,
    ) -> Result<PathBuf, ConfigError> {
        let broker = "means nothing with `share`: the broker says it (`postern share --heap`)";
        let all = "must be \"keep\" with `share`: a reset is one for all servers";
        let wrong = [
            ("heap_bytes", handler.heap_bytes.is_some(), broker),
            ("recycle", handler.recycle == Recycle::Reset, all),
            (
                "program",
                BuildFolder::is_source(&handler.program),
                "must be an image that was built (`postern cc`) with `share`, the same as the broker's",
            ),
        ];
        if let Some((name, _, why)) = wrong.iter().find(|(_, is, _)| *is) {
            return Err(self.wrong(key(name), *why));
        }
        match name.contains('/') {
            true => Ok(self.folder.join(name)),
            false => socket_of(name).map_err(|e| self.wrong(key("share"), e.to_string())),
        }
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
        if !handler.buffer_bytes.is_multiple_of(4096)
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
            ("share", handler.share.is_some()),
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
        let share = match &handler.share {
            Some(name) => Some(self.share(name, &handler, &key)?),
            None => None,
        };
        let named = |name: &&String| {
            let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            name.is_empty() || !name.bytes().all(letter) || name.starts_with("HTTP_")
        };
        if let Some(name) = handler.env.keys().find(named) {
            return Err(self.wrong(key("env"), format!("`{name}` is no name for a variable")));
        }
        let usual = if share.is_some() {
            workers
        } else {
            2 * workers
        };
        let instances = self.positive(&key("instances"), handler.instances.unwrap_or(usual))?;
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
            share,
            recycle: handler.recycle,
            files: files.collect::<Result<_, _>>()?,
            log_lines: handler.log_lines,
            env: handler.env,
            path,
        })
    }
}
