//! What a server can have besides its own: programs in processes, routes that somebody else
//! answers, and a page. Each is a crate that knows the server; the server knows these types, and
//! goes without any of them.
//!
//! Invariant: the site's file has the same keys whatever a server is made of. One that needs a
//! component which is not there is an error that names the key.

use crate::answer::Answer;
use crate::body::Body;
use crate::checker::{Checker, ConfigError};
use crate::counters::Counters;
use crate::failure::Failure;
use crate::log::Log;
use crate::program_log::ProgramLog;
use crate::registry::Registry;
use crate::request_body::RequestBody;
use crate::settings::HandlerSettings;
use crate::timeouts::Timeouts;
use crate::variables::Variables;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

/// Something that is ready later.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which components a server has. The default has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Components {
    /// For handlers with `run = "cgi"` and `run = "fastcgi"`.
    pub processes: Option<StartProcesses>,
    /// For `[plugins]`, `/plugins`, `/transcode`, and static files that are transcoded.
    pub plugins: Option<ReadRoutes>,
    /// For `[page]`.
    pub page: Option<ServePage>,
}

/// Prepares to start processes, once for a server that has handlers which need it.
pub type StartProcesses = fn() -> io::Result<Arc<dyn Processes>>;

/// Runs handlers' programs in processes of their own, which end with this at the latest.
pub trait Processes: Send + Sync {
    /// What runs a handler's program, the one in `file`. `folder` is for the server's own files.
    ///
    /// # Errors
    /// The system has no room for it.
    fn program(
        &self,
        settings: &Arc<HandlerSettings>,
        file: &Path,
        folder: &Path,
        log: &Arc<ProgramLog>,
    ) -> io::Result<Box<dyn ProcessProgram>>;
}

/// A handler's program that is run in processes.
pub trait ProcessProgram: Send + Sync {
    /// Serves a request; the result is why the answer was cut off, if it was.
    fn serve<'a>(
        &'a self,
        variables: &'a Variables,
        input: RequestBody,
        answer: Answer,
    ) -> BoxFuture<'a, Option<Failure>>;

    /// From now on the program is that of another file.
    fn replace(&self, file: &Path);

    /// How many processes were started, if they serve more than one request each.
    fn started(&self) -> Option<u64>;
}

/// Reads the settings of routes out of the site's file, for a server of so many worker threads.
pub type ReadRoutes = fn(&Checker<'_>, usize) -> Result<Arc<dyn RouteSettings>, ConfigError>;

/// Settings of routes: checked, and nothing is made yet.
pub trait RouteSettings: Debug + Send + Sync {
    /// Makes what answers.
    ///
    /// # Errors
    /// What is wrong, with the place.
    fn start(&self, context: &RouteContext) -> Result<Arc<dyn Routes>, String>;

    /// What the routes are called in errors, logs and metrics.
    fn name(&self) -> &'static str;
}

/// What a server lends to those who answer routes.
#[derive(Clone)]
pub struct RouteContext {
    /// Folder for files of the server's own; it goes with the server.
    pub folder: PathBuf,
    /// How fast bodies of requests must come.
    pub body: Timeouts,
    /// Where domains are shown.
    pub registry: Arc<Registry>,
    /// Where failures are told.
    pub log: Arc<Log>,
}

/// Routes that somebody else answers.
pub trait Routes: Send + Sync {
    /// What they are called in logs and metrics.
    fn name(&self) -> &'static str;

    /// Whether a decoded path is one of theirs.
    fn serves(&self, path: &[u8]) -> bool;

    /// Answers a request of an address for a path that [`Routes::serves`] knows.
    fn serve<'a>(
        self: Arc<Self>,
        request: Request<Incoming>,
        path: &'a [u8],
        from: IpAddr,
    ) -> BoxFuture<'a, Response<Body>>;

    /// Whether a query asks that a static file is changed on its way; then, how many bytes the file
    /// may have.
    fn transforms(&self, query: Option<&str>) -> Option<u64>;

    /// Answers a request for such a file.
    fn transform<'a>(
        self: Arc<Self>,
        headers: &'a HeaderMap,
        query: Option<&'a str>,
        file: Bytes,
        from: IpAddr,
    ) -> BoxFuture<'a, Response<Body>>;

    /// What they did so far.
    fn counters(&self) -> &Arc<Counters>;

    /// Their own lines for `/metrics`.
    fn metrics(&self) -> String;

    /// Whether files that they are made of are not what they were when they were read.
    fn has_changed(&self) -> bool;

    /// Reads those again.
    ///
    /// # Errors
    /// What is wrong with them; the former ones go on.
    fn reload(&self) -> Result<(), String>;
}

/// The answer to a request of a page, if the path is one of its files.
pub type ServePage = fn(&Method, &str, &HeaderMap) -> Option<Result<Response<Body>, Failure>>;
