//! What a program is told of a request: the variables of CGI/1.1 (RFC 3875, section 4.1), the same
//! for all ways to run it.
//!
//! Invariant: each entry is `NAME=value` and a NUL; no name is there twice, and no header of the
//! client makes a variable that is not `HTTP_…`. Headers whose names could be mistaken for others
//! (`Content_Length`) or do harm (`Proxy`) make none.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName,
    PROXY_AUTHORIZATION, TRANSFER_ENCODING,
};
use http::{Method, Uri, Version};
use std::net::SocketAddr;

/// Who talks to whom.
#[derive(Debug, Clone, Copy)]
pub struct Peers {
    /// The client.
    pub client: SocketAddr,
    /// The address at which the server got the connection.
    pub server: SocketAddr,
    /// Whether it is encrypted.
    pub tls: bool,
}

/// The variables of one request.
#[derive(Debug, Default)]
pub struct Variables(Vec<u8>);

impl Variables {
    /// As CGI has them. `script` is the part of the path that chose the handler, `rest` what
    /// follows it, decoded.
    pub fn of(
        method: &Method,
        uri: &Uri,
        version: Version,
        headers: &HeaderMap,
        (script, rest): (&str, &[u8]),
        peers: &Peers,
    ) -> Variables {
        let mut all = Variables(Vec::with_capacity(1024));
        all.set("GATEWAY_INTERFACE", b"CGI/1.1");
        all.set(
            "SERVER_SOFTWARE",
            concat!("postern/", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        all.set(
            "SERVER_PROTOCOL",
            match version {
                Version::HTTP_10 => b"HTTP/1.0",
                _ => b"HTTP/1.1",
            },
        );
        all.set("REQUEST_METHOD", method.as_str().as_bytes());
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        all.set("REQUEST_URI", target.as_bytes());
        all.set("QUERY_STRING", uri.query().unwrap_or_default().as_bytes());
        all.set("SCRIPT_NAME", script.as_bytes());
        all.set("PATH_INFO", rest);
        let host = headers
            .get(http::header::HOST)
            .map_or(&b""[..], |host| host.as_bytes());
        let name = match host.iter().rposition(|&b| b == b':' || b == b']') {
            Some(colon) if host[colon] == b':' => &host[..colon],
            _ => host,
        };
        match name {
            b"" => all.set_shown("SERVER_NAME", peers.server.ip()),
            _ => all.set("SERVER_NAME", name),
        }
        all.set_shown("SERVER_PORT", peers.server.port());
        all.set_shown("REMOTE_ADDR", peers.client.ip());
        all.set_shown("REMOTE_PORT", peers.client.port());
        if peers.tls {
            all.set("HTTPS", b"on");
        }
        if let Some(kind) = headers.get(CONTENT_TYPE) {
            all.set("CONTENT_TYPE", kind.as_bytes());
        }
        for name in headers.keys() {
            all.header(name, headers);
        }
        all
    }

    fn header(&mut self, name: &HeaderName, headers: &HeaderMap) {
        let hidden = [
            &AUTHORIZATION,
            &PROXY_AUTHORIZATION,
            &CONTENT_TYPE,
            &CONTENT_LENGTH,
            &CONNECTION,
            &TRANSFER_ENCODING,
        ];
        if hidden.contains(&name) || name == "proxy" || name.as_str().contains('_') {
            return;
        }
        self.0.extend_from_slice(b"HTTP_");
        let letters = name.as_str().bytes();
        self.0.extend(letters.map(|b| match b {
            b'-' => b'_',
            b => b.to_ascii_uppercase(),
        }));
        self.0.push(b'=');
        let separator: &[u8] = if name == "cookie" { b"; " } else { b", " };
        for (number, value) in headers.get_all(name).iter().enumerate() {
            if number > 0 {
                self.0.extend_from_slice(separator);
            }
            self.0.extend_from_slice(value.as_bytes());
        }
        self.0.push(0);
    }

    /// Adds one. What cannot be in a variable (a NUL) ends the value.
    pub fn set(&mut self, name: &str, value: &[u8]) {
        let end = value.iter().position(|&b| b == 0).unwrap_or(value.len());
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'=');
        self.0.extend_from_slice(&value[..end]);
        self.0.push(0);
    }

    /// Adds one that is shown as text.
    pub fn set_shown(&mut self, name: &str, value: impl std::fmt::Display) {
        use std::io::Write;
        // A vector takes everything.
        let _ = write!(self.0, "{name}={value}\0");
    }

    /// All of them, each with its NUL.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Names and values.
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.split(|&b| b == 0).filter_map(|entry| {
            let equals = entry.iter().position(|&b| b == b'=')?;
            Some((&entry[..equals], &entry[equals + 1..]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_cannot_pretend() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("proxy", "evil"),
            ("content_length", "9"),
            ("x-a", "1"),
            ("x-a", "2"),
            ("authorization", "secret"),
            ("host", "[::1]:80"),
        ] {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let peers = Peers {
            client: ([127, 0, 0, 1], 9).into(),
            server: ([127, 0, 0, 1], 80).into(),
            tls: false,
        };
        let uri: Uri = "/a/b?c=d".parse().unwrap();
        let all = Variables::of(
            &Method::GET,
            &uri,
            Version::HTTP_11,
            &headers,
            ("/a", b"/b\0c"),
            &peers,
        );
        let get = |name: &str| {
            all.pairs()
                .find(|(n, _)| *n == name.as_bytes())
                .map(|(_, v)| String::from_utf8_lossy(v).into_owned())
        };
        assert_eq!(get("HTTP_X_A").as_deref(), Some("1, 2"));
        assert_eq!(get("SERVER_NAME").as_deref(), Some("[::1]"));
        assert_eq!(get("PATH_INFO").as_deref(), Some("/b"));
        assert_eq!(get("QUERY_STRING").as_deref(), Some("c=d"));
        for absent in [
            "HTTP_PROXY",
            "HTTP_CONTENT_LENGTH",
            "CONTENT_LENGTH",
            "HTTP_AUTHORIZATION",
            "HTTPS",
        ] {
            assert_eq!(get(absent), None, "{absent}");
        }
    }
}
