//! Too large, too many, too long.

use crate::site::{Serving, handler, hold, read, release, request};
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn a_body_that_is_too_large_is_413() {
    let handlers = ["protected", "unprotected", "fastcgi", "cgi"]
        .map(|run| handler(&format!("/{run}"), run, ""));
    let serving = Serving::new(&format!(
        "[limits]\nbody_bytes = 100000\n{}",
        handlers.concat()
    ));
    for run in ["protected", "unprotected", "fastcgi", "cgi"] {
        let answer = serving.post(&format!("/{run}/read"), &[0; 100_001]);
        assert_eq!(answer.status, Some(413), "{run}: {answer:?}");
        // One that does not say how large it is.
        let mut body = Vec::new();
        for _ in 0..11 {
            body.extend_from_slice(b"2710\r\n");
            body.extend_from_slice(&[b'x'; 10_000]);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\n\r\n");
        let answer = serving.send(request(
            "POST",
            &format!("/{run}/read"),
            "Transfer-Encoding: chunked\r\n",
            &body,
        ));
        assert_eq!(answer.status, Some(413), "{run}: {answer:?}");
        assert_eq!(
            serving.post(&format!("/{run}/read"), &[1; 100]).text(),
            "100 0",
            "{run}"
        );
    }
}

#[test]
fn too_many_requests_of_one_client_are_429() {
    let serving = Serving::new(&format!(
        "[limits]\nrequests_per_client = 2\n{}",
        handler("/p", "protected", "")
    ));
    let held = [hold(serving.address, "/p"), hold(serving.address, "/p")];
    let answer = serving.get("/");
    assert_eq!(answer.status, Some(429));
    assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
    held.into_iter().for_each(release);
    while serving.get("/").status != Some(200) {}
}

#[test]
fn busy_programs_are_503() {
    let more = "instances = 1\nwaiting = 0\n";
    let handlers = ["protected", "unprotected", "fastcgi", "cgi"]
        .map(|run| handler(&format!("/{run}"), run, more));
    let patient = handler(
        "/patient",
        "protected",
        "instances = 1\nwaiting = 1\nwait_ms = 50\n",
    );
    let serving = Serving::new(&format!("{}{patient}", handlers.concat()));
    for path in ["/protected", "/unprotected", "/fastcgi", "/cgi", "/patient"] {
        let held = hold(serving.address, path);
        let answer = serving.get(&format!("{path}/hello"));
        assert_eq!(answer.status, Some(503), "{path}");
        assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
        // Others go on.
        assert_eq!(serving.get("/").status, Some(200));
        release(held);
        while serving.get(&format!("{path}/hello")).status != Some(200) {}
    }
}

#[test]
fn a_body_that_does_not_come_is_408() {
    let serving = Serving::new(&format!(
        "[limits]\nbody_ms = 100\n{}",
        handler("/p", "protected", "")
    ));
    let answer = serving.send(request(
        "POST",
        "/p/read",
        "Content-Length: 10\r\n",
        b"12345",
    ));
    assert_eq!(answer.status, Some(408), "{answer:?}");
    let answer = serving.send(request(
        "POST",
        "/p/read",
        "Content-Length: 100000\r\n",
        b"12345",
    ));
    assert_eq!(answer.status, Some(408), "{answer:?}");
}

#[test]
fn a_head_that_does_not_come_is_not_waited_for() {
    let serving = Serving::new("[limits]\nheader_ms = 100\nconnections = 2\n");
    let mut slow: Vec<TcpStream> = (0..6).map(|_| serving.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HT").unwrap();
    }
    // All places are taken, and become free.
    assert_eq!(serving.get("/").status, Some(200));
    for stream in slow {
        assert_ne!(read(stream).status, Some(200));
    }
}

#[test]
fn who_takes_nothing_is_left() {
    let serving = Serving::new(&format!(
        "[limits]\nsend_ms = 100\n{}",
        handler("/p", "protected", "instances = 1\n")
    ));
    let mut stream = serving.connect();
    stream
        .write_all(&request("GET", "/p/big?300000000", "", b""))
        .unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    // The only instance is free again, though nobody read the answer.
    while serving.get("/p/hello").status != Some(200) {}
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    assert!(bytes.len() < 300_000_000);
}

#[test]
fn who_leaves_early_costs_nobody() {
    let more = "instances = 1\n";
    let runs = ["protected", "unprotected", "fastcgi", "cgi"];
    let handlers = runs.map(|run| handler(&format!("/{run}"), run, more));
    let mut serving = Serving::new(&handlers.concat());
    for run in runs {
        for _ in 0..3 {
            let mut stream = serving.connect();
            stream
                .write_all(&request("GET", &format!("/{run}/big?100000000"), "", b""))
                .unwrap();
            stream.read_exact(&mut [0; 1000]).unwrap();
            drop(stream);
            // In the middle of a body, too.
            let mut stream = serving.connect();
            stream
                .write_all(&request(
                    "POST",
                    &format!("/{run}/echo"),
                    "Content-Length: 500000\r\n",
                    b"12345",
                ))
                .unwrap();
            drop(stream);
        }
        assert_eq!(
            serving.get(&format!("/{run}/hello")).status,
            Some(200),
            "{run}"
        );
        // What is counted of them, once all are known to have left.
        let count = |text: &str, name: &str, digit: &str| -> u64 {
            let labels = format!("{{handler=\"/{run}\",run=\"{run}\"{digit}}} ");
            let name = format!("postern_serve_{name}_total{labels}");
            let rest = text.split(&name).nth(1).expect(&name);
            rest.split('\n').next().unwrap().parse().unwrap()
        };
        loop {
            let text = serving.get("/metrics").text();
            let digits = ["2xx", "3xx", "4xx", "5xx"].map(|d| format!(",status=\"{d}\""));
            let answers = digits.each_ref().map(|d| count(&text, "answers", d));
            if answers.iter().sum::<u64>() == 7 {
                assert_eq!(answers[3], 0, "{text}");
                let left = count(&text, "left", "");
                // Whose body was broken off may have been told so.
                assert!((3..=6).contains(&left), "{left}: {text}");
                for name in ["cut", "faults"] {
                    assert_eq!(count(&text, name, ""), 0, "{text}");
                }
                break;
            }
        }
    }
    serving.wait();
    // The log has what the programs themselves say, and nothing else.
    for line in serving.errors.get().lines() {
        assert!(line.ends_with("the body did not come"), "{line}");
    }
    let access = serving.access.get();
    for run in runs {
        let big = format!("\"GET /{run}/big?100000000 HTTP/1.1\" 200 ");
        assert_eq!(access.matches(&big).count(), 3, "{access}");
        let echo = format!("\"POST /{run}/echo HTTP/1.1\" ");
        assert_eq!(access.matches(&echo).count(), 3, "{access}");
    }
}
