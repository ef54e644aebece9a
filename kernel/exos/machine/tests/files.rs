//! Files of a server in the guest, as a shell and its tools make, read and change them.

use std::process::Command;
use std::time::Duration;

use postern_aegis_machine::emulator::{self, Machine};
use postern_exos_machine::{build, place, programs, software};

/// What a script prints below `/tmp` in the machine, and in an empty folder here.
fn both(name: &str) -> [String; 2] {
    let path = place::sources().join("programs/scripts").join(name);
    let script = std::fs::read(&path).expect("a script");
    let mut all = programs::commands().expect("the tools");
    all.extend(programs::of("services").expect("the services"));
    let mut files = programs::make(&all).expect("they compile");
    let begin = b"cd /tmp && . /bin/script".to_vec();
    files.push(("init".to_owned(), b"sh begin".to_vec()));
    files.push(("begin".to_owned(), begin));
    files.push(("script".to_owned(), script));
    files.push(("services.list".to_owned(), b"ramd /tmp\n".to_vec()));
    let folder = tempfile::tempdir().expect("a folder");
    let software = software::prepare(&files, folder.path()).expect("an archive");
    let machine = Machine {
        counted: true,
        limit: Duration::from_secs(120),
        ..Machine::default()
    };
    let ended = machine.run(&software, |_| {}).expect("a machine");
    let lines = ended.lines.iter();
    let lines = lines.skip_while(|line| !line.starts_with("aegis: "));
    let inside: Vec<&str> = lines.skip(1).map(String::as_str).collect();
    let work = tempfile::tempdir().expect("a folder");
    let output = Command::new("sh")
        .arg(&path)
        .current_dir(work.path())
        .env("LC_ALL", "C")
        .output()
        .expect("a shell");
    let outside = String::from_utf8_lossy(&output.stdout);
    [inside.join("\n"), outside.into_owned()]
}

#[test]
fn files_in_memory_are_as_those_of_linux() {
    if !emulator::is_there() {
        return println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
    }
    build::all().expect("the library and the root environment build");
    let [inside, outside] = both("files.sh");
    assert_eq!(inside.trim_end(), outside.trim_end());
}
