//! What agents see and do.

use crate::support::under;
use std::path::Path;

/// How often the table of `count` says that a call was made.
fn count(said: &str, name: &str) -> u64 {
    let row = said
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some(name));
    let number = row.and_then(|row| row.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn one_state_for_a_tree() {
    let script = "for i in 1 2 3 4 5; do /bin/true; done; mkdir \"$0\"; rmdir \"$0\"; :";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made");
    let words = ["bash", "-c", script, path.to_str().expect("a path")];
    let (seen, said) = under("count", &[], &words);
    assert_eq!(seen.status, Some(0));
    // bash itself, five of `true`, mkdir, rmdir; shells try the folders of $PATH.
    assert!(count(&said, "execve") >= 8, "{said}");
    assert_eq!(
        (count(&said, "mkdir"), count(&said, "rmdir")),
        (1, 1),
        "{said}"
    );
    assert_eq!(count(&said, "exit_group"), 8, "{said}");
}

#[test]
fn what_is_denied_is_not_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kept");
    std::fs::write(&path, "here").expect("a file");
    let kept = path.to_str().expect("a path");
    let (seen, said) = under("deny", &["unlink", "unlinkat=EACCES"], &["rm", kept]);
    assert_eq!(seen.status, Some(1));
    assert!(Path::new(kept).exists());
    assert!(
        said.starts_with("deny: refused unlinkat by process "),
        "{said}"
    );
    let (seen, said) = under(
        "deny",
        &["unlink"],
        &["perl", "-e", "exit(unlink($ARGV[0]) ? 0 : $!+0)", kept],
    );
    assert_eq!((seen.status, said.lines().count()), (Some(1), 1), "{said}");
    let (seen, _) = under("deny", &["mkdir"], &["rm", kept]);
    assert_eq!(seen.status, Some(0));
    assert!(!path.exists());
}

#[test]
fn an_agent_that_faults_ends_the_program() {
    let (seen, _) = under(
        "faulty",
        &[],
        &["perl", "-e", "$| = 1; print 1; syscall(124, 0); print 2"],
    );
    assert_eq!((seen.status, seen.output.as_str()), (Some(125), "1"));
    // The program's own faults are its own.
    let (seen, _) = under(
        "faulty",
        &[],
        &[
            "perl",
            "-e",
            "$SIG{SEGV} = sub { print 3; exit 4 }; kill SEGV, $$",
        ],
    );
    assert_eq!((seen.status, seen.output.as_str()), (Some(4), "3"));
}

#[test]
fn what_came_of_a_call_is_seen_behind_it() {
    // A child by fork, one that shares the memory until it is another program, and a failed exec.
    let script = "$| = 1; print syscall(124, 0), ' '; exit 3 if !fork; wait; print $? >> 8, ' '; \
                  print system('/bin/true') >> 8; exec '/nonesuch'; print ' back'";
    let (seen, said) = under("seen", &[], &["/usr/bin/perl", "-e", script]);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(0), "4242 3 0 back")
    );
    assert!(!said.contains("note"), "{said}");
    let of = |process: u32, number: u64| {
        let start = format!("{process} {number} ");
        let all = said.lines().filter_map(|line| line.strip_prefix(&start));
        all.map(|result| result.parse().expect("a number"))
            .collect::<Vec<i64>>()
    };
    assert_eq!(of(0, 124), [4242]);
    assert_eq!(of(0, 59), [-2], "{said}");
    let [wait, ..] = of(0, 61)[..] else {
        panic!("{said}");
    };
    let made = [of(0, 56), of(0, 57), of(0, 58)].concat();
    assert_eq!(made.first(), Some(&wait), "{said}");
    // No child comes back from its own making.
    assert!(!said.lines().any(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        ["56", "57", "58", "435"].contains(&words[1]) && words[2] == "0"
    }));
}
