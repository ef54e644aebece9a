//! Plain requests for static files, which are answered before hyper hears of a connection, and what
//! comes between and behind them.

use crate::site::{Serving, folder, handler, parse, request};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const GET: &str = "GET /index.html HTTP/1.1\r\nHost: here\r\n\r\n";

/// One answer of a connection that goes on.
fn answer(stream: &mut TcpStream) -> crate::site::Answer {
    let mut bytes = Vec::new();
    loop {
        let found = parse(&bytes);
        if found.status.is_some() && found.whole {
            return found;
        }
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{found:?}");
        bytes.push(byte[0]);
    }
}

#[test]
fn all_ways_to_a_file_give_the_same_answer() {
    let serving = Serving::new("");
    let plain = |head: &str| {
        let mut stream = serving.connect();
        stream.write_all(head.as_bytes()).unwrap();
        answer(&mut stream)
    };
    let names = |head: &str| {
        let mut lines: Vec<String> = head.lines().map(str::to_lowercase).collect();
        lines.retain(|line| !line.starts_with("date: ") && !line.starts_with("connection: "));
        lines.sort();
        lines
    };
    for path in ["/", "/index.html", "/sub/", "/index.html?a=b"] {
        let fast = plain(&format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n"));
        let slow = serving.get(path);
        assert_eq!(names(&fast.head), names(&slow.head), "{path}");
        assert_eq!(fast.body, slow.body, "{path}");
        assert!(fast.head.to_lowercase().contains("date: "), "{}", fast.head);
    }
    for (head, status) in [
        ("GET /sub HTTP/1.1\r\nHost: here\r\n\r\n", 301),
        ("GET /none HTTP/1.1\r\nHost: here\r\n\r\n", 404),
        ("GET /../secret.txt HTTP/1.1\r\nHost: here\r\n\r\n", 404),
        ("GET /.hidden HTTP/1.1\r\nHost: here\r\n\r\n", 404),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n", 200),
    ] {
        assert_eq!(plain(head).status, Some(status), "{head}");
    }
}

#[test]
fn one_connection_of_everything() {
    let serving = Serving::new(&handler("/p", "protected", ""));
    let mut stream = serving.connect();
    let part = "GET /index.html HTTP/1.1\r\nHost: here\r\nRange: bytes=0-3\r\n\r\n";
    let call = "GET /p/hello HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    // All in one piece, and then byte by byte.
    let all = [GET, GET, part, GET, call].concat();
    stream.write_all(all.as_bytes()).unwrap();
    let statuses: Vec<_> = (0..4).map(|_| answer(&mut stream).status).collect();
    assert_eq!(statuses, [200, 200, 206, 200].map(Some));
    assert_eq!(crate::site::read(stream).text(), "<p>Hello\n");
    let mut stream = serving.connect();
    for byte in all.as_bytes() {
        stream.write_all(&[*byte]).unwrap();
    }
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches("<h1>home</h1>\n").count(), 3, "{text}");
    assert!(text.ends_with("<p>Hello\n"), "{text}");
    // A body behind a request is no request.
    let smuggled = "GET /index.html HTTP/1.1\r\nHost: here\r\nContent-Length: 41\r\n\r\n";
    let mut stream = serving.connect();
    stream
        .write_all([smuggled, GET].concat().as_bytes())
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200").count(), 1, "{text}");
}

#[test]
fn what_changes_is_seen_at_once() {
    let serving = Serving::new("");
    let mut stream = serving.connect();
    let path = serving.path().join("public/index.html");
    for number in 0..200 {
        let text = format!("number {number:05}\n");
        if number % 3 == 0 {
            std::fs::write(serving.path().join("new"), &text).unwrap();
            std::fs::rename(serving.path().join("new"), &path).unwrap();
        } else {
            std::fs::write(&path, &text).unwrap();
        }
        // Long enough that it is kept, now and then.
        if number % 50 == 0 {
            std::thread::sleep(Duration::from_millis(150));
        }
        for _ in 0..3 {
            stream.write_all(GET.as_bytes()).unwrap();
            assert_eq!(answer(&mut stream).text(), text);
        }
    }
}

#[test]
fn large_files_come_whole_and_slow_clients_are_left() {
    let folder = folder();
    let large: Vec<u8> = (0..30_000_000u32).map(|n| (n / 7) as u8).collect();
    std::fs::write(folder.path().join("public/large"), &large).unwrap();
    let serving = Serving::of(folder, "[limits]\nsend_ms = 300\n");
    let mut stream = serving.connect();
    stream
        .write_all(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
        .unwrap();
    let mut bytes = vec![0; large.len()];
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes == large);
    // Who takes nothing is left; the line of the log says that the answer did not come to its end.
    stream
        .write_all(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
        .unwrap();
    let metrics = || serving.get("/metrics").text();
    let left = "postern_serve_left_total{handler=\"\",run=\"static\"} 1\n";
    while !metrics().contains(left) {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(stream);
    assert_eq!(serving.get("/").status, Some(200));
}

#[test]
fn limits_hold_for_plain_requests() {
    let serving = Serving::new(&format!(
        "[limits]\nheader_ms = 300\nrequests_per_client = 1\n{}",
        handler("/p", "protected", "")
    ));
    let held = crate::site::hold(serving.address, "/p");
    let mut stream = serving.connect();
    stream.write_all(GET.as_bytes()).unwrap();
    assert_eq!(answer(&mut stream).status, Some(429));
    crate::site::release(held);
    // A connection on which nothing comes is closed, also between two requests.
    let mut stream = serving.connect();
    let mut rest = Vec::new();
    while rest.is_empty() {
        stream.write_all(GET.as_bytes()).unwrap();
        if answer(&mut stream).status == Some(200) {
            break;
        }
        stream = serving.connect();
    }
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
    let long = format!("X-A: {}\r\n", "a".repeat(20_000));
    assert_eq!(
        serving.send(request("GET", "/", &long, b"")).status,
        Some(431)
    );
}
