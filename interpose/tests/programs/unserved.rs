//! Programs that cannot be served: each has one sentence.

use crate::probe::build;
use crate::support::{agent, folder};
use postern_interpose::Interposer;
use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Not a test: `postern interpose` in a process of its own, whose standard error is looked at.
#[test]
#[ignore = "the others start it"]
fn run() {
    let Ok(words) = std::env::var("POSTERN_TEST_UNSERVED") else {
        return;
    };
    let words: Vec<&str> = words.split(' ').collect();
    let interposer = Interposer::new(agent("count"));
    let interposer = match words[0] {
        "enforce" => interposer.enforce(),
        _ => interposer,
    };
    match interposer.run(OsStr::new(words[1]), &words[2..]) {
        Ok(status) => eprintln!("status: {:?}", status.code()),
        Err(error) => eprintln!("error: {error}"),
    }
}

/// The lines that are about it, and the status; in front may be a program that executes another.
fn said(in_front: &[&str], words: &str) -> String {
    let own = std::env::current_exe().expect("this file");
    let own = own.to_str().expect("a path");
    let test = [own, "--exact", "unserved::run", "--ignored", "--nocapture"];
    let all: Vec<&str> = in_front.iter().chain(&test).copied().collect();
    // It is built before a filter is there.
    agent("count");
    let output = Command::new(all[0])
        .args(&all[1..])
        .env("POSTERN_TEST_UNSERVED", words)
        .stdin(Stdio::null())
        .output()
        .expect("this file");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let about = ["postern: ", "status: ", "error: ", "sh: "];
    let is_about = |line: &&str| about.iter().any(|start| line.starts_with(start));
    text.lines()
        .filter(is_about)
        .map(|line| format!("{line}\n"))
        .collect()
}

fn file(name: &str, bytes: &[u8]) -> String {
    let path = folder().join(name);
    std::fs::write(&path, bytes).expect("a file");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("a file");
    path.to_str().expect("a path").to_owned()
}

/// A header of an ELF file.
fn header(class: u8, machine: u16) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes[4] = class;
    bytes.resize(16, 0);
    bytes.extend(2_u16.to_le_bytes());
    bytes.extend(machine.to_le_bytes());
    bytes.resize(64, 0);
    bytes
}

#[test]
fn other_processors() {
    for (name, class, machine) in [("i386", 1, 3), ("aarch64", 2, 183)] {
        let path = file(name, &header(class, machine));
        let sentence = format!(
            "postern: {path}: a program for another processor, or for 32 bits, is not served\n"
        );
        assert_eq!(
            said(&[], &format!("plain {path}")),
            format!("{sentence}status: Some(126)\n")
        );
        // The C library has a shell read it then.
        let from_a_program = said(&[], &format!("plain env {path}"));
        assert!(from_a_program.starts_with(&sentence), "{from_a_program}");
    }
}

#[test]
fn no_programs() {
    let text = file("text", b"echo read by the shell\n");
    let sentence = format!("postern: {text}: neither a program nor a script that begins with #!\n");
    assert_eq!(
        said(&[], &format!("plain {text}")),
        format!("{sentence}status: Some(126)\n")
    );
    // Shells read it.
    assert_eq!(
        said(&[], &format!("plain sh -c {text}")),
        "status: Some(0)\n"
    );
    let damaged = file("damaged", &header(2, 62));
    let sentence =
        format!("postern: {damaged}: its tables of segments are damaged, or too large\n");
    assert_eq!(
        said(&[], &format!("plain {damaged}")),
        format!("{sentence}status: Some(126)\n")
    );
}

fn at_our_addresses() -> PathBuf {
    let path = folder().join("high");
    let source = Path::new(&file(
        "high.s",
        b".globl _start\n_start: mov $60, %eax\nxor %edi, %edi\nsyscall\n",
    ))
    .to_owned();
    let built = Command::new("gcc")
        .args([
            "-nostdlib",
            "-static",
            "-no-pie",
            "-Wl,-Ttext-segment=0x7e0000000000",
            "-o",
        ])
        .args([&path, &source])
        .status();
    assert!(built.expect("gcc is there").success());
    path
}

#[test]
fn one_that_lies_where_the_loader_does() {
    let path = at_our_addresses();
    let path = path.to_str().expect("a path");
    let native = Command::new(path).status().expect("it is executed");
    assert!(native.success());
    let sentence =
        format!("postern: {path}: it is to lie above 64 TiB, where the loader has its own\n");
    assert_eq!(
        said(&[], &format!("plain {path}")),
        format!("{sentence}status: Some(126)\n")
    );
}

#[test]
fn rights_of_its_file() {
    const NOBODY: u32 = 65534;
    let path = file(
        "set-user-id",
        &std::fs::read("/bin/true").expect("it is there"),
    );
    if chown(&path, Some(NOBODY), None).is_err() {
        // Only root gives files away.
        return;
    }
    let mode = std::fs::Permissions::from_mode(0o4755);
    std::fs::set_permissions(&path, mode).expect("a file");
    let sentence = format!(
        "postern: {path}: it has the caller's rights here, and not those of its file \
         (set-user-ID, set-group-ID or capabilities)\n"
    );
    assert_eq!(
        said(&[], &format!("plain {path}")),
        format!("{sentence}status: Some(0)\n")
    );
}

#[test]
fn a_filter_that_was_there() {
    let refused = build("refused", &[]);
    let dispatch = ["157", "59"];
    let sentence = "postern: prctl(PR_SET_SYSCALL_USER_DISPATCH) is refused, by a filter (seccomp) of \
                    whoever started this process: no program can be served in it\n\
                    status: Some(127)\n";
    let in_front = [refused.as_str(), dispatch[0], dispatch[1]];
    assert_eq!(said(&in_front, "plain /bin/true"), sentence);
    let sentence = "error: seccomp(2) is refused, by a filter of whoever started this process: \
                    --enforce cannot be used in it: Operation not permitted (os error 1)\n";
    assert_eq!(
        said(&[&refused, "317", "-1"], "enforce /bin/true"),
        sentence
    );
}
