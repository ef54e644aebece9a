//! Programs that mean their supervisor harm, or what they are refused: it answers as before, holds
//! no more than before, and what is refused does not happen.

use crate::enforce::{Folder, enforced};
use crate::probe::build;
use crate::support::run;
use postern_interpose::Interposer;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The first program, built once: tests run at the same time.
fn program() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| build("attacks", &[]))
}

/// What it prints of one attack.
fn attack(folder: &Folder, interposer: Interposer, told: &[&str], words: &[&str]) -> String {
    of_program(program(), folder, interposer, told, words)
}

fn of_program(
    program: &str,
    folder: &Folder,
    interposer: Interposer,
    told: &[&str],
    words: &[&str],
) -> String {
    let (denied, allowed) = (folder.at("denied"), folder.at("denies"));
    let all = [program, &denied, &allowed];
    let all: Vec<&str> = all.iter().chain(words).copied().collect();
    let rules = folder.at("rules.toml");
    let told: Vec<&str> = [rules.as_str()].iter().chain(told).copied().collect();
    let (seen, said) = run(interposer, &told, &all);
    assert_eq!(seen.status, Some(0), "{}\n{said}", seen.output);
    let secret = std::fs::read(&denied).expect("it is there");
    assert_eq!(secret, b"secret");
    seen.output
}

#[test]
fn a_call_is_the_same_from_anywhere() {
    let folder = Folder::new();
    let output = attack(&folder, enforced("deny"), &[], &["ways"]);
    let refused = "code that was made: 7\nown text: 7\nbases: 7\na signal's frame: 7\n\
                   without the vdso: 7\nvfork: 7\n";
    assert_eq!(output, refused);
}

#[test]
fn nobody_reaches_the_supervisor() {
    let folder = Folder::new();
    let output = attack(&folder, enforced("deny"), &[], &["reach"]);
    let refused = "kill: -1\nkill, asking: 0\nkill its group: -1\nkill its group, by number: -1\n\
                   kill all: -1\ntkill: -1\ntgkill: -1\nrt_sigqueueinfo: -1\n\
                   pidfd_send_signal: -1\nby a folder: -9\nprlimit: -1\nprlimit of itself: 0\n\
                   sched_setaffinity: -1\nsched_setaffinity of itself: 0\nsetpriority: -1\n\
                   setpriority of its group: -1\nsetpriority of itself: 0\nsetpgid: -1\n\
                   vhangup: -1\nadjtimex: -1\na call of tomorrow's: -38\n\
                   an old number of x32's: -38\nanother's memory: -13\na child: 0\n\
                   it ended by: 9\nFS_IOC_SETFLAGS: -1\nTIOCSTI: -1\nuserfaultfd: -1\n\
                   its device's: -1\nopened: 0\n";
    assert_eq!(output, refused);
}

#[test]
fn what_has_a_name_or_number_is_decided_about() {
    let folder = Folder::new();
    let link = folder.at("link");
    symlink(folder.at("denied"), &link).expect("a link");
    let of_files = "inotify: 0\ninotify, denied: -13\ninotify, by a link: -13\n\
                    inotify of the link: 0\nutimensat: 0\nutimensat, denied: -13\n\
                    utimensat, by a link: -13\nutimensat of the link: 0\nfutimens: 0\n\
                    it is now: 1\nutimes: 0\ntimes: 3 4 6000\n";
    let output = attack(&folder, enforced("deny"), &[], &["named", &link]);
    let passed = "mq_open: 0\nmq_send: 0\nmq_receive: 4\nmq_unlink: 0\nmq_unlink again: -2\n\
                  shmget: 0\nshmat: 0\n";
    assert_eq!(output, format!("{passed}{of_files}"));
    let told = ["mq_open", "mq_unlink=EACCES", "shmget=EACCES"];
    let output = attack(&folder, enforced("deny"), &told, &["named", &link]);
    let refused = "mq_open: -1\nmq_send: -9\nmq_receive: -9\nmq_unlink: -13\n\
                   mq_unlink again: -13\nshmget: -13\n";
    assert_eq!(output, format!("{refused}{of_files}"));
}

#[test]
fn what_changes_hands_meanwhile() {
    let folder = Folder::new();
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(folder.at("denied"), mode).expect("a file");
    let output = attack(&folder, enforced("deny"), &[], &["descriptors", "500"]);
    assert_eq!(output, "changed: some, mode of the denied: 600\n");
    let output = attack(&folder, enforced("deny"), &[], &["processes", "500"]);
    assert_eq!(output, "sent: some\n");
    let socket = || UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = |socket: &UdpSocket| socket.local_addr().expect("a port").port();
    let (denied, allowed) = (socket(), socket());
    let rule = format!(
        "[[rule]]\nnetworks = [\"127.0.0.1/32:{}\"]\nverdict = \"deny\"\n",
        port(&denied)
    );
    let rules = folder.at("rules.toml");
    let more = std::fs::read_to_string(&rules).expect("it is there") + &rule;
    std::fs::write(rules, more).expect("a file");
    let ports = [&denied, &allowed].map(|socket| port(socket).to_string());
    let words = ["addresses", &ports[0], &ports[1], "2000"];
    let output = attack(&folder, enforced("deny"), &[], &words);
    assert_eq!(output, "sent: some\n");
    denied.set_nonblocking(true).expect("a socket");
    let nothing = denied.recv(&mut [0; 8]).map_err(|error| error.kind());
    assert_eq!(nothing, Err(ErrorKind::WouldBlock));
    allowed.recv(&mut [0; 8]).expect("something came");
}

#[test]
fn calls_while_programs_end_and_are_executed() {
    let folder = Folder::new();
    let output = attack(&folder, enforced("deny"), &[], &["ends", "20"]);
    assert_eq!(output, "ended well: 20\nopened: 0\n");
}

#[test]
fn calls_at_random() {
    let folder = Folder::new();
    let inside = folder.at("inside");
    std::fs::create_dir(&inside).expect("a folder");
    let words = ["24", "300", &inside];
    let random = build("random", &[]);
    let output = of_program(&random, &folder, enforced("deny"), &[], &words);
    assert_eq!(output, "-13\n0\n");
}

#[test]
fn what_is_in_memory_is_not_executed() {
    let folder = Folder::new();
    let parent = std::path::Path::new(program()).parent().expect("a folder");
    let restricted = enforced("deny")
        .allow_exec(parent)
        .allow_exec("/bin/sh")
        .allow_exec("/usr/lib")
        .allow_exec("/lib64");
    let output = attack(&folder, restricted, &[], &["memory"]);
    let refused = "made: 1 1\nfchmod: -1\nexecveat: -13\nexecve: -13\nMFD_EXEC: -13\n\
                   of shared memory: refused\nby its descriptor: refused\nopened: 0\n";
    assert_eq!(output, refused);
    let output = attack(&folder, enforced("deny"), &[], &["memory"]);
    assert_eq!(
        output, "made: 1 1\nfchmod: 0\n",
        "without --allow-exec it is"
    );
}

/// Not a test: a supervisor in a process of its own, which prints what it came to hold.
#[test]
#[ignore = "the next test starts it"]
fn measured() {
    let Ok(words) = std::env::var("POSTERN_TEST_ATTACK") else {
        return;
    };
    let files = || {
        std::fs::read_dir("/proc/self/fd")
            .expect("it is there")
            .count()
    };
    let words: Vec<&str> = words.split(' ').collect();
    let run = |program: &str, given: &[&str]| {
        let interposer = enforced("deny").argument(words[0]);
        let status = interposer.run(OsStr::new(program), given);
        assert!(status.expect("the program is run").success());
    };
    // What a process keeps once it has had one.
    run("true", &[]);
    let before = files();
    run(program(), &words[1..]);
    let after = files();
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let most = most.map(|text| text.trim().trim_end_matches(" kB").parse::<u64>());
    let small = most.is_some_and(|most| most.is_ok_and(|kib| kib < 256 << 10));
    println!(
        "more descriptors: {}, small: {small}",
        after.saturating_sub(before)
    );
}

#[test]
fn floods_leave_nothing_in_the_supervisor() {
    let folder = Folder::new();
    let pipe = folder.at("pipe");
    let (denied, allowed) = (folder.at("denied"), folder.at("denies"));
    let rules = folder.at("rules.toml");
    let small = "more descriptors: 0, small: true\n";
    // As much as it may hold open, or more.
    let floods = "254 descriptors: -22\nsent: some\nhuge pieces: -90\nmany pieces: -90\n\
                  descriptors: 63 -24\nopened: 0\n";
    for (attack, expected) in [
        (format!("left 600 {pipe}"), "opened: 0\n"),
        (String::from("messages 40"), "opened: 0\n"),
        (String::from("floods"), floods),
    ] {
        let words = format!("{rules} {denied} {allowed} {attack}");
        let output = Command::new(std::env::current_exe().expect("this file"))
            .args(["--exact", "attacks::measured", "--ignored", "--nocapture"])
            .env("POSTERN_TEST_ATTACK", words)
            .stdin(Stdio::null())
            .output()
            .expect("this file");
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.contains(expected), "{attack}: {output}");
        assert!(output.contains(small), "{attack}: {output}");
    }
}
