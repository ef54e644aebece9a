//! What `trace` prints is what strace prints of the same programs.
//!
//! Compared are the lines of each thread from where the program was executed, without: addresses,
//! numbers of processes, random bytes, comments (how many variables, dates), what agents do not see
//! (signals that come, and the end of their handlers), and the signal that comes in place of calls,
//! which no mask has.

use crate::support::{folder, under};
use std::collections::HashMap;
use std::process::{Command, Stdio};

/// A line without what differs from run to run.
fn normal(line: &str, threads: &[String]) -> String {
    let mut line = line.to_owned();
    while let Some((before, (comment, after))) = line
        .split_once(" /* ")
        .and_then(|(before, rest)| Some((before, rest.split_once(" */")?)))
    {
        let entries = comment.strip_suffix(" entries");
        line = format!("{before}{}{after}", entries.unwrap_or_default());
    }
    let about = ["clone", "vfork", "wait4", "getpid", "set_tid", "kill"];
    let about_threads = about.iter().any(|call| line.starts_with(call));
    let mut text = String::new();
    let mut rest = line.as_str();
    while let Some(byte) = rest.chars().next() {
        let hex = rest.strip_prefix("0x").map_or(0, |digits| {
            let end = digits.find(|c: char| !c.is_ascii_hexdigit());
            end.unwrap_or(digits.len())
        });
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let digits = &rest[..end.unwrap_or(rest.len())];
        if hex > 5 {
            text.push_str("ADDRESS");
            rest = &rest[2 + hex..];
        } else if !digits.is_empty() {
            let is_thread = about_threads && threads.iter().any(|thread| thread == digits);
            text.push_str(if is_thread { "THREAD" } else { digits });
            rest = &rest[digits.len()..];
        } else if rest.starts_with("\\x") {
            text.push_str("\\x");
            rest = &rest[4..];
        } else {
            text.push(byte);
            rest = &rest[byte.len_utf8()..];
        }
    }
    let text = text.replace(" SYS ", " ");
    let (call, result) = text.rsplit_once(" = ").unwrap_or((&text, ""));
    let call = call.trim_end();
    match call {
        "getppid()" => call.to_owned(),
        _ => format!("{call} = {result}"),
    }
}

/// Each thread's lines, from this program's execution on.
fn threads(text: &str, program: &str) -> Vec<Vec<String>> {
    let start = format!(" execve(\"{program}\"");
    let lines: Vec<&str> = text.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.contains(&start) && line.ends_with(" = 0"));
    let first = first.unwrap_or_else(|| panic!("{program} was not executed: {text}"));
    let mut order: Vec<String> = Vec::new();
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    let mut begun: HashMap<String, String> = HashMap::new();
    for line in &lines[first..] {
        let (thread, rest) = line.split_once(' ').expect("a number");
        let rest = rest.trim_start();
        if rest.starts_with("--- ") || rest.starts_with("rt_sigreturn(") {
            continue;
        }
        if !found.contains_key(thread) {
            order.push(thread.to_owned());
            found.insert(thread.to_owned(), Vec::new());
        }
        if let Some(part) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(thread.to_owned(), part.to_owned());
            continue;
        }
        let whole = match rest.split_once(" resumed>") {
            Some((_, rest)) if line.contains("<... ") => {
                begun.remove(thread).unwrap_or_default() + rest
            }
            _ => rest.to_owned(),
        };
        // It is made again, behind a handler.
        if !whole.contains(" = ? ERESTART") {
            found.get_mut(thread).expect("made above").push(whole);
        }
    }
    let mut all: Vec<Vec<String>> = order
        .iter()
        .map(|thread| {
            let lines = &found[thread];
            lines.iter().map(|line| normal(line, &order)).collect()
        })
        .collect();
    // Which thread began first may differ.
    all[1..].sort();
    all
}

fn strace(words: &[&str]) -> String {
    let said = folder().join(format!("strace-{}", words.join("-").replace('/', "_")));
    let output = tempfile::NamedTempFile::new().expect("a file");
    let status = Command::new("strace")
        .args(["-f", "-o"])
        .arg(&said)
        .args(words)
        .env("PWD", std::env::current_dir().expect("a folder"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(output.reopen().expect("a file"))
        .status()
        .expect("strace is installed: make setup");
    assert!(status.success(), "{words:?}");
    std::fs::read_to_string(said).expect("a file")
}

fn same(program: &str, words: &[&str], prepare: impl Fn()) {
    prepare();
    let alone = threads(&strace(words), program);
    prepare();
    let (seen, said) = under("trace", &["-f"], words);
    assert_eq!(seen.status, Some(0), "{said}");
    let seen = threads(&said, program);
    assert_eq!(alone.len(), seen.len(), "{said}");
    for (alone, seen) in alone.iter().zip(&seen) {
        let differ: Vec<String> = (0..alone.len().max(seen.len()))
            .filter(|at| alone.get(*at) != seen.get(*at))
            .take(4)
            .map(|at| format!("strace {:?}\ntrace  {:?}", alone.get(at), seen.get(at)))
            .collect();
        assert!(differ.is_empty(), "{words:?}\n{}", differ.join("\n"));
    }
}

#[test]
fn of_programs_with_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| {
        let path = folder.path().join(name);
        path.to_str().expect("a path").to_owned()
    };
    let prepare = || {
        for name in ["a", "b", "c"] {
            let _ = std::fs::remove_file(at(name));
            let _ = std::fs::remove_dir(at(name));
        }
        std::fs::write(at("a"), "one\n\ttwo \"three\"\x01").expect("a file");
    };
    let (here, a, b, c) = (at(""), at("a"), at("b"), at("c"));
    for (program, words) in [
        ("/usr/bin/cat", vec!["cat", &a]),
        ("/usr/bin/ls", vec!["ls", &here]),
        ("/usr/bin/ls", vec!["ls", "-l", &here]),
        ("/usr/bin/cp", vec!["cp", &a, &b]),
        ("/usr/bin/mv", vec!["mv", &a, &b]),
        ("/usr/bin/rm", vec!["rm", &a]),
        ("/usr/bin/mkdir", vec!["mkdir", "-p", &c]),
        ("/usr/bin/touch", vec!["touch", "-d", "2020-01-01", &a]),
        ("/usr/bin/chmod", vec!["chmod", "600", &a]),
        ("/usr/bin/ln", vec!["ln", "-sf", &a, &b]),
        ("/usr/bin/readlink", vec!["readlink", "/etc/mtab"]),
        ("/usr/bin/tac", vec!["tac", &a]),
        ("/usr/bin/tail", vec!["tail", "-1", &a]),
    ] {
        same(program, &words, prepare);
    }
}

#[test]
fn of_programs_without() {
    for (program, words) in [
        ("/usr/bin/echo", vec!["echo", "hello"]),
        ("/usr/bin/uname", vec!["uname", "-a"]),
        ("/usr/bin/sleep", vec!["sleep", "0.001"]),
        ("/usr/bin/id", vec!["id", "-u"]),
        ("/usr/bin/nproc", vec!["nproc"]),
    ] {
        same(program, &words, || {});
    }
}

#[test]
fn of_a_shell_and_its_children() {
    let script = "trap : USR1; kill -USR1 $$; /bin/true; (exit 3); sh -c 'exit 4'; :";
    same("/usr/bin/sh", &["sh", "-c", script], || {});
}

#[test]
fn what_is_chosen() {
    let (_, said) = under("trace", &["-e", "trace=uname,%nonesuch"], &["uname"]);
    assert_eq!(said, "trace: no such call or class: %nonesuch\n");
    let names = |told: &[&str], words: &[&str]| {
        let (_, said) = under("trace", told, words);
        let mut names: Vec<String> = said
            .lines()
            .filter_map(|line| line.split_once('(').map(|(name, _)| name.to_owned()))
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let uname = ["/usr/bin/uname"];
    assert_eq!(names(&["-e", "uname"], &uname), ["uname"]);
    let memory = ["brk", "mmap", "mprotect", "munmap"];
    assert_eq!(names(&["-e", "trace=%memory"], &uname), memory);
    let others = names(&["-e", "trace=!%memory,%file"], &uname);
    assert!(others.contains(&"uname".into()) && others.contains(&"write".into()));
    assert!(
        !others
            .iter()
            .any(|name| memory.contains(&name.as_str()) || name == "openat")
    );
    let (_, said) = under("trace", &["-e", "write", "-s", "3"], &["echo", "hello"]);
    assert!(said.starts_with("write(1, \"hel\"..., 6)  "), "{said}");
    // Children are printed if that is asked for.
    let shell = ["sh", "-c", "/bin/uname; :"];
    assert!(names(&["-e", "uname"], &shell).is_empty());
    let (_, said) = under("trace", &["-f", "-e", "uname"], &shell);
    assert_eq!(
        said.lines()
            .filter(|line| line.contains("uname({sysname=\"Linux\""))
            .count(),
        1
    );
}

#[test]
fn its_table() {
    let (_, said) = under("trace", &["-c", "-e", "uname,access"], &["/usr/bin/uname"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[0],
        "% time     seconds  usecs/call     calls    errors syscall"
    );
    assert!(lines.iter().any(|line| line.ends_with(" uname")), "{said}");
    // One by sh, one by uname.
    let access = lines.iter().find(|line| line.ends_with(" 2 access"));
    assert!(access.is_some(), "{said}");
    assert!(lines.last().is_some_and(|line| line.ends_with(" total")));
}
