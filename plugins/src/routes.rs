//! What is served by HTTP: `/plugins/`, `/transcode`, and `?through=` of static files.

use crate::client::Client;
use crate::memory::Received;
use crate::pipeline::Transcoded;
use crate::plugin::Plugin;
use crate::plugins::Plugins;
use crate::problem::Problem;
use crate::query::{Query, asks};
use crate::queue::Asker;
use crate::source::is_name;
use crate::{NAME, listing};
use bytes::{Bytes, BytesMut};
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, VARY,
};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use postern_server::{Body, BoxFuture, Counters, RequestBody, Routes};
use serde_json::Value;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

const TIMING: HeaderName = HeaderName::from_static("server-timing");
const PICTURE: HeaderName = HeaderName::from_static("postern-picture");

/// First room for a body.
const LEAST: usize = 16 << 10;

type Answer = Result<Response<Body>, Problem>;

impl Routes for Plugins {
    fn name(&self) -> &'static str {
        NAME
    }

    fn serves(&self, path: &[u8]) -> bool {
        path == b"/transcode" || path == b"/plugins" || path.starts_with(b"/plugins/")
    }

    fn serve<'a>(
        self: Arc<Self>,
        request: Request<Incoming>,
        path: &'a [u8],
        from: IpAddr,
    ) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move { self.answer(request, path, from).await })
    }

    fn transforms(&self, query: Option<&str>) -> Option<u64> {
        asks(query).then_some(self.settings.body_bytes)
    }

    fn transform<'a>(
        self: Arc<Self>,
        headers: &'a HeaderMap,
        query: Option<&'a str>,
        file: Bytes,
        from: IpAddr,
    ) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move { self.through(headers, query, file, from).await })
    }

    fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    fn metrics(&self) -> String {
        self.metrics_text()
    }

    fn has_changed(&self) -> bool {
        Plugins::has_changed(self)
    }

    fn reload(&self) -> Result<(), String> {
        Plugins::reload(self)
    }
}

impl Plugins {
    /// Answers a request for one of the paths.
    async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        path: &[u8],
        from: IpAddr,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        let bring = head.method == Method::PUT;
        let mut who = None;
        let answer = async {
            who = self.who(&head.headers, bring)?;
            let path =
                std::str::from_utf8(path).map_err(|_| Problem::missing("nothing is there"))?;
            if path == "/transcode" {
                if head.method != Method::POST {
                    return Err(Problem::method("POST"));
                }
                let wanted = Query::parse(head.uri.query())?;
                let asker = self.asker(who.as_deref(), from);
                let most = self.settings.body_bytes;
                let file = self.receive(body, most, &asker).await?;
                let done = self.transcode(who.clone(), wanted, file, asker);
                return Ok(picture(done.await?));
            }
            let rest = path.strip_prefix("/plugins").unwrap_or_default();
            let mut words = rest.trim_start_matches('/').splitn(2, '/');
            let (name, what) = (words.next().unwrap_or_default(), words.next());
            let client = who.as_deref();
            match (&head.method, name, what) {
                (&Method::GET | &Method::HEAD, "", None) => {
                    Ok(json(StatusCode::OK, self.list(client)))
                }
                (_, "", None) => Err(Problem::method("GET, HEAD")),
                (&Method::PUT, name, None) => {
                    let client = who.clone().ok_or_else(|| Problem::missing("nobody"))?;
                    self.put(client, name, body, from).await
                }
                (&Method::DELETE, name, None) => self.delete(client, name),
                (&Method::GET | &Method::HEAD, name, what) => self.show(client, name, what),
                (_, _, None) => Err(Problem::method("GET, HEAD, PUT, DELETE")),
                (_, _, Some(_)) => Err(Problem::method("GET, HEAD")),
            }
        };
        let answer: Answer = answer.await;
        self.told(who.as_deref(), answer)
    }

    /// Passes a static file through what its query says.
    async fn through(
        self: &Arc<Self>,
        headers: &HeaderMap,
        query: Option<&str>,
        file: Bytes,
        from: IpAddr,
    ) -> Response<Body> {
        let mut who = None;
        let answer = async {
            who = self.who(headers, false)?;
            let wanted = Query::parse(query)?;
            let asker = self.asker(who.as_deref(), from);
            let mut share = self.memory.lay(&asker.party);
            share.grow(file.len())?;
            let file = Received {
                bytes: file,
                _share: share,
            };
            let done = self.transcode(who.clone(), wanted, file, asker);
            Ok(picture(done.await?))
        };
        let answer: Answer = answer.await;
        self.told(who.as_deref(), answer)
    }

    fn told(&self, client: Option<&Client>, answer: Answer) -> Response<Body> {
        answer.unwrap_or_else(|problem| {
            self.note(client, &problem);
            problem.response()
        })
    }

    fn who(&self, headers: &HeaderMap, bring: bool) -> Result<Option<Arc<Client>>, Problem> {
        let said = match headers.get(AUTHORIZATION) {
            None => None,
            Some(said) => {
                let said = said.to_str().ok().and_then(|said| said.split_once(' '));
                let token = said.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
                let text = "Authorization must be: Bearer TOKEN";
                let token = token.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, text))?;
                Some(token.1.trim())
            }
        };
        self.clients.find(said, bring)
    }

    async fn receive(&self, body: Incoming, most: u64, of: &Asker) -> Result<Received, Problem> {
        let mut input = RequestBody::new(body, most, self.body)?;
        let mut share = self.memory.lay(&of.party);
        let mut bytes = BytesMut::new();
        while let Some(piece) = input.next(usize::MAX).await? {
            // What comes lies there twice at most, while there is more room made for it.
            if bytes.capacity() - bytes.len() < piece.len() {
                let room = bytes.capacity().max(piece.len()).max(LEAST);
                share.grow(room)?;
                bytes.reserve(room);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Received {
            bytes: bytes.freeze(),
            _share: share,
        })
    }

    async fn put(
        self: &Arc<Self>,
        client: Arc<Client>,
        name: &str,
        body: Incoming,
        from: IpAddr,
    ) -> Answer {
        if !is_name(name) {
            let text = "a plugin's name has letters, digits, `-` and `_`, 64 at most";
            return Err(Problem::new(StatusCode::BAD_REQUEST, text));
        }
        let request = client.enter()?;
        let quotas = client.quotas;
        let most = quotas.source_bytes.max(quotas.code_bytes.saturating_mul(2));
        let asker = self.asker(Some(&client), from);
        let sent = self.receive(body, most, &asker).await?;
        let turn = self.queue.enter(asker).await.map_err(Problem::waited)?;
        let (name, owner) = (name.to_owned(), client.name.clone());
        let (call, context) = (self.settings.call, self.context.clone());
        let plugins = self.clone();
        let put = self.threads.run(move || {
            let _held = (request, turn);
            plugins.with_room(|| client.put(&name, &sent.bytes, call, &context))
        });
        let failed = || {
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server failed at this plugin",
            )
            .with_id()
        };
        let (installed, replaced) = put.await.ok_or_else(failed)??;
        let status = match replaced {
            true => StatusCode::OK,
            false => StatusCode::CREATED,
        };
        Ok(json(status, installed.describe(&owner)))
    }

    fn delete(&self, client: Option<&Client>, name: &str) -> Answer {
        if client.is_some_and(|client| client.delete(name)) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Ok(response);
        }
        match self.site().plugins.contains_key(name) {
            true => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "that plugin is the site's",
            )),
            false => Err(Problem::missing("there is no such plugin")),
        }
    }

    /// The plugins that a client can use: its own, then the site's.
    fn list(&self, client: Option<&Client>) -> Value {
        let own = client.map(|client| client.plugins()).unwrap_or_default();
        let own = own.iter().map(|installed| installed.describe("client"));
        let set = self.site();
        let site = set.plugins.values().map(|plugin| plugin.describe("site"));
        own.chain(site).collect()
    }

    fn show(&self, client: Option<&Client>, name: &str, what: Option<&str>) -> Answer {
        let own = client.and_then(|client| client.find(name));
        let plugin = own.as_ref().map(|installed| installed.plugin.clone());
        let plugin = plugin.or_else(|| self.site().plugins.get(name).cloned());
        let plugin = plugin.ok_or_else(|| Problem::missing("there is no such plugin"))?;
        let plugin: &Plugin = &plugin;
        match what {
            None => {
                let text = "it was not sent as a source";
                let none = || Problem::new(StatusCode::NOT_ACCEPTABLE, text);
                Ok(text_of(plugin.source.clone().ok_or_else(none)?))
            }
            Some("facts") => {
                let own = own.map(|installed| installed.describe("client"));
                let facts = own.unwrap_or_else(|| plugin.describe("site"));
                Ok(json(StatusCode::OK, facts))
            }
            Some("code") => {
                let text = "its code cannot be shown: it was sent as an object";
                let none = || Problem::new(StatusCode::NOT_ACCEPTABLE, text);
                Ok(text_of(listing::of(plugin).ok_or_else(none)?))
            }
            Some(_) => Err(Problem::missing("a plugin has `code` and `facts`")),
        }
    }
}

fn json(status: StatusCode, value: Value) -> Response<Body> {
    let mut response = Response::new(Body::whole(format!("{value}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn text_of(text: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(text));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn picture(transcoded: Transcoded) -> Response<Body> {
    let mut timing = String::new();
    for (name, time) in &transcoded.times {
        let comma = if timing.is_empty() { "" } else { ", " };
        let _ = write!(timing, "{comma}{name};dur={:.6}", *time as f64 / 1e6);
    }
    let size = format!("{}x{}", transcoded.shape.width, transcoded.shape.height);
    let mut response = Response::new(Body::whole(transcoded.body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(transcoded.media));
    // Who asks decides which plugins there are.
    headers.insert(VARY, HeaderValue::from_static("authorization"));
    if transcoded.deflated {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("deflate"));
    }
    for (name, value) in [(TIMING, timing), (PICTURE, size)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    response
}
