//! Programs behind FastCGI that do not keep to the protocol.

use crate::site::{Answer, Serving, folder, request};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

const MODES: [&str; 17] = [
    "good",
    "deaf",
    "silent",
    "version",
    "other",
    "short",
    "padding",
    "endless",
    "nothing",
    "chatter",
    "headless",
    "large",
    "endless-body",
    "leaves",
    "late",
    "closes",
    "falls",
];

static SERVING: LazyLock<Serving> = LazyLock::new(|| {
    let folder = folder();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/programs/misbehaves.c");
    let program = folder.path().join("misbehaves");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(program);
    assert!(gcc.arg(source).status().unwrap().success());
    let done = folder.path().join("done");
    let handler = |mode: &str| {
        format!(
            "[[handler]]\npath = \"/{mode}\"\nprogram = \"misbehaves\"\nrun = \"fastcgi\"\ninstances = 1\ncall_ms = 1000\nlog_lines = 5\nenv = {{ MODE = \"{mode}\", DONE = \"{}\" }}\n",
            done.display()
        )
    };
    Serving::of(folder, &MODES.map(handler).concat())
});

fn ask(mode: &str) -> Answer {
    let answer = SERVING.get(&format!("/{mode}"));
    assert!(!answer.text().contains("evil"), "{mode}: {answer:?}");
    answer
}

#[test]
fn what_is_no_answer_is_the_programs_failure() {
    for (mode, status, said) in [
        ("deaf", 500, "the process closed the connection"),
        ("silent", 504, "the process was ended"),
        ("version", 500, "no FastCGI record"),
        ("other", 500, "a record of request 2, which nobody made"),
        ("short", 500, "the process ended in the middle"),
        ("padding", 504, "the process was ended"),
        ("endless", 502, "head is longer than"),
        ("nothing", 504, "the process was ended"),
        ("headless", 502, "before its head does"),
    ] {
        for _ in 0..2 {
            let answer = ask(mode);
            assert_eq!(answer.status, Some(status), "{mode}: {answer:?}");
            let log = SERVING.errors.get();
            let id = answer.text();
            let id = id.split("id ").nth(1).map(str::trim).expect("an id");
            let line = log.lines().find(|line| line.contains(id)).unwrap();
            assert!(line.contains(said), "{mode}: {line}");
        }
        assert_eq!(ask("good").text(), "good", "{mode}");
    }
}

#[test]
fn an_answer_that_does_not_end_is_cut_off() {
    let answer = ask("endless-body");
    assert!(
        answer.status == Some(200) && !answer.whole,
        "{:?}",
        answer.head
    );
    let answer = ask("leaves");
    assert!(answer.status == Some(500) || !answer.whole, "{answer:?}");
    assert_eq!(ask("good").text(), "good");
}

#[test]
fn nobody_gets_what_came_behind_anothers_answer() {
    for mode in ["late", "closes"] {
        for _ in 0..20 {
            let answer = ask(mode);
            assert_eq!(
                (answer.status, &*answer.text()),
                (Some(200), "good"),
                "{mode}"
            );
        }
    }
}

/// A request that may do something twice is not made twice: a process that had it may have done it
/// before it fell. One that means the same twice has an answer.
#[test]
fn requests_are_made_twice_only_where_that_is_the_same() {
    let done = || {
        std::fs::read(SERVING.path().join("done"))
            .unwrap_or_default()
            .len()
    };
    for (method, status, times) in [("POST", 500, 1), ("PATCH", 500, 1), ("PUT", 200, 2)] {
        // The first request of a process is good, the second is not.
        let before = done();
        assert_eq!(
            SERVING.send(request("GET", "/falls", "", b"")).status,
            Some(200)
        );
        let first = done() - before;
        let answer = SERVING.send(request(method, "/falls", "Content-Length: 0\r\n", b""));
        assert_eq!(answer.status, Some(status), "{method}: {answer:?}");
        assert_eq!((first, done() - before - first), (1, times), "{method}");
        if status == 200 {
            // The new process has had one request: this is its second.
            assert_eq!(
                SERVING.send(request("POST", "/falls", "", b"")).status,
                Some(500)
            );
        }
    }
}

#[test]
fn what_is_large_but_right_comes_whole() {
    let answer = ask("large");
    assert_eq!((answer.status, answer.whole), (Some(200), true));
    assert_eq!(answer.body.len(), 4 + 10 * 65535);
    assert_eq!(ask("chatter").text(), "good");
    let log = SERVING.errors.get();
    let lines = log.lines().filter(|line| line.contains("/chatter: ccc"));
    assert!(
        lines.clone().all(|line| line.len() < 5000) && lines.count() < 20,
        "{}",
        log.len()
    );
}

#[test]
fn who_leaves_one_that_is_silent_has_its_process_ended() {
    for _ in 0..3 {
        let mut stream = SERVING.connect();
        std::io::Write::write_all(&mut stream, &request("GET", "/endless-body", "", b"")).unwrap();
        stream.read_exact(&mut [0; 1000]).unwrap();
        drop(stream);
    }
    // The only instance is free again.
    while ask("endless-body").status != Some(200) {}
}
