//! `ping` and `httpget`: what they get from this machine, from the machine's own server, and from a
//! server that lies.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::{bytes, guest_with};

/// What a server says to a path; it ends the connection behind that.
fn said(path: &str) -> Vec<u8> {
    let text = |head: &str, body: &str| format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes();
    let chunked = "200 OK\r\nTransfer-Encoding: chunked";
    match path {
        "/length" => text("200 OK\r\nContent-Length: 7", "seven!\nand more"),
        "/ends" => text("200 OK", "until the end\n"),
        "/chunked" => text(
            chunked,
            "6\r\nfirst \r\n7;a=b\r\nsecond\n\r\n0\r\nMore: x\r\n\r\n",
        ),
        "/moved" => text("302 Found\r\nLocation: /length\r\nContent-Length: 0", ""),
        "/round" => text("301 Moved\r\nLocation: /round", ""),
        "/away" => text("301 Moved\r\nLocation: ftp://elsewhere/x", ""),
        "/early" => text(
            "103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6",
            "early\n",
        ),
        "/gone" => text("404 Not Found\r\nContent-Length: 0", ""),
        "/cut" => text("200 OK\r\nContent-Length: 1000", "only this\n"),
        "/cutpiece" => text(chunked, "ff\r\nonly this\n"),
        "/nopiece" => text(chunked, "-5\r\nonly this\n"),
        "/hugepiece" => text(chunked, "fffffffffffffffffff\r\nx"),
        "/two" => text("200 OK\r\nContent-Length: 4\r\nContent-Length: 5", "five\n"),
        "/minus" => text("200 OK\r\nContent-Length: -1", "x"),
        "/nohead" => b"HTTP/9\r\n\r\n".to_vec(),
        "/zeros" => vec![0; 5000],
        "/endless" => {
            let mut all = b"HTTP/1.1 200 OK\r\n".to_vec();
            all.extend(b"A: b\r\n".repeat(20_000));
            all
        }
        "/large" => {
            let body = bytes(1 << 20, 9);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            [head.as_bytes(), &body].concat()
        }
        _ => Vec::new(),
    }
}

/// Serves one connection.
fn serve(mut stream: TcpStream) {
    let (mut asked, mut byte) = (Vec::new(), [0]);
    while !asked.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
        asked.push(byte[0]);
    }
    let asked = String::from_utf8_lossy(&asked).into_owned();
    let path = asked.split(' ').nth(1).unwrap_or_default();
    if path == "/silent" {
        thread::sleep(Duration::from_secs(60));
    }
    // Who has heard enough hangs up.
    let _ = stream.write_all(&said(path));
}

/// Paths, what the tool ends with, and the last line that it or the shell says of them.
const ASKED: [(&str, i32, &str); 19] = [
    ("/length", 0, "seven!"),
    ("/ends", 0, "until the end"),
    ("/chunked", 0, "first second"),
    ("/moved", 0, "seven!"),
    ("/early", 0, "early"),
    ("/round", 1, "too many redirects"),
    ("/away", 1, "the redirect leads nowhere"),
    ("/gone", 3, "the server says 404"),
    ("/cut", 1, "cut short"),
    ("/cutpiece", 1, "cut short"),
    ("/nopiece", 1, "make no sense"),
    ("/hugepiece", 1, "make no sense"),
    ("/two", 1, "makes no sense"),
    ("/minus", 1, "makes no sense"),
    ("/nohead", 1, "makes no sense"),
    ("/zeros", 1, "makes no sense"),
    ("/endless", 1, "makes no sense"),
    ("/nothing", 1, "cut short"),
    ("/silent", 1, "httpget: 10.0.2.2: "),
];

#[test]
fn the_tools_ask() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || serve(stream));
        }
    });
    let mut script = String::from("netstat\nwww &\n");
    for (path, _, _) in ASKED {
        script += &format!("httpget -t 5 http://10.0.2.2:{port}{path}; echo got {path} $?\n");
    }
    script += &format!("httpget http://10.0.2.2:{port}/large | wc -c\n");
    script += "until httpget http://127.0.0.1/page; do sleep 1; done; echo own $?\n\
               httpget http://10.0.2.15/page; echo address $?\n\
               httpget http://127.0.0.1:81/; echo closed $?\n\
               httpget file:/x; echo none $?\nhttpget; echo usage $?\nhttpget --help | head -n 1\n\
               ping -c 3 -i 0.1 127.0.0.1; echo loop $?\n\
               ping -c 3 -i 0.1 -s 1472 10.0.2.15; echo self $?\n\
               ping -c 2 -i 0.1 10.0.2.2; echo gateway $?\n\
               ping -q -c 1 -W 1 10.0.2.77; echo nobody $?\n\
               ping --help | head -n 1; ping -c 0 x; echo count $?\nexit\n";
    let Some(guest) = guest_with(&script, 1, &[("www/page", "a page\n")]) else {
        return;
    };
    for (path, status, line) in ASKED {
        guest.hears(line);
        guest.hears(&format!("got {path} {status}"));
    }
    for line in [
        "1048576",
        "a page",
        "own 0",
        "a page",
        "address 0",
        "refused",
        "closed 1",
        "no URL",
        "none 2",
        "usage 2",
        "usage: httpget",
        "bytes from 127.0.0.1: number 0",
        "3 sent, 3 received, 0% lost",
        "loop 0",
        "1480 bytes from 10.0.2.15",
        "self 0",
        "gateway 0",
        "1 sent, 0 received, 100% lost",
        "nobody 1",
        "usage: ping",
        "count 2",
    ] {
        guest.hears(line);
    }
    guest.ends();
}
