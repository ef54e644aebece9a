//! `make exos-demo`, as a newcomer sees it: it shows every scene, and ends well.

use std::process::Command;

use postern_aegis_machine::emulator;

/// What is seen of each scene, in this order.
const SEEN: [&str; 31] = [
    "1. A machine boots",
    "| /$ uname -a",
    "| /$ reboot",
    "2. It has begun again",
    "| <p>Written before the reboot.",
    "www: http://",
    "3. Its web server",
    "200 <p>Written before the reboot.",
    "200 Hello, 10.0.2.2. You are visitor 1",
    "4. A client sends code",
    "bytes, in colour",
    "201 {\"name\":\"gray\"",
    "bytes, in shades of gray",
    "5. Code that loops or crashes",
    "201 {\"name\":\"loop\"",
    "504 ",
    "504 ",
    "500 ",
    "200 Hello, 10.0.2.2. You are visitor 1",
    "200 <p>Written before the reboot.",
    "guest: null-pointer",
    "6. The shell",
    "| /$ poweroff",
    "all went well",
    "7. Processes in a pipeline",
    "11. Programs as nobody wants them",
    "12. All are gone",
    "all went well",
    "13. Figure 3",
    "all went well",
    "All of it held",
];

#[test]
fn the_demonstration_shows_every_scene() {
    if !emulator::is_there() {
        println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_exos-machine"))
        .args(["demo", "--figures"])
        .arg(folder.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    let mut lines = said.lines();
    for words in SEEN {
        let seen = lines.any(|line| line.contains(words));
        assert!(seen, "{words} is not there, or not in this order:\n{said}");
    }
}
