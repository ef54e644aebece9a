//! Static files below one folder.
//!
//! Invariant: what is sent lies below the folder. The path is decoded once and checked, and the
//! kernel is told to leave the folder under no circumstances (`openat2` with `RESOLVE_BENEATH`),
//! whatever links are there.

use crate::body::{Body, Cut};
use crate::failure::Failure;
use crate::range::{Asked, asked};
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, LAST_MODIFIED,
    LOCATION,
};
use http::{Method, Response, StatusCode};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::SystemTime;

/// Files up to this size are read at once; others piece by piece.
const AT_ONCE: u64 = 256 << 10;
/// Those pieces.
const PIECE: usize = 128 << 10;
/// How often a path is looked up again while somebody renames what it leads through.
const AGAIN: usize = 8;

/// A folder whose files are served.
#[derive(Debug)]
pub struct Files {
    folder: OwnedFd,
}

impl Files {
    /// Opens the folder; what its name means later does not matter.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn new(folder: &Path) -> std::io::Result<Files> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
        Ok(Files { folder })
    }

    /// The answer to a request for a decoded path.
    ///
    /// # Errors
    /// There is no such file, or it is not one.
    pub fn serve(
        &self,
        method: &Method,
        path: &[u8],
        raw: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Failure> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Failure::Method);
        }
        let Some((file, name)) = self.find(path)? else {
            return Ok(moved(raw));
        };
        answer(file, kind(&name), method, headers).map_err(|error| Failure::of_file(&error))
    }

    /// The file that a decoded path means, and its name below the folder; `None` for a folder whose
    /// slash is not there.
    ///
    /// # Errors
    /// There is no such file, or it is not one.
    pub fn find(&self, path: &[u8]) -> Result<Option<(File, Vec<u8>)>, Failure> {
        let mut name = relative(path).ok_or(Failure::NotFound)?;
        match self.open(&name)? {
            (file, true) if path.ends_with(b"/") => {
                drop(file);
                let slash: &[u8] = if name.is_empty() { b"" } else { b"/" };
                name.extend_from_slice(slash);
                name.extend_from_slice(b"index.html");
                match self.open(&name)? {
                    (file, false) => Ok(Some((file, name))),
                    _ => Err(Failure::NotFound),
                }
            }
            (_, true) => Ok(None),
            (_, false) if path.ends_with(b"/") => Err(Failure::NotFound),
            (file, false) => Ok(Some((file, name))),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// All of a file of at most `most` bytes.
    ///
    /// # Errors
    /// There is no such file, or it is larger.
    pub fn read(&self, method: &Method, path: &[u8], most: u64) -> Result<Bytes, Failure> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Failure::Method);
        }
        let name = relative(path).ok_or(Failure::NotFound)?;
        let (file, folder) = self.open(&name)?;
        if folder || path.ends_with(b"/") {
            return Err(Failure::NotFound);
        }
        let mut bytes = Vec::new();
        let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| Failure::of_file(&error))?;
        match bytes.len() as u64 > most {
            true => Err(Failure::TooLarge(most)),
            false => Ok(bytes.into()),
        }
    }

    /// Opens what a name means, and whether that is a folder. What is neither file nor folder is
    /// not there.
    fn open(&self, name: &[u8]) -> Result<(File, bool), Failure> {
        // Not to wait for somebody at the other end of a pipe.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let name = if name.is_empty() { b"." } else { name };
        let open = || openat2(&self.folder, name, flags, Mode::empty(), resolve);
        // The kernel says `again` when something on the way was renamed while it looked.
        let again =
            |result: &rustix::io::Result<_>| matches!(result, Err(Errno::AGAIN | Errno::INTR));
        let mut opened = open();
        for _ in 0..AGAIN {
            if again(&opened) {
                opened = open();
            }
        }
        let opened = opened.map_err(|error| Failure::of_file(&error.into()))?;
        let file = File::from(opened);
        let found = file.metadata();
        let found = found.map_err(|error| Failure::of_file(&error))?.file_type();
        match found.is_file() || found.is_dir() {
            true => Ok((file, found.is_dir())),
            false => Err(Failure::NotFound),
        }
    }
}

/// The head of an answer with all of a file of this name, up to the date's value.
pub fn head(size: u64, modified: SystemTime, name: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\netag: {}\r\nlast-modified: {}\r\ncontent-type: {}\r\naccept-ranges: bytes\r\nserver: postern\r\ncontent-length: {size}\r\ndate: ",
        tag(size, modified),
        httpdate::fmt_http_date(modified),
        kind(name),
    );
    head.into_bytes()
}

/// A decoded path without its slashes at both ends; `None` if it has empty or hidden segments, or
/// leads upwards.
fn relative(path: &[u8]) -> Option<Vec<u8>> {
    let path = path.strip_prefix(b"/")?;
    if path.is_empty() {
        return Some(Vec::new());
    }
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let fine =
        |segment: &[u8]| !segment.is_empty() && !segment.starts_with(b".") && !segment.contains(&0);
    let all = path.split(|&b| b == b'/').all(fine);
    all.then(|| path.to_vec())
}

/// To the same with a slash behind it, so that relative links in the folder's page mean the right
/// thing.
fn moved(raw: &str) -> Response<Body> {
    let (path, query) = raw
        .split_once('?')
        .map_or((raw, None), |(path, query)| (path, Some(query)));
    // Two slashes in front would be another host.
    let path = path.trim_start_matches('/');
    let target = match query {
        Some(query) => format!("/{path}/?{query}"),
        None => format!("/{path}/"),
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(target) = HeaderValue::try_from(target) {
        response.headers_mut().insert(LOCATION, target);
    }
    response
}

fn answer(
    mut file: File,
    kind: &'static str,
    method: &Method,
    headers: &HeaderMap,
) -> std::io::Result<Response<Body>> {
    let metadata = file.metadata()?;
    let size = metadata.len();
    let modified = metadata.modified()?;
    let tag = tag(size, modified);
    // In the order of RFC 9110, section 13.2.2.
    let since = |name| {
        let date = headers.get(name)?.to_str().ok()?;
        Some(seconds(httpdate::parse_http_date(date).ok()?))
    };
    let other = match headers.contains_key(IF_MATCH) {
        true => !tags(headers, IF_MATCH).any(|found| found == "*" || found == tag),
        false => since(IF_UNMODIFIED_SINCE).is_some_and(|since| seconds(modified) > since),
    };
    let known = match headers.contains_key(IF_NONE_MATCH) {
        true => has_tag(headers, &tag),
        false => since(IF_MODIFIED_SINCE).is_some_and(|since| seconds(modified) <= since),
    };
    let mut response = Response::new(Body::empty());
    let out = response.headers_mut();
    if let Ok(value) = HeaderValue::try_from(&tag) {
        out.insert(ETAG, value);
    }
    let modified = httpdate::fmt_http_date(modified);
    if let Ok(value) = HeaderValue::try_from(&modified) {
        out.insert(LAST_MODIFIED, value);
    }
    if other {
        *response.status_mut() = StatusCode::PRECONDITION_FAILED;
        return Ok(response);
    }
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    out.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    out.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if method == Method::HEAD {
        out.insert(CONTENT_LENGTH, size.into());
        return Ok(response);
    }
    let part = match asked(headers, size, &tag, &modified) {
        Asked::Whole => 0..size,
        Asked::Part(part) => {
            out.insert(
                CONTENT_RANGE,
                range(format!("{}-{}/{size}", part.start, part.end - 1))?,
            );
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            file.seek(SeekFrom::Start(part.start))?;
            part
        }
        Asked::Beyond => {
            out.insert(CONTENT_RANGE, range(format!("*/{size}"))?);
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            return Ok(response);
        }
    };
    let mut left = part.end - part.start;
    let out = response.headers_mut();
    if left <= AT_ONCE {
        let mut bytes = Vec::with_capacity(left as usize);
        file.take(left).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != left {
            // Shorter than it was: neither the tag nor the range would be true.
            return Err(Errno::AGAIN.into());
        }
        *response.body_mut() = Body::whole(bytes);
    } else {
        out.insert(CONTENT_LENGTH, left.into());
        let (sender, body) = Body::stream();
        *response.body_mut() = body;
        tokio::task::spawn_blocking(move || {
            while left > 0 {
                let mut bytes = vec![0; PIECE.min(left as usize)];
                let piece = match file.read(&mut bytes) {
                    // Shorter than it was: what was promised does not come.
                    Ok(0) | Err(_) => Err(Cut::Program),
                    Ok(read) => {
                        bytes.truncate(read);
                        left -= read as u64;
                        Ok(Bytes::from(bytes))
                    }
                };
                let cut = piece.is_err();
                if sender.blocking_send(piece).is_err() || cut {
                    return;
                }
            }
        });
    }
    Ok(response)
}

fn range(text: String) -> std::io::Result<HeaderValue> {
    let value = HeaderValue::try_from(format!("bytes {text}"));
    value.map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

/// Whether a client has what this tag stands for: `If-None-Match`, which compares weakly (RFC 9110,
/// section 13.1.2).
pub fn has_tag(headers: &HeaderMap, tag: &str) -> bool {
    tags(headers, IF_NONE_MATCH)
        .any(|found| found == "*" || found.strip_prefix("W/").unwrap_or(found) == tag)
}

/// The tags of a condition.
fn tags(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lists = headers.get_all(name).into_iter();
    let lists = lists.filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).map(str::trim)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

fn tag(size: u64, modified: SystemTime) -> String {
    let time = modified
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos());
    format!("\"{size:x}-{time:x}\"")
}

/// What a file is, by its name.
fn kind(name: &[u8]) -> &'static str {
    let extension = name.rsplit(|&b| b == b'.').next().unwrap_or_default();
    match extension {
        b"html" | b"htm" => "text/html; charset=utf-8",
        b"css" => "text/css; charset=utf-8",
        b"js" | b"mjs" => "text/javascript; charset=utf-8",
        b"json" => "application/json",
        b"txt" | b"md" | b"c" | b"h" => "text/plain; charset=utf-8",
        b"xml" => "application/xml",
        b"svg" => "image/svg+xml",
        b"png" => "image/png",
        b"jpg" | b"jpeg" => "image/jpeg",
        b"gif" => "image/gif",
        b"webp" => "image/webp",
        b"ico" => "image/vnd.microsoft.icon",
        b"woff2" => "font/woff2",
        b"pdf" => "application/pdf",
        b"wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

/// Names the methods, for answers that refuse another.
pub fn allow(response: &mut Response<Body>) {
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags() {
        for (lists, expected) in [
            (&["\"a\""][..], true),
            (&["\"b\", W/\"a\""], true),
            (&["\"b\"", " \"a\" "], true),
            (&["*"], true),
            (&["\"b\", a"], false),
            (&[], false),
        ] {
            let lists = lists.iter().map(|list| HeaderValue::from_static(list));
            let headers = lists.map(|list| (IF_NONE_MATCH, list)).collect();
            assert_eq!(has_tag(&headers, "\"a\""), expected, "{headers:?}");
        }
    }

    #[test]
    fn paths() {
        for (path, expected) in [
            ("/", Some("")),
            ("/a", Some("a")),
            ("/a/b.html", Some("a/b.html")),
            ("/a/", Some("a")),
            ("/..", None),
            ("/a/../b", None),
            ("/a//b", None),
            ("/.git/config", None),
            ("/a/.env", None),
            ("/a\0b", None),
            ("a", None),
            ("//", None),
        ] {
            let found = relative(path.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{path:?}");
        }
    }
}
