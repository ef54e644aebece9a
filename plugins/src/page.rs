//! The page at `/`, on which people try plugins: a few files that are part of the program.
//!
//! Invariant: the page needs nothing from elsewhere and runs no script but its own; a browser is
//! told so, too.

use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Response, StatusCode};
use postern_server::{Body, Failure, has_tag};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What the page may load: files of this server, and pictures that it made itself.
const POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, kind and text.
const FILES: [(&str, &str, &str); 12] = [
    ("/", HTML, include_str!("../page/index.html")),
    ("/_postern/page.css", CSS, include_str!("../page/page.css")),
    ("/_postern/dom.js", SCRIPT, include_str!("../page/dom.js")),
    (
        "/_postern/draft.js",
        SCRIPT,
        include_str!("../page/draft.js"),
    ),
    ("/_postern/page.js", SCRIPT, include_str!("../page/page.js")),
    (
        "/_postern/editor.js",
        SCRIPT,
        include_str!("../page/editor.js"),
    ),
    (
        "/_postern/samples.js",
        SCRIPT,
        include_str!("../page/samples.js"),
    ),
    (
        "/_postern/picture.js",
        SCRIPT,
        include_str!("../page/picture.js"),
    ),
    (
        "/_postern/server.js",
        SCRIPT,
        include_str!("../page/server.js"),
    ),
    (
        "/_postern/result.js",
        SCRIPT,
        include_str!("../page/result.js"),
    ),
    ("/_postern/live.js", SCRIPT, include_str!("../page/live.js")),
    (
        "/_postern/icon.svg",
        "image/svg+xml",
        include_str!("../page/icon.svg"),
    ),
];

/// The answer to a request for a path, if it is the page's.
pub fn serve(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Option<Result<Response<Body>, Failure>> {
    if path != "/" && !path.starts_with("/_postern/") {
        return None;
    }
    if method != Method::GET && method != Method::HEAD {
        return Some(Err(Failure::Method));
    }
    let file = FILES.iter().find(|(name, ..)| *name == path);
    Some(match file {
        Some((_, kind, text)) => Ok(answer(kind, text, method, headers)),
        None => Err(Failure::NotFound),
    })
}

fn answer(
    kind: &'static str,
    text: &'static str,
    method: &Method,
    headers: &HeaderMap,
) -> Response<Body> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let tag = format!("\"{:x}\"", hasher.finish());
    let known = has_tag(headers, &tag);
    let mut response = Response::new(Body::empty());
    let out = response.headers_mut();
    for (name, value) in [
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_TYPE, kind),
    ] {
        out.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::try_from(tag) {
        out.insert(ETAG, tag);
    }
    match method {
        _ if known => *response.status_mut() = StatusCode::NOT_MODIFIED,
        &Method::HEAD => drop(out.insert(CONTENT_LENGTH, text.len().into())),
        _ => *response.body_mut() = Body::whole(text),
    }
    response
}
