//! From a request to its answer: which handler or file it is for.

use crate::account::{Account, Tracked};
use crate::admission::ClientLimit;
use crate::body::Body;
use crate::components::{Processes, RouteContext, Routes, ServePage};
use crate::config::Site;
use crate::counters::Counters;
use crate::failure::{Failure, FailureId};
use crate::files::{self, Files};
use crate::handler::{Handler, HandlerContext, HandlerError};
use crate::in_process::Workers;
use crate::log::Log;
use crate::metrics;
use crate::program::BuildFolder;
use crate::registry::Registry;
use crate::status::Status;
use crate::variables::Peers;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, SERVER};
use http::{Method, Request, Response, Version};
use hyper::body::Incoming;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

/// All that serves requests.
pub struct Router {
    files: Option<Files>,
    /// The longest paths first.
    handlers: Vec<Arc<Handler>>,
    clients: Arc<ClientLimit>,
    public: Arc<Counters>,
    log: Arc<Log>,
    logs_access: bool,
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
        let mut handlers: Vec<_> = handlers.collect::<Result<_, _>>()?;
        handlers.sort_by_key(|handler| std::cmp::Reverse(handler.settings().path.len()));
        let public: Arc<Counters> = Arc::default();
        let routes = site.routes.as_ref().map(|settings| {
            let started = settings.start(&RouteContext {
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
            handlers,
            clients: Arc::new(ClientLimit::new(site.limits.requests_per_client)),
            public,
            log: log.clone(),
            logs_access: log.has_access(),
            connections: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            operations: site.operations.is_none(),
        })
    }

    /// What somebody else answers, to reload it.
    pub fn routes(&self) -> Option<&Arc<dyn Routes>> {
        self.routes.as_ref()
    }

    /// The handlers, to reload them.
    pub fn handlers(&self) -> &[Arc<Handler>] {
        &self.handlers
    }

    /// Answers a request of the site's listener.
    pub async fn answer(&self, request: Request<Incoming>, peers: Peers) -> Response<Tracked> {
        let line = self.logs_access.then(|| {
            let target = request
                .uri()
                .path_and_query()
                .map_or("", |target| target.as_str());
            let (time, client) = (
                httpdate::fmt_http_date(SystemTime::now()),
                peers.client.ip(),
            );
            let line = format!(
                "{client} - - [{time}] \"{} {target} {:?}\"",
                request.method(),
                request.version()
            );
            (line, self.log.clone())
        });
        let mut account = Account::new(request.method(), line);
        account.count(&self.public);
        let result = match self.clients.enter(peers.client.ip()) {
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
        request: Request<Incoming>,
        peers: &Peers,
        account: &mut Account,
    ) -> Result<Response<Body>, Failure> {
        let hosts = request.headers().get_all(HOST).iter().count();
        let fine = hosts == 1 || hosts == 0 && request.version() == Version::HTTP_10;
        let Some(path) = decoded(request.uri().path()).filter(|_| fine) else {
            return Err(Failure::Path);
        };
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
            return Ok(routes.clone().serve(request, &path).await);
        }
        for handler in &self.handlers {
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
            let answer = routes.clone().transform(request.headers(), query, file);
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
                text += &metrics::text(&self.handlers, &others, (connections, refused));
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
            let path = self
                .handlers
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
