//! From a request to its answer: which handler or file it is for.

use crate::access_line::AccessLine;
use crate::account::{Account, Tracked};
use crate::admission::{ClientLimit, ClientPermit};
use crate::body::Body;
use crate::components::{Processes, RouteContext, Routes, ServePage};
use crate::config::Site;
use crate::counters::Counters;
use crate::failure::{Failure, FailureId};
use crate::files::{self, Files};
use crate::handler::{Handler, HandlerContext, HandlerError};
use crate::host;
use crate::in_process::Workers;
use crate::log::Log;
use crate::metrics;
use crate::program::BuildFolder;
use crate::registry::Registry;
use crate::settings::HandlerSettings;
use crate::static_files::{KeptFiles, StaticFile};
use crate::status::Status;
use crate::variables::Peers;
use http::header::{CONTENT_TYPE, HeaderValue, REFERER, SERVER, USER_AGENT};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// All that serves requests.
pub struct Router {
    files: Option<Files>,
    kept: KeptFiles,
    /// The longest paths first.
    handlers: RwLock<Arc<[Arc<Handler>]>>,
    /// What makes more of them.
    context: HandlerContext,
    clients: Arc<ClientLimit>,
    public: Arc<Counters>,
    log: Arc<Log>,
    /// Whether its lines have the time that requests took.
    log_seconds: bool,
    /// Connections now.
    pub connections: AtomicUsize,
    /// Connections that were closed at once, since their address had enough.
    pub refused: AtomicU64,
    /// Whether metrics and health are among the paths of the site.
    operations: bool,
    /// The page, if the site has it.
    page: Option<ServePage>,
    /// What the server does now.
    pub status: Arc<Status>,
    /// What somebody else answers.
    routes: Option<Arc<dyn Routes>>,
    /// Whether static files can be changed by them.
    transcode: bool,
}

impl Router {
    /// Builds and loads all handlers of a site.
    ///
    /// # Errors
    /// One cannot be.
    pub fn new(
        site: &Site,
        files: Option<Files>,
        builds: BuildFolder,
        processes: Option<Arc<dyn Processes>>,
        log: &Arc<Log>,
    ) -> Result<Router, HandlerError> {
        let registry: Arc<Registry> = Arc::default();
        let context = HandlerContext {
            builds: Arc::new(builds),
            workers: Arc::new(Workers::new(site.workers)),
            registry: registry.clone(),
            processes,
            log: log.clone(),
            timeouts: site.limits.receive,
        };
        let handlers = site.handlers.iter().map(|settings| {
            let handler = Handler::new(settings, &context)?;
            Ok(Arc::new(handler))
        });
        let handlers = sorted(handlers.collect::<Result<_, _>>()?);
        let public: Arc<Counters> = Arc::default();
        let routes = site.routes.as_ref().map(|settings| {
            let started = settings.start(&RouteContext {
                folder: context.builds.folder().to_owned(),
                body: site.limits.receive,
                registry: registry.clone(),
                log: log.clone(),
            });
            started.map_err(|message| HandlerError {
                path: settings.name().to_owned(),
                message,
            })
        });
        let routes = routes.transpose()?;
        let counters = handlers.iter().map(|handler| handler.counters.clone());
        let counters = counters.chain([public.clone()]);
        let counters = counters.chain(routes.iter().map(|routes| routes.counters().clone()));
        let counters = counters.collect();
        let heartbeat = site.page.heartbeat.clone();
        Ok(Router {
            page: site.components.page.filter(|_| site.page.enabled),
            status: Arc::new(Status::new(&registry, counters, heartbeat)),
            routes,
            transcode: site.transcode,
            files,
            kept: KeptFiles::default(),
            handlers: RwLock::new(handlers),
            context,
            clients: Arc::new(ClientLimit::new(site.limits.requests_per_client)),
            public,
            log: log.clone(),
            log_seconds: site.log_seconds,
            connections: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            operations: site.operations.is_none(),
        })
    }

    /// What somebody else answers, to reload it.
    pub fn routes(&self) -> Option<&Arc<dyn Routes>> {
        self.routes.as_ref()
    }

    /// The handlers that there are now.
    pub fn handlers(&self) -> Arc<[Arc<Handler>]> {
        let handlers = self.handlers.read();
        handlers.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Builds one more handler; requests go to it from then on.
    ///
    /// # Errors
    /// It cannot be built.
    pub fn add(&self, settings: &Arc<HandlerSettings>) -> Result<(), HandlerError> {
        let handler = Arc::new(Handler::new(settings, &self.context)?);
        self.status.add(&handler.counters);
        let mut handlers = self
            .handlers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *handlers = sorted(handlers.iter().cloned().chain([handler]).collect());
        Ok(())
    }

    /// No request goes to the handler of a path any more; those that it serves go on.
    pub fn remove(&self, path: &str) {
        let mut handlers = self
            .handlers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let others = handlers
            .iter()
            .filter(|handler| handler.settings().path != path);
        *handlers = others.cloned().collect();
    }

    /// Answers a request of the site's listener.
    pub async fn answer(&self, request: Request<Incoming>, peers: Peers) -> Response<Tracked> {
        let line = self.log_access(|seconds| {
            let target = request
                .uri()
                .path_and_query()
                .map_or("", |target| target.as_str());
            let asked = (request.method(), target, request.version());
            let header = |name| request.headers().get(name).map(HeaderValue::as_bytes);
            let said = [header(REFERER), header(USER_AGENT)];
            AccessLine::new(peers.client.ip(), asked, said, seconds)
        });
        let mut account = Account::new(request.method(), line);
        account.count(&self.public);
        let result = match self.enter(&peers) {
            Ok(share) => {
                account.hold(share);
                self.route(request, &peers, &mut account).await
            }
            Err(failure) => Err(failure),
        };
        let mut response =
            result.unwrap_or_else(|failure| self.fail(&failure, account.counters().map(|c| &**c)));
        response
            .headers_mut()
            .insert(SERVER, HeaderValue::from_static("postern"));
        account.answer(response)
    }

    /// A line for the access log, if anybody reads that. `line` is told whether it shall have the
    /// time that the request took.
    pub fn log_access(
        &self,
        line: impl FnOnce(bool) -> AccessLine,
    ) -> Option<(AccessLine, Arc<Log>)> {
        let log = self.log.has_access().then(|| self.log.clone())?;
        Some((line(self.log_seconds), log))
    }

    /// One more request of a client.
    ///
    /// # Errors
    /// It has enough.
    pub fn enter(&self, peers: &Peers) -> Result<ClientPermit, Failure> {
        self.clients.enter(peers.client.ip())
    }

    /// Who counts answers with static files.
    pub fn public(&self) -> &Arc<Counters> {
        &self.public
    }

    /// The file that a path means to which nobody else answers, and in which each character stands
    /// for itself; `None` where there is more to say.
    pub fn static_file(&self, path: &str, asks: bool) -> Option<Arc<StaticFile>> {
        let files = self.files.as_ref()?;
        let bytes = path.as_bytes();
        let own = ["/healthz", "/metrics", "/status", "/_postern"];
        let other = asks && self.transcode
            || !bytes.iter().all(|&byte| is_plain(byte))
            || own.iter().any(|own| path.starts_with(own))
            || self.page.is_some() && path == "/"
            || self
                .routes
                .as_ref()
                .is_some_and(|routes| routes.serves(bytes))
            || self
                .handlers()
                .iter()
                .any(|handler| handler.serves(bytes).is_some());
        match other {
            true => None,
            false => self.kept.get(files, bytes),
        }
    }

    /// Answers a request of the operators' listener.
    pub fn operate(&self, request: &Request<Incoming>) -> Response<Tracked> {
        let answer = self.operation(request.uri().path()).map(Ok);
        let answer = answer.or_else(|| self.look(request));
        let answer = answer.unwrap_or(Err(Failure::NotFound));
        let response = answer.unwrap_or_else(|failure| failure.response(None));
        Account::new(request.method(), None).answer(response)
    }

    async fn route(
        &self,
        mut request: Request<Incoming>,
        peers: &Peers,
        account: &mut Account,
    ) -> Result<Response<Body>, Failure> {
        host::settle(&mut request)?;
        let path = decoded(request.uri().path()).ok_or(Failure::Path)?;
        if self.operations
            && let Some(answer) = self.operation(request.uri().path())
        {
            return Ok(answer);
        }
        if let Some(page) = self.page {
            let page = page(request.method(), request.uri().path(), request.headers());
            if let Some(answer) = page.or_else(|| self.look(&request)) {
                return answer;
            }
        }
        if let Some(routes) = self.routes.as_ref().filter(|routes| routes.serves(&path)) {
            account.count(routes.counters());
            return Ok(routes
                .clone()
                .serve(request, &path, peers.client.ip())
                .await);
        }
        for handler in &*self.handlers() {
            if let Some(rest) = handler.serves(&path) {
                account.count(&handler.counters);
                return handler.serve(request, rest, peers).await;
            }
        }
        let Some(files) = &self.files else {
            return Err(Failure::NotFound);
        };
        let query = request.uri().query();
        if let Some(routes) = self.routes.as_ref().filter(|_| self.transcode)
            && let Some(most) = routes.transforms(query)
        {
            account.count(routes.counters());
            let file = files.read(request.method(), &path, most)?;
            let from = peers.client.ip();
            let answer = routes
                .clone()
                .transform(request.headers(), query, file, from);
            return Ok(answer.await);
        }
        let raw = request
            .uri()
            .path_and_query()
            .map_or("/", |target| target.as_str());
        files.serve(request.method(), &path, raw, request.headers())
    }

    /// What the server does now, for those who ask for it.
    fn look<B>(&self, request: &Request<B>) -> Option<Result<Response<Body>, Failure>> {
        let known = self.status.serve(request.uri().path())?;
        Some(match *request.method() == Method::GET {
            true => known,
            false => Err(Failure::Method),
        })
    }

    fn operation(&self, path: &str) -> Option<Response<Body>> {
        let (kind, text) = match path {
            "/healthz" => ("text/plain", "ok\n".to_owned()),
            "/metrics" => {
                let connections = self.connections.load(Ordering::Relaxed);
                let refused = self.refused.load(Ordering::Relaxed);
                let routes = self.routes.as_deref();
                let mut others = vec![("", "static", &*self.public)];
                others.extend(routes.map(|routes| {
                    let name = routes.name();
                    (name, name, &**routes.counters())
                }));
                let mut text = routes.map_or_else(String::new, |routes| routes.metrics());
                text +=
                    &metrics::text(&self.handlers(), &others, (connections, refused), &self.log);
                ("text/plain; version=0.0.4", text)
            }
            _ => return None,
        };
        let mut response = Response::new(Body::whole(text));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        Some(response)
    }

    fn fail(&self, failure: &Failure, counters: Option<&Counters>) -> Response<Body> {
        let id = failure.is_ours().then(FailureId::new);
        if let Some(id) = id {
            let handlers = self.handlers();
            let path = handlers
                .iter()
                .find(|h| counters.is_some_and(|c| std::ptr::eq(c, &*h.counters)));
            let path = path.map_or("", |handler| &*handler.settings().path);
            self.log.error(&format!("{path}: id {id}: {failure}"));
        }
        if matches!(failure, Failure::Fault(_) | Failure::Late(..))
            && let Some(counters) = counters
        {
            counters.fault();
        }
        let mut response = failure.response(id);
        if matches!(failure, Failure::Method) {
            files::allow(&mut response);
        }
        response
    }
}

/// The longest paths first.
fn sorted(mut handlers: Vec<Arc<Handler>>) -> Arc<[Arc<Handler>]> {
    handlers.sort_by_key(|handler| std::cmp::Reverse(handler.settings().path.len()));
    handlers.into()
}

/// Whether a byte of a path is neither an escape nor anything that belongs into one, or that ends
/// paths (RFC 3986, section 3.3).
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte)
}

/// A path without its escapes; `None` if they are wrong or hide a NUL.
fn decoded(path: &str) -> Option<Vec<u8>> {
    if !path.starts_with('/') {
        return None;
    }
    unescaped(path.as_bytes()).filter(|bytes| !bytes.contains(&0))
}

/// Bytes without their escapes (`%20`); `None` if one is wrong.
pub fn unescaped(escaped: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.iter().copied();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn escapes() {
        assert_eq!(decoded("/a%20b%2f").as_deref(), Some(&b"/a b/"[..]));
        for wrong in ["", "a", "*", "/%", "/%4", "/%zz", "/%00", "/a%+1"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
