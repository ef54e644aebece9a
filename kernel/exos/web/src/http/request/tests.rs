extern crate std;
use super::*;
use std::format;
use std::string::String;
use std::vec::Vec;

fn refused(text: &str) -> u16 {
    match read(text.as_bytes()) {
        Err(Refusal(status)) => status,
        Ok(Some(_)) => 200,
        Ok(None) => 0,
    }
}

#[test]
fn a_request_is_read_whole() {
    let text = "GET /a/b?c=d HTTP/1.1\r\nHost: here:80\r\nRange: bytes=5-9\r\nX: y\r\n\r\nrest";
    for length in 0..text.len() - 4 {
        assert_eq!(refused(&text[..length]), 0, "{length}");
    }
    let request = read(text.as_bytes()).expect("fine").expect("whole");
    assert_eq!((request.path, request.query), (&b"/a/b"[..], &b"c=d"[..]));
    assert_eq!(request.range, Some(Range::From(5, Some(9))));
    assert_eq!((request.length, request.closes), (text.len() - 4, false));
    let old = read(b"HEAD / HTTP/1.0\n\n").expect("fine").expect("whole");
    assert!(old.closes && old.method == Method::Head);
    let absolute = read(b"GET http://h:8/x HTTP/1.1\r\nhost:h\r\n\r\n");
    assert_eq!(absolute.expect("fine").expect("whole").path, b"/x");
}

#[test]
fn what_is_wrong_has_its_status() {
    let host = "Host: h\r\n";
    for (text, status) in [
        (String::from("nonsense\r\n\r\n"), 400),
        (String::from("GET / HTTP/1.1\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host}{host}\r\n"), 400),
        (format!("GET / HTTP/2.0\r\n{host}\r\n"), 505),
        (format!("GET / HTTP/1.x\r\n{host}\r\n"), 400),
        (format!("BREW / HTTP/1.1\r\n{host}\r\n"), 501),
        (format!("G@T / HTTP/1.1\r\n{host}\r\n"), 400),
        (format!("GET x HTTP/1.1\r\n{host}\r\n"), 400),
        (format!("GET  / HTTP/1.1\r\n{host}\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host}X : y\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host} folded\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host}Bad\rX: y\r\n\r\n"), 400),
        (
            format!("GET /{} HTTP/1.1\r\n{host}\r\n", "a".repeat(1024)),
            414,
        ),
        (format!("GET /{}", "a".repeat(1100)), 414),
        (
            format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(65)),
            431,
        ),
        (
            format!("GET / HTTP/1.1\r\n{host}X: {}", "y".repeat(8192)),
            431,
        ),
        (
            format!("PUT / HTTP/1.1\r\n{host}Content-Length: 5x\r\n\r\n"),
            400,
        ),
        (
            format!("PUT / HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n"),
            400,
        ),
        (
            format!("PUT / HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            400,
        ),
        (
            format!("PUT / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n"),
            501,
        ),
        (
            format!(
                "PUT / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
            ),
            400,
        ),
        (
            format!("PUT / HTTP/1.1\r\n{host}Content-Length: 999999999999999999999\r\n\r\n"),
            400,
        ),
        (format!("GET / HTTP/1.1\r\n{host}X: y\r\n\r\n"), 200),
    ] {
        assert_eq!(refused(&text), status, "{text:?}");
    }
}

#[test]
fn ranges_and_paths() {
    assert_eq!(Range::From(5, Some(9)).of(7), Some((5, 2)));
    assert_eq!(Range::From(7, None).of(7), None);
    assert_eq!(Range::Last(9).of(7), Some((0, 7)));
    assert_eq!(Range::Last(0).of(7), None);
    assert_eq!(range(b"bytes=9-5"), None);
    assert_eq!(range(b"bytes=1-2,4-5"), None);
    let mut room = [0; TARGET];
    assert_eq!(decoded(b"/a%20b", &mut room), Some(&b"/a b"[..]));
    for wrong in ["/../x", "/a/%2e%2E/b", "/%00", "/%", "/%4", "/%zz"] {
        assert_eq!(decoded(wrong.as_bytes(), &mut room), None, "{wrong}");
    }
}

#[test]
fn control_characters_are_found_wherever_they_are() {
    for length in 0..40 {
        for at in 0..length {
            for byte in 0..=255 {
                let mut bytes = [b' '; 40];
                bytes[at] = byte;
                let is = byte < b' ' && byte != b'\t' || byte == 0x7f;
                assert_eq!(
                    control(&bytes[..length]),
                    is.then_some(at),
                    "{byte} at {at}"
                );
                bytes[length - 1] = 0;
                let first = if is { at } else { length - 1 };
                if at < length - 1 {
                    assert_eq!(control(&bytes[..length]), Some(first), "{byte} at {at}");
                }
            }
        }
    }
}

/// Whatever comes: no panic, and more bytes never turn a refusal into something else.
#[test]
fn bytes_at_random_are_read() {
    let good = b"PUT /x?y HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nRange: bytes=1-\r\n\r\nabc";
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..30_000 {
        let mut bytes: Vec<u8> = good.to_vec();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => bytes.insert(at, b"\r\n: /%\0-9"[random.usize(..9)]),
                _ => drop(bytes.remove(at)),
            }
        }
        let whole = read(&bytes).map(|found| found.map(|request| request.length));
        for length in 0..bytes.len() {
            match read(&bytes[..length]) {
                Ok(None) => {}
                Err(refusal) => assert_eq!(whole, Err(refusal)),
                Ok(Some(request)) => assert_eq!(whole, Ok(Some(request.length))),
            }
        }
    }
}
