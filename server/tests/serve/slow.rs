//! Clients that do a little all the time, so that no limit of idle time finds them, and those that
//! come in numbers.

use crate::site::{Serving, handler, request};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Between two bytes of a client: much less than the limits of idle time here.
const DRIP: Duration = Duration::from_millis(20);
/// Bytes after which a client that nobody stops has won.
const ENOUGH: usize = 20_000;

/// Sends the same byte again and again until the server has had enough of it; gives what the server
/// said.
fn drip(mut stream: TcpStream, byte: u8) -> String {
    stream.set_read_timeout(Some(DRIP)).unwrap();
    let mut said = Vec::new();
    for _ in 0..ENOUGH {
        // A server that has closed the connection may have said why.
        let _ = stream.write_all(&[byte]);
        match stream.read_to_end(&mut said) {
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
            _ => return String::from_utf8_lossy(&said).into_owned(),
        }
    }
    panic!("nobody stopped it; the server said {said:?}");
}

#[test]
fn a_head_that_drips_ends() {
    let serving = Serving::new("[limits]\nheader_ms = 400\n");
    let mut stream = serving.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: here\r\nX-A: ")
        .unwrap();
    let said = drip(stream, b'a');
    assert!(!said.contains("200 OK"), "{said}");
    assert_eq!(serving.get("/").status, Some(200));
}

#[test]
fn a_body_that_drips_is_408() {
    let runs = ["protected", "unprotected", "fastcgi", "cgi"];
    let handlers = runs.map(|run| handler(&format!("/{run}"), run, "instances = 1\n"));
    let serving = Serving::new(&format!(
        "[limits]\nbody_ms = 400\nbytes_per_second = 1000000\n{}",
        handlers.concat()
    ));
    for run in runs {
        let mut stream = serving.connect();
        let path = format!("/{run}/read");
        let head = request("POST", &path, "Content-Length: 1000000\r\n", b"");
        stream.write_all(&head).unwrap();
        let said = drip(stream, b'a');
        assert!(said.starts_with("HTTP/1.1 408 "), "{run}: {said}");
        // The only instance is free again.
        while serving.post(&path, b"a").text() != "97 0" {}
    }
}

#[test]
fn who_sips_is_left() {
    let serving = Serving::new(&format!(
        "[limits]\nsend_ms = 1000\nbytes_per_second = 10000000000\n{}",
        handler("/p", "protected", "instances = 1\ncall_ms = 100000\n")
    ));
    let whole = 300_000_000;
    let mut stream = serving.connect();
    stream
        .write_all(&request("GET", &format!("/p/big?{whole}"), "", b""))
        .unwrap();
    // Something in each second, but far from what it must be.
    let (mut got, mut sip) = (0, vec![0; 256 << 10]);
    while got < whole {
        match stream.read(&mut sip) {
            Ok(0) | Err(_) => break,
            Ok(read) => got += read,
        }
        std::thread::sleep(DRIP);
    }
    assert!(got < whole);
    assert_eq!(serving.get("/p/hello").status, Some(200));
}

#[test]
fn one_address_has_so_many_connections() {
    let serving = Serving::new("[limits]\nconnections_per_client = 3\n");
    let mut held = Vec::new();
    while held.len() < 3 {
        let mut stream = serving.connect();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
            .unwrap();
        let mut said = [0; 12];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 200");
        held.push(stream);
    }
    for _ in 0..5 {
        assert_eq!(serving.get("/").status, None);
    }
    drop(held.pop());
    // Its place is free when the server has noticed.
    loop {
        let answer = serving.get("/metrics");
        if answer.status == Some(200) {
            let text = answer.text();
            let refused = text.split("postern_serve_refused_total ").last().unwrap();
            let refused: u32 = refused.split('\n').next().unwrap().parse().unwrap();
            assert!(refused >= 5, "{refused}");
            break;
        }
    }
}
