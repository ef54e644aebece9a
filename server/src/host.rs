//! Which host a request is for: the header `Host`, or the target where that names one (RFC 9112,
//! section 3.2).
//!
//! Invariant: whoever looks at the header behind this finds one value, which can be a host; a
//! target's own has taken its place.

use crate::failure::Failure;
use http::header::{HOST, HeaderValue};
use http::uri::Scheme;
use http::{Request, Version};
use std::net::Ipv6Addr;

/// Looks at a request's host, and puts it where programs look for it.
///
/// # Errors
/// It is not said, said twice, or cannot be one.
pub fn settle<B>(request: &mut Request<B>) -> Result<(), Failure> {
    let mut said = request.headers().get_all(HOST).iter();
    let fine = match (said.next(), said.next()) {
        (Some(host), None) => is_host(host.as_bytes()),
        (None, _) => request.version() == Version::HTTP_10,
        (Some(_), Some(_)) => false,
    };
    if !fine {
        return Err(Failure::Host);
    }
    let Some(authority) = request.uri().authority() else {
        return Ok(());
    };
    let known = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&request.uri().scheme());
    // Names of users have no place here, and are no part of a host.
    let host = HeaderValue::from_str(authority.as_str());
    match host.ok().filter(|host| known && is_host(host.as_bytes())) {
        Some(host) => drop(request.headers_mut().insert(HOST, host)),
        None => return Err(Failure::Host),
    }
    Ok(())
}

/// Whether bytes are a name or an address, with a port or without.
pub fn is_host(text: &[u8]) -> bool {
    let (host, port) = match text.iter().rposition(|&b| b == b':' || b == b']') {
        Some(colon) if text[colon] == b':' => (&text[..colon], &text[colon + 1..]),
        _ => (text, &b""[..]),
    };
    let number = std::str::from_utf8(port).is_ok_and(|port| port.parse::<u16>().is_ok());
    let port = port.is_empty() || port.iter().all(u8::is_ascii_digit) && number;
    let address = host
        .strip_prefix(b"[")
        .and_then(|rest| rest.strip_suffix(b"]"));
    let host = match address {
        Some(address) => {
            std::str::from_utf8(address).is_ok_and(|address| address.parse::<Ipv6Addr>().is_ok())
        }
        None => !host.is_empty() && host.iter().all(|&b| is_letter(b)),
    };
    host && port
}

/// Of a name (RFC 3986, `reg-name`); escapes in it are nobody's.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for (text, expected) in [
            ("a", true),
            ("a.example:8080", true),
            ("a_b-c", true),
            ("127.0.0.1:80", true),
            ("[::1]", true),
            ("[::1]:80", true),
            ("a:", true),
            ("", false),
            (":80", false),
            ("a b", false),
            ("a/b", false),
            ("a@b", false),
            ("a:b", false),
            ("a:99999", false),
            ("a:+1", false),
            ("[::1", false),
            ("::1", false),
            ("[x]", false),
            ("a\\b", false),
            ("a%00", false),
            ("<script>", false),
        ] {
            assert_eq!(is_host(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_target_with_a_host_has_the_say() {
        let asked = |target: &str, host: &str| {
            let request = Request::get(target).header(HOST, host);
            let mut request = request.body(()).unwrap();
            let settled = settle(&mut request);
            settled.map(|()| request.headers()[HOST].to_str().unwrap().to_owned())
        };
        assert_eq!(asked("http://a:81/x", "b").unwrap(), "a:81");
        assert_eq!(asked("/x", "b").unwrap(), "b");
        for (target, host) in [
            ("http://me@a/", "b"),
            ("ftp://a/", "b"),
            ("http://a/", "b c"),
        ] {
            assert!(asked(target, host).is_err(), "{target}");
        }
    }
}
