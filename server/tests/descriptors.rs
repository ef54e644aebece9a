//! A server that has no descriptors left. By itself, since the limit is the process's.
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "serve/site.rs"]
mod site;

use postern_server::Components;
use site::{Serving, connect, folder, parse};
use std::fs::File;
use std::io::{Read, Write};

/// What the server has here.
pub const COMPONENTS: Components = Components {
    processes: None,
    plugins: None,
    page: None,
};

#[test]
fn no_descriptors_left_is_503_and_not_404() {
    let serving = Serving::of(folder(), "");
    let mut stream = connect(serving.address);
    let mut ask = |path: &str| {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut bytes = vec![0; 4096];
        let got = stream.read(&mut bytes).unwrap();
        parse(&bytes[..got])
    };
    assert_eq!(ask("/nothing").status, Some(404));
    let limit = rustix::process::Rlimit {
        current: Some(256),
        maximum: Some(256),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let mut held = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        held.push(file);
    }
    let answer = ask("/index.html");
    assert_eq!(answer.status, Some(503), "{answer:?}");
    assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
    drop(held);
    assert_eq!(ask("/index.html").text(), "<h1>home</h1>\n");
    serving.wait_for(|log| log.contains("Too many open files"));
}
