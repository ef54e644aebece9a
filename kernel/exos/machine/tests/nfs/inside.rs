//! Folders that are mounted inside ExOS, of nfs-ganesha outside.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use postern_aegis_machine::emulator;
use postern_exos_machine::ganesha::{self, Running, Server};
use postern_exos_machine::place;

use crate::guest;

fn script() -> PathBuf {
    place::sources().join("programs/scripts/mounted.sh")
}

/// What the script prints here, in an empty folder.
fn here(folder: &Path) -> String {
    let own = tempfile::tempdir().expect("a folder");
    let output = Command::new("sh")
        .arg(script())
        .current_dir(folder)
        .env("OWN", own.path())
        .env("LC_ALL", "C")
        .output();
    String::from_utf8_lossy(&output.expect("a shell").stdout).into_owned()
}

/// Everything below a folder.
fn tree(folder: &Path, at: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = at.join(path.file_name().expect("a name"));
        let known = std::fs::symlink_metadata(&path).expect("known");
        let bytes = if known.is_dir() {
            tree(&path, &name, into);
            b"folder".to_vec()
        } else if known.is_symlink() {
            let target = std::fs::read_link(&path).expect("a target");
            format!("link {}", target.display()).into_bytes()
        } else {
            std::fs::read(&path).expect("bytes")
        };
        into.insert(name, bytes);
    }
}

fn whole(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    tree(folder, Path::new(""), &mut all);
    all
}

/// What is done inside. The mounts of the server that dies are given up sooner than others.
fn story(export: &Path, squashed: &Path) -> String {
    let (export, squashed) = (export.display(), squashed.display());
    format!(
        "waits() {{ until test -e /t/$1; do sleep 0.2; done; }}
OWN=/tmp
nfs -o tcp 10.0.2.2:{export}/tcp /t && nfs -o udp 10.0.2.2:{export}/udp /u && echo mounted
mount -t nfs -o ro 10.0.2.2:{export}/tcp /ro && nfs 10.0.2.2:{squashed}/ /squashed && echo mounted
nfs -o timeo=5,retrans=1 10.0.2.2:{export}/tcp /t1 && echo mounted
nfs -o udp,timeo=5,retrans=1 10.0.2.2:{export}/udp /u1 && echo mounted
echo begin errors
nfs 10.0.2.2:{export} /t; echo $?
nfs 10.0.2.2:/nowhere /n; echo $?
nfs -o port=9,mountport=9 10.0.2.2:/elsewhere /n; echo $?
nfs nowhere:/n /n; echo $?
nfs -o much 10.0.2.2:/ /n; echo $?
nfs 10.0.2.2:/ n; echo $?
echo end errors
echo begin tcp
(cd /t && . /bin/mounted)
echo end tcp
echo begin udp
(cd /u && . /bin/mounted)
echo end udp
echo begin others
cat /t/given
echo step changes
waits changed
cat /t/given /ro/given /u/given
echo x > /ro/x || echo no
cat /squashed/seen
echo x > /squashed/x || echo no
rm /squashed/seen || echo no
exec 3< /t/given
umount /t
cat <&3
exec 3<&-
umount /ro && echo unmounted
ls /ro 2> /dev/null || echo gone
echo end others
www /t &
sleep 1
echo step web
waits asked
kill $!
wait $! 2> /dev/null
echo begin restart
cp /bin/sh /t/before
echo kept > /u/kept
echo step restart
cp /bin/sh /t/sh; cp /bin/sh /u/sh
cmp /bin/sh /t/sh && cmp /bin/sh /u/sh && cat /u/kept && echo over
waits restarted
echo end restart
echo begin dead
exec 3< /t1/given
cat /t1/given /u1/given
echo step dead
sleep 1
cat /t1/given
cat /u1/given
cat <&3
exec 3<&-
echo x > /t1/x
ls /u1 || seq 3 | cat
cat /t/given &
sleep 0.5
kill $!
wait $! 2> /dev/null
echo $?
umount /u1
echo end dead
exit
"
    )
}

/// A file from the web server inside.
fn get(port: u16, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).expect("a time");
    let asked = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(asked.as_bytes()).expect("writing");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    answer.split_off(head.expect("a head") + 4)
}

#[test]
fn tools_work_in_a_mounted_folder() {
    if !emulator::is_there() {
        return println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
    }
    let name = "inside::tools_work_in_a_mounted_folder";
    ganesha::inside(name, told);
}

fn told(server: &Server) {
    let mut running: Option<Running> = Some(server.start().expect("it starts"));
    let (export, squashed) = (server.export(), server.squashed());
    for folder in ["tcp", "udp"] {
        std::fs::create_dir(export.join(folder)).expect("a folder");
        std::fs::write(export.join(folder).join("given"), "first\n").expect("a file");
    }
    std::fs::write(squashed.join("seen"), "seen\n").expect("a file");
    let script_inside = std::fs::read(script()).expect("a script");
    let files: [(&str, &[u8]); 1] = [("mounted", &script_inside)];
    let there = |name: &str| export.join("tcp").join(name);
    let ended = guest::run(
        &story(&export, &squashed),
        &files,
        1,
        |step, port| match step {
            "changes" => {
                for folder in ["tcp", "udp"] {
                    std::fs::write(export.join(folder).join("given"), "second\n")
                        .expect("a change");
                }
                std::fs::write(there("changed"), "").expect("a file");
            }
            "restart" => {
                running = None;
                std::thread::sleep(Duration::from_millis(1100));
                running = Some(server.start().expect("it starts again"));
                std::fs::write(there("restarted"), "").expect("a file");
            }
            "web" => {
                let numbers = std::fs::read(there("tools/more")).expect("a file");
                assert!(get(port, "/tools/more") == numbers, "it is another file");
                assert_eq!(get(port, "/given"), b"second\n");
                std::fs::write(there("given"), "third\n").expect("a change");
                std::thread::sleep(Duration::from_millis(3500));
                assert_eq!(get(port, "/given"), b"third\n");
                std::fs::write(there("asked"), "").expect("a file");
            }
            "dead" => running = None,
            step => panic!("{step}"),
        },
    );
    assert!(ended.status.is_well(), "{}", ended.status);
    let mounts = ended.lines.iter().filter(|line| *line == "mounted").count();
    assert_eq!(mounts, 4);
    let says = |part: &str| {
        let [first, last] = ["begin", "end"].map(|word| format!("{word} {part}"));
        guest::between(&ended, &first, &last).join("\n")
    };
    let errors = says("errors");
    assert_eq!(errors.lines().collect::<Vec<_>>(), ERRORS);
    let twin = tempfile::tempdir().expect("a folder");
    let expected = here(twin.path());
    for folder in ["tcp", "udp"] {
        assert_eq!(says(folder), expected.trim_end(), "{folder}");
        let tools = export.join(folder).join("tools");
        assert!(
            whole(&tools) == whole(&twin.path().join("tools")),
            "{folder}: the folders differ"
        );
    }
    assert_eq!(says("others").lines().collect::<Vec<_>>(), OTHERS);
    assert_eq!(says("restart"), "step restart\nkept\nover");
    assert_eq!(says("dead").lines().collect::<Vec<_>>(), DEAD);
    let shell = std::fs::read(export.join("udp/sh")).expect("a copy");
    assert!(shell == std::fs::read(there("before")).expect("another"));
}

const ERRORS: [&str; 14] = [
    "nfs: /t: something is mounted there",
    "32",
    "nfs: 10.0.2.2:/nowhere: the server does not let this folder be mounted (Permission denied)",
    "32",
    "nfs: 10.0.2.2:/elsewhere: MOUNT does not answer as it should (Connection refused)",
    "32",
    "nfs: nowhere:/n: the host has no address (Resource temporarily unavailable)",
    "32",
    "nfs: there is no option much",
    "usage: nfs [-o OPTION,...] HOST:/FOLDER /POINT",
    "options: tcp, udp, ro, rw, port=N, mountport=N, uid=N, gid=N, timeo=TENTHS, retrans=N",
    "1",
    "nfs: n: a mount point is a path from / on, of up to 47 bytes",
    "1",
];

const OTHERS: [&str; 16] = [
    "first",
    "step changes",
    "second",
    "second",
    "second",
    "sh: /ro/x: Read-only file system",
    "no",
    "seen",
    "sh: /squashed/x: Read-only file system",
    "no",
    "rm: /squashed/seen: Read-only file system",
    "no",
    "umount: /t: Device or resource busy",
    "second",
    "unmounted",
    "gone",
];

const DEAD: [&str; 12] = [
    "third",
    "second",
    "step dead",
    "cat: /t1/given: Connection timed out",
    "cat: /u1/given: Connection timed out",
    "cat: -: Connection timed out",
    "sh: /t1/x: Connection timed out",
    "ls: /u1: Connection timed out",
    "1",
    "2",
    "3",
    "143",
];
