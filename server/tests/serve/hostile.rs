//! Clients that keep to the letter of the protocol, or nearly, and mean no good; and files that
//! change while they are sent.

use crate::site::{Answer, LONG, Serving, folder, handler, parse, read, request};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// More than fits between a server and a client that takes nothing.
const LARGE: usize = 30_000_000;

/// A folder with a large file.
fn with_large() -> (tempfile::TempDir, Vec<u8>) {
    let (folder, large) = (folder(), (0..LARGE).map(|n| (n / 5) as u8).collect());
    std::fs::write(folder.path().join("public/large"), &large).unwrap();
    (folder, large)
}

static SERVING: LazyLock<Serving> = LazyLock::new(|| {
    let (folder, _) = with_large();
    let public = folder.path().join("public");
    for name in ["a#b", "a<b", "a"] {
        std::fs::write(public.join(name), name).unwrap();
    }
    let runs = ["protected", "fastcgi", "cgi"];
    let handlers = runs.map(|run| handler(&format!("/{run}"), run, "instances = 1\n"));
    Serving::of(folder, &handlers.concat())
});

/// The head of an answer.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{head:?}");
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Asks for a file on a connection that goes on, and gives it back behind the head.
fn begin(serving: &Serving, path: &str) -> TcpStream {
    let mut stream = serving.connect();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let head = head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    stream
}

/// The number behind a name of the metrics.
fn metric(serving: &Serving, name: &str) -> u64 {
    let text = serving.get("/metrics").text();
    let rest = text.split(&format!("\n{name} ")).nth(1).expect(name);
    rest.split('\n').next().unwrap().parse().unwrap()
}

#[test]
fn lines_may_end_without_a_carriage_return() {
    // And in any pieces: the empty line is found wherever it is cut.
    for text in [
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\nHost: a\r\n\n",
    ] {
        let mut stream = SERVING.connect();
        let began = Instant::now();
        for piece in text.as_bytes().chunks(1) {
            stream.write_all(piece).unwrap();
        }
        assert!(head(&mut stream).starts_with("HTTP/1.1 200"), "{text:?}");
        // Not when the time for a head was over.
        assert!(began.elapsed() < Duration::from_secs(9), "{text:?}");
    }
}

#[test]
fn a_path_means_one_file_whichever_way_it_comes() {
    for (path, expected) in [
        ("/a", Some("a")),
        // A fragment is no part of what is asked for.
        ("/a#b", Some("a")),
        ("/a<b", None),
        ("/a%23b", Some("a#b")),
        ("/a%3Cb", Some("a<b")),
    ] {
        let mut stream = SERVING.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        for answer in [read(stream), SERVING.get(path)] {
            let text = (answer.status == Some(200)).then(|| answer.text());
            assert_eq!(text.as_deref(), expected, "{path}");
        }
    }
}

#[test]
fn who_sends_no_more_has_the_answer() {
    let paths = [
        "/",
        "/large",
        "/protected/hello",
        "/fastcgi/hello",
        "/cgi/hello",
    ];
    for (path, version) in paths.iter().flat_map(|path| [(path, "1.0"), (path, "1.1")]) {
        let mut stream = SERVING.connect();
        write!(stream, "GET {path} HTTP/{version}\r\nHost: here\r\n\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // Slowly, too.
        if *path == "/large" {
            std::thread::sleep(Duration::from_millis(1500));
        }
        let answer = read(stream);
        assert!(
            answer.status == Some(200) && answer.whole && !answer.body.is_empty(),
            "{path} by {version}: {}",
            answer.head
        );
    }
    // Behind a body, too, however it comes: all at once with the end, or its end later.
    let whole = request("POST", "/", "Content-Length: 5\r\n", b"whole");
    let chunks = b"2\r\nwh\r\n3\r\nole\r\n0\r\n\r\n";
    let chunked = request("POST", "/", "Transfer-Encoding: chunked\r\n", chunks);
    for path in ["/protected/echo", "/fastcgi/echo", "/cgi/echo"] {
        for (post, pause) in [&whole, &chunked]
            .into_iter()
            .flat_map(|p| [(p, 0), (p, 50)])
        {
            let post =
                String::from_utf8_lossy(post).replacen("POST / ", &format!("POST {path} "), 1);
            let (first, last) = post.split_at(post.len() - 3);
            let mut stream = SERVING.connect();
            stream.write_all(first.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(pause));
            stream.write_all(last.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let answer = read(stream);
            let (status, text) = (answer.status, answer.text());
            assert_eq!((status, &*text), (Some(200), "whole"), "{path}: {post:?}");
        }
    }
    // Whose body is not whole has broken off, and is not waited for.
    let serving = Serving::new(&format!(
        "[limits]\nbody_ms = 100000\n{}",
        handler("/p", "protected", "instances = 1\ncall_ms = 100000\n")
    ));
    let mut stream = serving.connect();
    let post = request("POST", "/p/read", "Content-Length: 100000\r\n", b"short");
    stream.write_all(&post).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let began = Instant::now();
    assert_ne!(read(stream).status, Some(200));
    assert!(began.elapsed() < LONG / 2);
    assert_eq!(serving.get("/p/hello").status, Some(200));
}

#[test]
fn who_leaves_while_waiting_is_not_waited_for() {
    let more = "instances = 1\nwait_ms = 100000\ncall_ms = 100000\n";
    let mut serving = Serving::new(&handler("/p", "protected", more));
    let held = crate::site::hold(serving.address, "/p");
    for _ in 0..5 {
        let mut stream = serving.connect();
        stream
            .write_all(&request("GET", "/p/hello", "", b""))
            .unwrap();
    }
    let waiting = || metric(&serving, "postern_serve_waiting{handler=\"/p\"}");
    let left = || {
        metric(
            &serving,
            "postern_serve_left_total{handler=\"/p\",run=\"protected\"}",
        )
    };
    while left() < 5 || waiting() > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    crate::site::release(held);
    assert_eq!(serving.get("/p/hello").status, Some(200));
    // All that was counted up is counted down: who asks is the only one.
    while metric(&serving, "postern_serve_connections") > 1 {}
    serving.wait();
    let log = serving.access.get();
    assert_eq!(
        log.matches("\"GET /p/hello HTTP/1.1\" 499 0 ").count(),
        5,
        "{log}"
    );
}

#[test]
fn files_that_change_while_they_are_sent() {
    let (folder, large) = with_large();
    let serving = Serving::of(folder, "");
    let path = serving.path().join("public/large");
    let open = || OpenOptions::new().write(true).open(&path).unwrap();
    // It grows: what was promised is sent, and the next answer follows.
    let mut stream = begin(&serving, "/large");
    open().set_len(2 * LARGE as u64).unwrap();
    let mut bytes = vec![0; LARGE];
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes == large);
    stream.write_all(&request("GET", "/", "", b"")).unwrap();
    assert_eq!(read(&mut stream).text(), "<h1>home</h1>\n");
    // Another one takes its name: the old one is sent.
    open().set_len(LARGE as u64).unwrap();
    let mut stream = begin(&serving, "/large");
    let new = serving.path().join("new");
    std::fs::write(&new, vec![b'n'; LARGE]).unwrap();
    std::fs::rename(&new, &path).unwrap();
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes == large);
    // It shrinks, sent by the kernel or by hyper: less comes than was promised, then the end.
    for range in ["", "Range: bytes=0-\r\n"] {
        open().set_len(LARGE as u64).unwrap();
        let mut stream = serving.connect();
        write!(stream, "GET /large HTTP/1.1\r\nHost: here\r\n{range}\r\n").unwrap();
        let head = head(&mut stream);
        assert!(
            head.to_lowercase().contains("content-length: 30000000"),
            "{head}"
        );
        open().set_len(0).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < LARGE, "{range}");
    }
    assert_eq!(serving.get("/large").body.len(), 0);
}

#[test]
fn who_leaves_or_sips_in_the_middle_of_a_file_is_counted_so() {
    let (folder, _) = with_large();
    let limits = "[limits]\nsend_ms = 1000\nbytes_per_second = 10000000000\n";
    let mut serving = Serving::of(folder, limits);
    drop(begin(&serving, "/large"));
    let mut stream = begin(&serving, "/large");
    let began = Instant::now();
    let mut got = 0;
    while let Ok(read @ 1..) = stream.read(&mut [0; 4096]) {
        got += read;
        std::thread::sleep(Duration::from_millis(20));
        assert!(began.elapsed() < LONG && got < LARGE);
        if metric(
            &serving,
            "postern_serve_left_total{handler=\"\",run=\"static\"}",
        ) == 2
        {
            break;
        }
    }
    while metric(&serving, "postern_serve_connections") > 2 {}
    drop(stream);
    serving.wait();
    let log = serving.access.get();
    let sent = log
        .lines()
        .filter_map(|line| line.split("\"GET /large HTTP/1.1\" 200 ").nth(1));
    let sent = sent.map(|rest| rest.split(' ').next().unwrap().parse::<usize>().unwrap());
    let sent: Vec<usize> = sent.collect();
    // What went is what the log says.
    assert!(
        sent.len() == 2 && sent.iter().all(|sent| (1..LARGE).contains(sent)),
        "{log}"
    );
}

#[test]
fn conditions_in_the_order_of_the_standard() {
    let first = SERVING.get("/");
    let value = |name: &str| {
        let rest = first.head.split(&format!("{name}: ")).nth(1).unwrap();
        rest.split("\r\n").next().unwrap().to_owned()
    };
    let (tag, date) = (value("etag"), value("last-modified"));
    let (old, new) = (
        "Thu, 01 Jan 2004 00:00:00 GMT",
        "Fri, 01 Jan 2100 00:00:00 GMT",
    );
    for (headers, status) in [
        (format!("If-Match: {tag}"), 200),
        ("If-Match: \"x\"".to_owned(), 412),
        (format!("If-Match: \"x\", {tag}"), 200),
        (format!("If-Match: W/{tag}"), 412),
        ("If-Match: *".to_owned(), 200),
        (format!("If-Unmodified-Since: {date}"), 200),
        (format!("If-Unmodified-Since: {old}"), 412),
        (format!("If-Unmodified-Since: {new}"), 200),
        ("If-Unmodified-Since: yesterday".to_owned(), 200),
        (
            format!("If-Match: {tag}\r\nIf-Unmodified-Since: {old}"),
            200,
        ),
        (format!("If-Match: {tag}\r\nIf-None-Match: {tag}"), 304),
        (format!("If-Match: \"x\"\r\nIf-None-Match: {tag}"), 412),
        (
            format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {date}"),
            200,
        ),
        (format!("If-None-Match: {tag}\r\nRange: bytes=0-1"), 304),
        ("If-Match: \"x\"\r\nRange: bytes=0-1".to_owned(), 412),
        (format!("If-Range: {tag}\r\nRange: bytes=0-1"), 206),
        (format!("If-Range: {date}\r\nRange: bytes=0-1"), 206),
        (format!("If-Range: {old}\r\nRange: bytes=0-1"), 200),
        ("Range: bytes=0-3,2-5,0-0".to_owned(), 200),
        (format!("Range: bytes={}0-0", "0-0,".repeat(1000)), 200),
        ("Range: bytes=5-99999999999999999999999".to_owned(), 206),
        ("Range: bytes=99999999999999999999999-".to_owned(), 416),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = SERVING.send(request(method, "/", &format!("{headers}\r\n"), b""));
            // Parts are for GET.
            let expected = match (method, status) {
                ("HEAD", 206 | 416) => 200,
                _ => status,
            };
            assert_eq!(answer.status, Some(expected), "{method} {headers}");
            let bare = method == "HEAD" || [304, 412, 416].contains(&expected);
            assert_eq!(answer.body.is_empty(), bare, "{method} {headers}");
        }
    }
}

#[test]
fn lengths_that_contradict_each_other_end_the_connection() {
    let follows = "GET /protected/hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding:\x0bchunked",
        "Transfer-Encoding : chunked",
        "Content-Length: 5, 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 0x5",
        "Content-Length: +5",
        "Content-Length: 5 5",
    ] {
        for path in ["/protected/echo", "/index.html"] {
            let mut stream = SERVING.connect();
            let body = "0\r\n\r\n";
            write!(
                stream,
                "POST {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n{body}{follows}"
            )
            .unwrap();
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            // What is behind it is at most one request, and never a body.
            assert!(text.matches("<p>Hello").count() <= 1, "{headers}: {text}");
            assert!(!text.contains("GET /protected"), "{headers}: {text}");
            let first = parse(&bytes);
            assert!(
                matches!(first.status, Some(200 | 400..=501)),
                "{headers}: {text}"
            );
        }
    }
    assert_eq!(SERVING.get("/").status, Some(200));
}

#[test]
fn many_headers_and_requests_in_one_piece() {
    let many = |count: usize| -> Answer {
        let headers: String = (0..count).map(|n| format!("X-{n}: a\r\n")).collect();
        SERVING.send(request("GET", "/", &headers, b""))
    };
    for (count, status) in [
        (10, 200),
        (47, 200),
        (60, 200),
        (98, 200),
        (99, 431),
        (2000, 431),
    ] {
        assert_eq!(many(count).status, Some(status), "{count}");
    }
    // Far more requests at once than the server reads at a time, all answered, in order.
    let mut stream = SERVING.connect();
    let all = 2000;
    let pieces = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(all);
    let mut writer = stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        writer.write_all(pieces.as_bytes()).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    sending.join().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), all);
}

#[test]
fn pictures_that_are_broken_off_give_their_memory_back() {
    let serving = Serving::new("[plugins]\nguests = true\n");
    let side = 1000;
    let mut picture = format!("P6\n{side} {side}\n255\n").into_bytes();
    picture.resize(picture.len() + 3 * side * side, b'p');
    let length = format!("Content-Length: {}\r\n", picture.len());
    for all in [picture.len() / 2, picture.len()] {
        for read_some in [false, true] {
            let mut stream = serving.connect();
            let head = request("POST", "/transcode", &length, b"");
            stream.write_all(&head).unwrap();
            stream.write_all(&picture[..all]).unwrap();
            // In the body, in the work, or in the answer.
            if read_some && all == picture.len() {
                stream.read_exact(&mut [0; 1000]).unwrap();
            }
        }
    }
    for part in ["work", "lying"] {
        let name = format!("postern_pictures_bytes{{part=\"{part}\"}}");
        while metric(&serving, &name) > 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let answer = serving.send(request("POST", "/transcode", &length, &picture));
    assert!(answer.status == Some(200) && answer.body == picture);
}
