//! What is written about requests, and by programs; and that nobody waits for who reads it.

use crate::site::{Serving, Text, folder, handler, request};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;

/// A stream whose other end nobody reads.
struct Full(UnixStream, #[allow(dead_code, reason = "held")] UnixStream);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_pipe_stops_nobody() {
    let (writer, reader) = UnixStream::pair().unwrap();
    let full = Box::new(Full(writer, reader));
    let serving = Serving::logging(folder(), "", Text::default(), full);
    // A line of 15 KB each: the pipe's and all other room is used up long before the end.
    let agent = format!("User-Agent: {}\r\n", "a".repeat(15_000));
    for _ in 0..400 {
        let answer = serving.send(request("GET", "/", &agent, b""));
        assert_eq!(answer.text(), "<h1>home</h1>\n");
    }
    let metrics = serving.get("/metrics").text();
    let dropped = metrics.split("postern_serve_log_dropped_total{log=\"access\"} ");
    let dropped = dropped.last().unwrap().split('\n').next().unwrap();
    assert!(dropped.parse::<u64>().unwrap() > 100, "{dropped}");
}

#[test]
fn lines_are_those_that_other_programs_read() {
    let mut serving = Serving::new("[log]\nseconds = true\n");
    let headers = "Referer: http://a/\"b\r\nUser-Agent: me (x) \\ \"\r\n";
    serving.send(request("GET", "/index.html?a=%22", headers, b""));
    serving.wait();
    let log = serving.access.get();
    let expected =
        "] \"GET /index.html?a=%22 HTTP/1.1\" 200 14 \"http://a/\\x22b\" \"me (x) \\x5C \\x22\" 0.";
    assert!(log.contains(expected), "{log}");
    assert!(log.starts_with("127.0.0.1 - - ["), "{log}");
    assert!(log.contains(" +0000] "), "{log}");
}

#[test]
fn a_program_says_only_so_much() {
    let runs = ["protected", "unprotected", "fastcgi", "cgi"];
    let handlers = runs.map(|run| handler(&format!("/{run}"), run, "log_lines = 20\n"));
    let serving = Serving::new(&handlers.concat());
    for run in runs {
        let answer = serving.get(&format!("/{run}/chatter"));
        assert_eq!(answer.text(), "said", "{run}");
        let said = format!("postern: /{run}: chatter\n");
        serving.wait_for(|log| log.matches(&said).count() >= 20);
    }
    let log = serving.errors.get();
    for run in runs {
        // A second may have ended between two of the lines.
        let count = log.matches(&format!("postern: /{run}: chatter\n")).count();
        assert!(count <= 100, "{run}: {count}");
    }
    let metrics = serving.get("/metrics").text();
    let left_out = metrics.split("postern_serve_log_left_out_total ").last();
    let left_out = left_out.unwrap().split('\n').next().unwrap();
    assert!(left_out.parse::<u64>().unwrap() > 400, "{left_out}");
}

#[test]
fn what_a_compiler_says_keeps_its_lines() {
    let serving = Serving::new(&handler("/p", "protected", ""));
    let broken = "int cgi_main(void)\n{\n\treturn nonsense;\n}\n";
    std::fs::write(serving.path().join("program.c"), broken).unwrap();
    serving.wait_for(|log| log.contains("the former program goes on"));
    let log = serving.errors.get();
    assert!(!log.contains("\\n"), "{log}");
    let place = log
        .lines()
        .find(|line| line.contains("program.c:3:16: error"));
    assert!(place.is_some(), "{log}");
    assert!(
        log.lines().any(|line| line.trim_start().starts_with("3 |")),
        "{log}"
    );
}
