//! SQLite's shell, unmodified, on files in the machine: the same as the host's compiler makes it of the
//! same sources. Two that write wait for each other, and who dies in the middle leaves nothing of it.

use std::process::Command;
use std::time::Duration;

use postern_aegis_machine::emulator::{self, Machine};
use postern_exos_machine::{build, place, programs, software};

#[test]
fn a_database_is_the_same_as_on_the_host() {
    if !emulator::is_there() {
        return println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
    }
    build::all().expect("the library and the root environment build");
    let mut all = programs::foreign().expect("the sources of SQLite");
    all.retain(|program| program.name == "sqlite3");
    let [sqlite] = &all[..] else {
        panic!("{all:?}");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path().join("work");
    std::fs::create_dir(&work).expect("a folder");
    // It takes a minute to be optimized, and does the same without.
    let flags = sqlite.flags.iter().filter(|flag| !flag.starts_with("-O"));
    let built = Command::new("gcc")
        .args(flags)
        .args(&sqlite.sources)
        .arg("-o")
        .arg(folder.path().join("sqlite3"))
        .args(["-w", "-lm"])
        .status();
    assert!(built.expect("gcc").success());
    let sql = place::sources().join("../../examples/sqlite/tests/library.sql");
    let script = place::sources().join("programs/scripts/database.sh");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = Command::new("timeout")
        .args(["120", "sh"])
        .arg(&script)
        .current_dir(&work)
        .env("FILES", sql.parent().expect("a folder"))
        .env("PATH", path)
        .env("LC_ALL", "C")
        .output()
        .expect("a shell");
    let outside = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{outside}");

    all.extend(programs::commands().expect("the tools"));
    all.extend(programs::of("services").expect("the services"));
    let mut files = programs::make(&all).expect("they compile");
    for (name, path) in [("library.sql", sql), ("database.sh", script)] {
        files.push((name.to_owned(), std::fs::read(path).expect("a file")));
    }
    // The service may be later than the shell.
    let begin =
        b"export HOME=/ FILES=/bin\nuntil cd /tmp 2>/dev/null; do sleep 0.2; done\n. /bin/database.sh\n";
    files.push(("begin".to_owned(), begin.to_vec()));
    files.push(("init".to_owned(), b"sh begin".to_vec()));
    files.push(("services.list".to_owned(), b"ramd /tmp\n".to_vec()));
    let software = software::prepare(&files, folder.path()).expect("an archive");
    let machine = Machine {
        memory: 256,
        limit: Duration::from_secs(200),
        ..Machine::default()
    };
    let ended = machine
        .run(&software, |line| println!("{line}"))
        .expect("a machine");
    let lines = ended.lines.iter();
    let lines = lines.skip_while(|line| !line.starts_with("aegis: "));
    let inside: Vec<&str> = lines.skip(1).map(|line| line.trim_end()).collect();
    let outside: Vec<&str> = outside.lines().map(str::trim_end).collect();
    assert_eq!(inside.join("\n").trim_end(), outside.join("\n").trim_end());
    assert!(ended.status.is_well(), "{}", ended.status);
}
