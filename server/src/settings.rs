//! What a site says of handlers, limits and encryption, as values that make sense. Who reads them
//! is for [`crate::config`] to know.

use crate::timeouts::Timeouts;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

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
    /// The shared domain that its instances attach to, by name, or by the path of its socket.
    pub share: Option<PathBuf>,
    /// What becomes of a domain between two requests.
    pub recycle: Recycle,
    /// Folders that it may read.
    pub files: Vec<PathBuf>,
    /// Lines that it may write into the error log in a second.
    pub log_lines: u64,
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
