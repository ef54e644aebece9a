//! Programs that mean to do what their agent refuses, under a supervisor; and programs that do not.

use crate::debian::{PROGRAMS, SCRIPTS};
use crate::probe::build;
use crate::support::{Seen, agent, native, path_in, run};
use postern_interpose::{InterposeError, Interposer};
use postern_toolchain::{Build, Language};
use std::ffi::OsStr;
use std::fs::write;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

pub fn enforced(name: &str) -> Interposer {
    Interposer::new(agent(name)).enforce()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// The hostile program, built once: tests run at the same time.
fn hostile() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| build("hostile", &[]))
}

/// A folder with a file that may be read, and one, `denied`, that may not by `rules.toml`.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Folder {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Folder(folder);
        write(folder.at("denied"), "secret").expect("a file");
        write(folder.at("denies"), "others").expect("a file");
        let denied = folder.at("denied");
        let rules = format!("[[rule]]\npaths = [\"{denied}\"]\nverdict = \"deny\"\n");
        write(folder.at("rules.toml"), rules + "error = \"EACCES\"\n").expect("a file");
        folder
    }

    pub fn at(&self, name: &str) -> String {
        path_in(&self.0, name)
    }

    /// What the hostile program prints.
    fn hostile(&self, interposer: Interposer, words: &[&str]) -> (String, String) {
        let words: Vec<&str> = [hostile()].iter().chain(words).copied().collect();
        let (seen, said) = run(interposer, &[&self.at("rules.toml")], &words);
        assert_eq!(seen.status, Some(0), "{said}");
        (seen.output, said)
    }
}

#[test]
fn what_gets_around_an_agent_in_the_program_does_not_get_around_a_supervisor() {
    let folder = Folder::new();
    let denied = folder.at("denied");
    let words = ["around", denied.as_str()];
    let plain = Interposer::new(agent("deny"));
    assert_eq!(folder.hostile(plain, &words).0, "secret\n");
    let (output, said) = folder.hostile(enforced("deny"), &words);
    assert_eq!(output, "Permission denied\n");
    assert!(said.starts_with(&format!("deny: refused openat of {denied} by ")));
}

#[test]
fn what_changes_between_the_decision_and_the_call_changes_nothing() {
    let folder = Folder::new();
    let (denied, allowed) = (folder.at("denied"), folder.at("denies"));
    let words = ["race", denied.as_str(), "s", "10000"];
    let output = folder.hostile(enforced("deny"), &words).0;
    assert_eq!(output, "secrets: 0, others: some\n");
    let link = folder.at("link");
    let words = ["links", denied.as_str(), &allowed, &link, "500"];
    let output = folder.hostile(enforced("deny"), &words).0;
    assert_eq!(output, "secrets: 0\n");
}

#[test]
fn a_file_is_the_same_by_any_path() {
    let folder = Folder::new();
    let denied = folder.at("denied");
    std::os::unix::fs::symlink(&denied, folder.at("by-link")).expect("a link");
    std::os::unix::fs::symlink(folder.0.path(), folder.at("up")).expect("a link");
    let script = "cd \"$0\"; for path in denied ./denied by-link up/denied /proc/self/cwd/denied \
                  up/up/../\"${0##*/}\"/denied; do cat $path; done; \
                  mv denied elsewhere; ln denied elsewhere; chmod 777 denied; rm -f denied; \
                  truncate -s 0 denied; chown 0 denied; ls";
    let folder_path = text(folder.0.path());
    let words = ["bash", "-c", script, folder_path];
    let rules = folder.at("rules.toml");
    let (seen, said) = run(enforced("deny"), &[&rules], &words);
    let left = "by-link\ndenied\ndenies\nrules.toml\nup\n";
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(0), left),
        "{said}"
    );
    let refusals = |call: &str| {
        let line = format!("deny: refused {call} of {denied} by ");
        said.lines().filter(|said| said.starts_with(&line)).count()
    };
    assert_eq!(refusals("openat"), 7, "{said}");
    for call in ["renameat2", "linkat", "fchmodat", "unlinkat", "fchownat"] {
        assert_eq!(refusals(call), 1, "{call}: {said}");
    }
}

#[test]
fn other_conventions_and_other_powers_are_refused() {
    let folder = Folder::new();
    let output = folder.hostile(enforced("deny"), &["conventions"]).0;
    assert_eq!(output, "int 0x80: -38\nx32: -38\n");
    let output = folder.hostile(enforced("families"), &["powers"]).0;
    let refused = "ptrace: -1\nprocess_vm_writev: -1\nF_SETOWN: -1\nF_SETOWN of itself: 0\n\
                   F_SETOWN_EX: -1\npidfd_getfd: -1\nunshare: -1\nclone: -1\n\
                   clone3: -38\nsetuid: -1\nchroot: -1\nmount: -1\nio_uring: -38\nbpf: -1\n\
                   supervisor's memory: -13\nfrom its folder: -13\nsocket with an upper half: -97\nown memory: open\n\
                   own status: 1\n";
    assert_eq!(output, refused);
}

#[test]
fn a_signal_has_no_call_made_twice() {
    let folder = Folder::new();
    let at = text(folder.0.path());
    let output = folder.hostile(enforced("deny"), &["signals", at, "300"]).0;
    assert_eq!(output, "wrong: 0\n");
}

#[test]
fn addresses_are_decided_about() {
    let folder = Folder::new();
    let own = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = own.local_addr().expect("a port").port().to_string();
    let words = ["network", port.as_str()];
    let output = folder.hostile(enforced("deny"), &words).0;
    // Nobody listens there for connections.
    let passed = "connect: -111\nsendto: 1\nsendmsg: 2\nsendmmsg: 1 2\n";
    assert_eq!(output, passed);
    let rules = "[[rule]]\nnetworks = [\"127.0.0.0/8\"]\nverdict = \"deny\"\nerror = \"EPERM\"\n";
    write(folder.at("rules.toml"), rules).expect("a file");
    let (output, said) = folder.hostile(enforced("deny"), &words);
    let refused = "connect: -1\nsendto: -1\nsendmsg: -1\nsendmmsg: -1 0\n";
    assert_eq!(output, refused, "{said}");
    let at = text(folder.0.path());
    let output = folder.hostile(enforced("deny"), &["local", at]).0;
    let passed = "bind: 0\nbind again: -98\nconnect: 0\nsendmsg: 1\nreceived: 1 x\n\
                  through it: 2\n2 ab\n";
    assert_eq!(output, passed);
}

#[test]
fn calls_that_wait_for_each_other() {
    let folder = Folder::new();
    let pipe = folder.at("pipe");
    let output = folder.hostile(enforced("deny"), &["pipes", &pipe]).0;
    assert_eq!(output, "got: 1 z 0\n");
}

#[test]
fn thirty_and_more_do_the_same_under_a_supervisor() {
    let mut differ = Vec::new();
    let programs = PROGRAMS.iter().map(|program| program.split(' ').collect());
    let scripts = SCRIPTS.iter().map(|script| vec!["bash", "-c", *script]);
    for words in programs.chain(scripts) {
        let words: Vec<&str> = words;
        let alone = native(&words);
        let (seen, _) = run(enforced("count"), &[], &words);
        if alone != seen {
            differ.push(format!("{words:?}\n  alone {alone:?}\n  under {seen:?}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    let probe = build("probe-supervised", &[]);
    let (seen, said) = run(enforced("seen"), &[], &[&probe]);
    assert_eq!(seen, native(&[&probe]), "{said}");
}

#[test]
fn make_and_files_under_a_supervisor() {
    let folder = Folder::new();
    let makefile = "all: b\n\tcat b\nb: a\n\tcp a b; chmod 640 b; touch -d @1 b; ln -s b c\n\
                    a:\n\tumask 077; echo made > a; mkdir d; mv a d/a; cp -a d/a a\n\
                    \ttar cf t d; rm -r d; tar xf t; chmod -R u+w d; rm -r d t\n";
    write(folder.at("Makefile"), makefile).expect("a file");
    let words = ["make", "-s", "-C", text(folder.0.path())];
    let (seen, said) = run(enforced("deny"), &[&folder.at("rules.toml")], &words);
    let made = Seen {
        status: Some(0),
        output: "made\n".into(),
    };
    assert_eq!(seen, made, "{said}");
    let mode = |name: &str| {
        let status = std::fs::metadata(folder.at(name)).expect("a file");
        std::os::unix::fs::PermissionsExt::mode(&status.permissions()) & 0o777
    };
    assert_eq!((mode("a"), mode("b")), (0o600, 0o640));
}

#[test]
fn an_agent_that_fails_ends_the_tree() {
    let words = ["bash", "-c", "\"$0\" conventions; echo more", hostile()];
    let (seen, said) = run(enforced("refuses-to-say"), &[], &words);
    assert_eq!((seen.status, seen.output.as_str()), (Some(125), ""));
    assert_eq!(
        said,
        "postern: the agent failed: it said none of what it may say\n"
    );
    let (seen, said) = run(enforced("deny"), &["nonesuch"], &["true"]);
    assert_eq!(seen.status, Some(125));
    assert!(said.contains("no such call or class: nonesuch"), "{said}");
    let missing = Interposer::new("/nonesuch").enforce();
    let none: [&OsStr; 0] = [];
    let result = missing.run(OsStr::new("true"), none);
    assert!(
        matches!(result, Err(InterposeError::Agent(..))),
        "{result:?}"
    );
}

#[test]
fn an_agent_that_has_no_room_for_records_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, image) = (path_in(&folder, "bare.c"), path_in(&folder, "bare.px"));
    write(&source, "int pt_agent(void *call) { return call == 0; }\n").expect("a file");
    let built = Build::new(Language::C)
        .file(&source)
        .flags(["-O2", "-nostdlib"])
        .output(&image)
        .run();
    built.expect("the agent is built");
    let none: [&OsStr; 0] = [];
    let bare = Interposer::new(&image).enforce();
    let result = bare.run(OsStr::new("true"), none);
    let why = result.expect_err("it has no malloc").to_string();
    assert!(why.contains("malloc"), "{why}");
}

#[test]
fn the_kernel_keeps_programs_from_being_executed() {
    let script = "/usr/bin/env | grep -c . > /dev/null; /usr/bin/true && echo no";
    let words = ["bash", "-c", script];
    let all = || {
        enforced("count")
            .allow_exec("/usr/lib")
            .allow_exec("/lib64")
    };
    let shells = all().allow_exec("/bin/sh").allow_exec("/bin/bash");
    let (seen, said) = run(shells, &[], &words);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(126), ""),
        "{said}"
    );
    let (seen, said) = run(enforced("count").allow_exec("/usr"), &[], &words);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(0), "no\n"),
        "{said}"
    );
    let missing = enforced("count").allow_exec("/nonesuch");
    let none: [&OsStr; 0] = [];
    let result = missing.run(OsStr::new("true"), none);
    assert!(
        matches!(result, Err(InterposeError::AllowedExec(..))),
        "{result:?}"
    );
}

/// Not a test: the supervisor that the next one ends.
#[test]
#[ignore = "the next test starts it"]
fn supervisor() {
    let words = ["left", "/etc/hostname"];
    let result = enforced("count").run(OsStr::new(hostile()), words);
    result.expect("the program is run");
}

#[test]
fn without_their_supervisor_programs_cannot_open() {
    let mut supervisor = Command::new(std::env::current_exe().expect("this file"))
        .args(["--exact", "enforce::supervisor", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this file");
    let output = supervisor.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("ready")));
    supervisor.kill().expect("it is there");
    let mut input = supervisor.stdin.take().expect("a pipe");
    supervisor.wait().expect("it is there");
    input.write_all(b"go\n").expect("the program reads");
    assert_eq!(lines.next().as_deref(), Some("opened: -38"));
}
