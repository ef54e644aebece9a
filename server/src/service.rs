//! From a request to its answer: which handler or file it is for, and what is logged and counted of it.

use crate::body::{Body, Cut};
use crate::config::Site;
use crate::failure::{Failure, Id};
use crate::files::{self, Files};
use crate::gate::{Clients, Share};
use crate::handler::{Handler, HandlerError};
use crate::inside::Workers;
use crate::log::Log;
use crate::metrics::{self, Counted};
use crate::page;
use crate::program::Workshop;
use crate::status::{Roster, Status};
use crate::variables::Peers;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, SERVER};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

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
    /// Whether metrics and health are among the paths of the site.
    operations: bool,
    /// Whether there is the page.
    page: bool,
    /// What it shows.
    pub status: Arc<Status>,
}

/// An answer on its way: counted and logged when it is through.
pub struct Tracked {
    body: Body,
    sent: u64,
    status: StatusCode,
    began: Instant,
    counted: Option<Arc<Counted>>,
    line: Option<(String, Arc<Log>)>,
    _share: Option<Share>,
}

impl Service {
    /// Builds and loads all handlers of a site.
    ///
    /// # Errors
    /// One cannot be.
    pub fn new(
        site: &Site,
        files: Option<Files>,
        workshop: &Arc<Workshop>,
        log: &Arc<Log>,
    ) -> Result<Service, HandlerError> {
        let workers = Arc::new(Workers::new(site.workers));
        let roster: Arc<Roster> = Arc::default();
        let handlers = site.handlers.iter().map(|settings| {
            let handler =
                Handler::new(settings, workshop, &workers, &roster, site.limits.body, log)?;
            Ok(Arc::new(handler))
        });
        let mut handlers: Vec<_> = handlers.collect::<Result<_, _>>()?;
        handlers.sort_by_key(|handler| std::cmp::Reverse(handler.settings().path.len()));
        let public: Arc<Counted> = Arc::default();
        let counted = handlers.iter().map(|handler| handler.counted.clone());
        let counted = counted.chain([public.clone()]).collect();
        let heartbeat = site.page.heartbeat.clone();
        Ok(Service {
            page: site.page.enabled,
            status: Arc::new(Status::new(&roster, counted, heartbeat)),
            files,
            handlers,
            clients: Arc::new(Clients::new(site.limits.requests_per_client)),
            public,
            log: log.clone(),
            logs_access: log.has_access(),
            connections: AtomicUsize::new(0),
            operations: site.operations.is_none(),
        })
    }

    /// The handlers, to reload them.
    pub fn handlers(&self) -> &[Arc<Handler>] {
        &self.handlers
    }

    /// Answers a request of the site's listener.
    pub async fn answer(&self, request: Request<Incoming>, peers: Peers) -> Response<Tracked> {
        let began = Instant::now();
        let line = self.logs_access.then(|| {
            let target = request
                .uri()
                .path_and_query()
                .map_or("", |target| target.as_str());
            let (time, client) = (
                httpdate::fmt_http_date(SystemTime::now()),
                peers.client.ip(),
            );
            format!(
                "{client} - - [{time}] \"{} {target} {:?}\"",
                request.method(),
                request.version()
            )
        });
        let share = self.clients.enter(peers.client.ip());
        let (result, counted) = match &share {
            Ok(_) => self.route(request, &peers).await,
            Err(failure) => (Err(failure.clone()), None),
        };
        let mut response = result.unwrap_or_else(|failure| self.fail(&failure, counted.as_deref()));
        response
            .headers_mut()
            .insert(SERVER, HeaderValue::from_static("postern"));
        let status = response.status();
        response.map(|body| Tracked {
            body,
            sent: 0,
            status,
            began,
            counted: Some(counted.unwrap_or_else(|| self.public.clone())),
            line: line.map(|line| (line, self.log.clone())),
            _share: share.ok(),
        })
    }

    /// Answers a request of the operators' listener.
    pub fn operate(&self, request: &Request<Incoming>) -> Response<Tracked> {
        let answer = self.operation(request.uri().path()).map(Ok);
        let answer = answer.or_else(|| self.look(request));
        let answer = answer.unwrap_or(Err(Failure::NotFound));
        let response = answer.unwrap_or_else(|failure| failure.response(None));
        response.map(|body| Tracked {
            body,
            sent: 0,
            status: StatusCode::OK,
            began: Instant::now(),
            counted: None,
            line: None,
            _share: None,
        })
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        peers: &Peers,
    ) -> (Result<Response<Body>, Failure>, Option<Arc<Counted>>) {
        let hosts = request.headers().get_all(HOST).iter().count();
        let fine = hosts == 1 || hosts == 0 && request.version() == Version::HTTP_10;
        let Some(path) = decoded(request.uri().path()).filter(|_| fine) else {
            return (Err(Failure::Path), None);
        };
        if self.operations
            && let Some(answer) = self.operation(request.uri().path())
        {
            return (Ok(answer), None);
        }
        if self.page {
            let page = page::serve(request.method(), request.uri().path(), request.headers());
            if let Some(answer) = page.or_else(|| self.look(&request)) {
                return (answer, None);
            }
        }
        for handler in &self.handlers {
            if let Some(rest) = handler.serves(&path) {
                let result = handler.serve(request, rest, peers).await;
                return (result, Some(handler.counted.clone()));
            }
        }
        let result = match &self.files {
            Some(files) => {
                let raw = request
                    .uri()
                    .path_and_query()
                    .map_or("/", |target| target.as_str());
                files.serve(request.method(), &path, raw, request.headers())
            }
            None => Err(Failure::NotFound),
        };
        (result, None)
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
                (
                    "text/plain; version=0.0.4",
                    metrics::text(&self.handlers, &self.public, connections),
                )
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
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            byte => byte,
        };
        if byte == 0 {
            return None;
        }
        bytes.push(byte);
    }
    Some(bytes)
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let time = self.began.elapsed();
        if let Some(counted) = &self.counted {
            counted.answer(self.status, self.sent, time);
        }
        if let Some((line, log)) = &self.line {
            log.access(&format!(
                "{line} {} {} {:.6}",
                self.status.as_u16(),
                self.sent,
                time.as_secs_f64()
            ));
        }
    }
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
