//! The shell and its tools beside those of the host: the same scripts print the same.

use std::process::Command;
use std::time::Duration;

use postern_aegis_machine::emulator::{self, Machine};
use postern_exos_machine::{build, place, programs, software};

/// What a script prints in the machine, and what it prints here.
fn both(name: &str) -> [String; 2] {
    let path = place::sources().join("programs/scripts").join(name);
    let script = std::fs::read(&path).expect("a script");
    let commands = programs::commands().expect("the tools");
    let mut files = programs::make(&commands).expect("they compile");
    files.push(("init".to_owned(), b"sh script".to_vec()));
    files.push(("script".to_owned(), script));
    let folder = tempfile::tempdir().expect("a folder");
    let software = software::prepare(&files, folder.path()).expect("an archive");
    let machine = Machine {
        counted: true,
        limit: Duration::from_secs(60),
        ..Machine::default()
    };
    let ended = machine.run(&software, |_| {}).expect("a machine");
    // Behind the kernel's own line.
    let lines = ended
        .lines
        .iter()
        .skip_while(|line| !line.starts_with("aegis: "));
    let inside: Vec<&str> = lines.skip(1).map(String::as_str).collect();
    let output = Command::new("sh")
        .arg(&path)
        .current_dir(folder.path())
        .env("LC_ALL", "C")
        .output()
        .expect("a shell");
    let outside = String::from_utf8_lossy(&output.stdout);
    let outside: Vec<&str> = outside.lines().collect();
    [inside.join("\n"), outside.join("\n")]
}

fn same(name: &str) {
    if !emulator::is_there() {
        return println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
    }
    build::all().expect("the library and the root environment build");
    let [inside, outside] = both(name);
    assert_eq!(inside.trim_end(), outside.trim_end(), "{name}");
}

#[test]
fn scripts_print_what_another_shell_prints() {
    same("language.sh");
}

#[test]
fn tools_print_what_gnu_prints() {
    same("tools.sh");
}
