//! Clients that mean no good, and those that are slow: everybody else is served meanwhile.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use postern_exos_machine::site;

use crate::guest::{Guest, ask, read};

/// What comes back until the other side ends.
fn all(mut stream: std::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

const WRONG: [(&str, &str); 10] = [
    ("GET / HTTP/1.1\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
    ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"),
    ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "501"),
    ("GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", "400"),
    (
        "PUT /plugins/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1e9\r\n\r\n",
        "400",
    ),
    (
        "PUT /plugins/x HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n",
        "413",
    ),
    (
        "PUT /plugins/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "501",
    ),
    (
        "PUT /plugins/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "400",
    ),
];

#[test]
fn nobody_keeps_others_from_being_served() {
    let mut files = site::make().expect("the site");
    files.push(("www/large.bin".to_owned(), vec![7; 2_000_000]));
    let Some(guest) = Guest::serving("-x -c 64", files) else {
        return;
    };
    let well = || assert_eq!(guest.ask("GET /", b"").status, 200);
    for (request, status) in WRONG {
        let mut stream = guest.connect();
        stream.write_all(request.as_bytes()).expect("writing");
        let answer = all(stream);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {answer}"
        );
    }
    // Bytes at random, and heads that do not end.
    let mut random = fastrand::Rng::with_seed(9);
    for round in 0..40 {
        let mut stream = guest.connect();
        let length = [10, 3000, 20_000][round % 3];
        let letters = round % 2 == 0;
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                if letters {
                    random.u8(b'a'..=b'z')
                } else {
                    random.u8(..)
                }
            })
            .collect();
        // It may be refused before all was sent.
        let _ = stream.write_all(&bytes);
        match round % 4 {
            0 => drop(stream),
            _ => {
                let _ = stream.shutdown(Shutdown::Write);
                let _ = all(stream);
            }
        }
    }
    well();
    // A client that sends no more gets its answer.
    let mut half = guest.connect();
    half.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("writing");
    half.shutdown(Shutdown::Write).expect("an end");
    assert!(all(half).ends_with("</a>.\n"));
    // Requests behind each other, in pieces of a byte.
    let mut slow = guest.connect();
    for byte in b"GET /status HTTP/1.1\r\nHost: a\r\n\r\n" {
        slow.write_all(&[*byte]).expect("writing");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(read(&mut slow, false).status, 200);
    let mut lined = guest.connect();
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20) + "GET / HTTP/1.0\r\n\r\n";
    lined.write_all(request.as_bytes()).expect("writing");
    assert_eq!(all(lined).matches("HTTP/1.1 200 OK").count(), 21);
    // Those that take nothing of a long answer, and more of them than there are places.
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut stream = guest.connect();
        stream
            .write_all(b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n")
            .expect("writing");
        waiting.push(stream);
    }
    well();
    let mut idle: Vec<_> = (0..100).map(|_| guest.connect()).collect();
    thread::sleep(Duration::from_millis(1500));
    // All places are taken, so whoever has been silent for a second may lose its own; and on a busy
    // host that is anybody, who asks again then.
    let is_served = || {
        let mut stream = guest.connect();
        let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(request).is_ok() && all(stream).starts_with("HTTP/1.1 200 ")
    };
    assert!((0..5).any(|_| is_served()));
    idle.clear();
    // One of them goes on.
    let answer = read(&mut waiting[0], false);
    assert!(answer.status == 200 && answer.body == vec![7; 2_000_000]);
    drop(waiting);
    let mut last = guest.connect();
    for _ in 0..200 {
        assert_eq!(
            ask(&mut last, "GET /picture.ppm", b"").body,
            site::picture()
        );
    }
    guest.ends();
}
