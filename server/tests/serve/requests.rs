//! Requests that are none.

use crate::site::{Serving, handler, read, request};
use std::io::{Read, Write};
use std::sync::LazyLock;

static SERVING: LazyLock<Serving> =
    LazyLock::new(|| Serving::new(&handler("/p", "protected", "instances = 2\n")));

fn goes_on() {
    assert_eq!(SERVING.get("/p/hello").status, Some(200));
    assert_eq!(SERVING.get("/").status, Some(200));
}

#[test]
fn what_is_no_http_is_400_or_nothing() {
    for bytes in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: b\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /p/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = SERVING.connect();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = read(stream);
        let shown = String::from_utf8_lossy(bytes);
        assert!(
            matches!(answer.status, None | Some(400..=505)),
            "{shown:?}: {answer:?}"
        );
    }
    goes_on();
}

#[test]
fn floods_of_headers_are_431() {
    let many = (0..200)
        .map(|i| format!("X-{i}: a\r\n"))
        .collect::<String>();
    assert_eq!(
        SERVING.send(request("GET", "/", &many, b"")).status,
        Some(431)
    );
    let long = format!("X-A: {}\r\n", "a".repeat(20_000));
    assert_eq!(
        SERVING.send(request("GET", "/", &long, b"")).status,
        Some(431)
    );
    let target = format!("/{}", "a".repeat(70_000));
    assert!(matches!(SERVING.get(&target).status, Some(414 | 431)));
    goes_on();
}

#[test]
fn bodies_that_lie_about_their_length() {
    for path in ["/p/echo", "/p/read", "/"] {
        // Shorter than it says, and gone.
        let mut stream = SERVING.connect();
        stream
            .write_all(&request("POST", path, "Content-Length: 1000\r\n", b"short"))
            .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = read(stream);
        assert_ne!(answer.status, Some(200), "{path}: {answer:?}");
    }
    // Longer: what is too much is the next request, and none.
    let mut stream = SERVING.connect();
    stream
        .write_all(b"POST /p/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nabcd\r\n\r\n")
        .unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.contains("HTTP/1.1 400"), "{text}");
    // Chunks that are none.
    for chunk in [
        &b"zz\r\nabc\r\n"[..],
        b"ffffffffffffffffff\r\n",
        b"5\r\nabc",
        b"3\r\nabcd\r\n0\r\n\r\n",
    ] {
        let mut stream = SERVING.connect();
        stream
            .write_all(&request(
                "POST",
                "/p/read",
                "Transfer-Encoding: chunked\r\n",
                chunk,
            ))
            .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = read(stream);
        assert!(
            matches!(answer.status, None | Some(400)),
            "{chunk:?}: {answer:?}"
        );
    }
    goes_on();
}

#[test]
fn both_lengths_are_not_two_requests() {
    let bytes = b"POST /p/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /p/hello HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut stream = SERVING.connect();
    stream.write_all(bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let text = String::from_utf8_lossy(&all);
    // Whatever is made of the first, what follows is either a request of its own or nothing: never
    // its body.
    assert!(!text.contains("GET /p/hello"), "{text}");
    goes_on();
}

#[test]
fn requests_in_one_piece_are_answered_in_order() {
    let one = "GET /p/count HTTP/1.1\r\nHost: a\r\n\r\n";
    let bytes = format!(
        "{}GET /p/hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        one.repeat(20)
    );
    let mut stream = SERVING.connect();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let text = String::from_utf8_lossy(&all);
    assert_eq!(text.matches("HTTP/1.1 200").count(), 21, "{text}");
    assert!(text.ends_with("<p>Hello\n"), "{text}");
}

#[test]
fn a_host_that_cannot_be_one_is_400_and_a_target_has_the_say() {
    for host in [
        "", "a b", "a/b", "me@a", "a:port", "[::1", "<b>", "a:70000", "a, b",
    ] {
        let bytes = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(SERVING.send(bytes).status, Some(400), "{host}");
    }
    let ask = |target: &str, host: &str| {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        SERVING.send(head)
    };
    let told = ask("http://other.example:81/p/host", "here").text();
    assert!(told.contains("SERVER_NAME=other.example\n"), "{told}");
    assert!(told.contains("HTTP_HOST=other.example:81\n"), "{told}");
    assert!(!told.contains("here"), "{told}");
    assert!(
        ask("/p/host", "[::1]:8080")
            .text()
            .contains("SERVER_NAME=[::1]\n")
    );
    for target in ["ftp://a/", "http://me@a/", "http://:80/"] {
        assert_eq!(ask(target, "here").status, Some(400), "{target}");
    }
    goes_on();
}
