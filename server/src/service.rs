//! From a request to its answer: which handler or file it is for.

use crate::account::{Account, Tracked};
use crate::body::Body;
use crate::child::Spawner;
use crate::config::Site;
use crate::failure::{Failure, Id};
use crate::files::{self, Files};
use crate::gate::Clients;
use crate::handler::{Handler, HandlerError, Means};
use crate::inside::Workers;
use crate::log::Log;
use crate::metrics::{self, Counted};
use crate::page;
use crate::plugins::{self, Plugins};
use crate::program::Workshop;
use crate::status::{Roster, Status};
use crate::variables::Peers;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, SERVER};
use http::{Method, Request, Response, Version};
use hyper::body::Incoming;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

/// All that serves requests.
pub struct Service {
    files: Option<Files>,
    /// The longest paths first.
    handlers: Vec<Arc<Handler>>,
    clients: Arc<Clients>,
    public: Arc<Counted>,
    log: Arc<Log>,
    logs_access: bool,
    /// Connections now.
    pub connections: AtomicUsize,
    /// Connections that were closed at once, since their address had enough.
    pub refused: AtomicU64,
    /// Whether metrics and health are among the paths of the site.
    operations: bool,
    /// Whether there is the page.
    page: bool,
    /// What it shows.
    pub status: Arc<Status>,
    plugins: Option<Arc<Plugins>>,
    /// Whether static pictures can be passed through plugins.
    transcode: bool,
}

impl Service {
    /// Builds and loads all handlers of a site.
    ///
    /// # Errors
    /// One cannot be.
    pub fn new(
        site: &Site,
        files: Option<Files>,
        workshop: Workshop,
        spawner: Arc<Spawner>,
        log: &Arc<Log>,
    ) -> Result<Service, HandlerError> {
        let roster: Arc<Roster> = Arc::default();
        let means = Means {
            workshop: Arc::new(workshop),
            workers: Arc::new(Workers::new(site.workers)),
            roster: roster.clone(),
            spawner,
            log: log.clone(),
            patience: site.limits.receive,
        };
        let handlers = site.handlers.iter().map(|settings| {
            let handler = Handler::new(settings, &means)?;
            Ok(Arc::new(handler))
        });
        let mut handlers: Vec<_> = handlers.collect::<Result<_, _>>()?;
        handlers.sort_by_key(|handler| std::cmp::Reverse(handler.settings().path.len()));
        let public: Arc<Counted> = Arc::default();
        let plugins = site.plugins.as_ref().map(|settings| {
            let made = Plugins::new(settings, site.limits.receive, &roster, log);
            let made = made.map_err(|message| HandlerError {
                path: "plugins".to_owned(),
                message,
            });
            made.map(Arc::new)
        });
        let plugins = plugins.transpose()?;
        let counted = handlers.iter().map(|handler| handler.counted.clone());
        let counted = counted.chain([public.clone()]);
        let counted = counted.chain(plugins.iter().map(|plugins| plugins.counted.clone()));
        let counted = counted.collect();
        let heartbeat = site.page.heartbeat.clone();
        Ok(Service {
            page: site.page.enabled,
            status: Arc::new(Status::new(&roster, counted, heartbeat)),
            plugins,
            transcode: site.transcode,
            files,
            handlers,
            clients: Arc::new(Clients::new(site.limits.requests_per_client)),
            public,
            log: log.clone(),
            logs_access: log.has_access(),
            connections: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            operations: site.operations.is_none(),
        })
    }

    /// The plugins, if the site has any.
    pub fn plugins(&self) -> Option<&Arc<Plugins>> {
        self.plugins.as_ref()
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
            result.unwrap_or_else(|failure| self.fail(&failure, account.counted().map(|c| &**c)));
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
        if self.page {
            let page = page::serve(request.method(), request.uri().path(), request.headers());
            if let Some(answer) = page.or_else(|| self.look(&request)) {
                return answer;
            }
        }
        if let Some(plugins) = &self.plugins
            && plugins::serves(&path)
        {
            account.count(&plugins.counted);
            return Ok(plugins.serve(request, &path).await);
        }
        for handler in &self.handlers {
            if let Some(rest) = handler.serves(&path) {
                account.count(&handler.counted);
                return handler.serve(request, rest, peers).await;
            }
        }
        let Some(files) = &self.files else {
            return Err(Failure::NotFound);
        };
        if let Some(plugins) = self.plugins.as_ref().filter(|_| self.transcode)
            && plugins::asks(request.uri().query())
        {
            account.count(&plugins.counted);
            let file = files.read(request.method(), &path, plugins.most())?;
            let query = request.uri().query();
            return Ok(plugins.through(request.headers(), query, file).await);
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
                let plugins = self.plugins.as_deref();
                let mut others = vec![("", "static", &*self.public)];
                others.extend(plugins.map(|plugins| ("plugins", "plugins", &*plugins.counted)));
                let mut text = plugins.map_or_else(String::new, Plugins::metrics);
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

    fn fail(&self, failure: &Failure, counted: Option<&Counted>) -> Response<Body> {
        let id = failure.is_ours().then(Id::new);
        if let Some(id) = id {
            let path = self
                .handlers
                .iter()
                .find(|h| counted.is_some_and(|c| std::ptr::eq(c, &*h.counted)));
            let path = path.map_or("", |handler| &*handler.settings().path);
            self.log.error(&format!("{path}: id {id}: {failure}"));
        }
        if matches!(failure, Failure::Fault(_) | Failure::Late(..))
            && let Some(counted) = counted
        {
            counted.fault();
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
