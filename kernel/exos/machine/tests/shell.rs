//! The shell and its tools beside those of the host: the same scripts print the same.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
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

/// Who runs scripts here if this is run by root: limits of processes are not for root.
const NOBODY: u32 = 65534;

/// Processes and threads of this machine, with room for a script's. Where a script forks without
/// end, it fails at this.
fn processes() -> usize {
    let text = std::fs::read_to_string("/proc/loadavg").expect("the kernel's figures");
    let all = text.split([' ', '/']).nth(4);
    all.and_then(|all| all.parse::<usize>().ok())
        .map_or(1000, |all| all + 300)
}

/// What a shell prints for a script, and whether it ends well. A script that does not end is ended
/// with all that it started.
fn answer(shell: &Path, script: &str) -> (String, bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let (work, programs) = (folder.path().join("work"), folder.path().join("programs"));
    for path in [&work, &programs] {
        std::fs::create_dir(path).expect("a folder");
    }
    // Where a script calls `sh`, it is the same.
    symlink(shell, programs.join("sh")).expect("a link");
    let file = folder.path().join("script");
    std::fs::write(&file, script).expect("a file");
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--nproc={}", processes()))
        .args(["timeout", "--signal=KILL", "20"])
        .args([shell, &file])
        .current_dir(&work)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("HOME", "/")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    if std::fs::metadata(folder.path()).expect("a folder").uid() == 0 {
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("rights");
        chown(&work, Some(NOBODY), Some(NOBODY)).expect("a folder of theirs");
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().expect("prlimit of util-linux");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.success())
}

/// Three hundred small scripts, which the shell runs as a program of this machine. Its errors have
/// other words, and their numbers are not compared.
#[test]
fn hostile_scripts_do_what_they_do_in_another_shell() {
    let other = Path::new("/usr/bin/dash");
    if !other.exists() {
        return println!("SKIPPED: no dash");
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("rights");
    let shell = folder.path().join("sh");
    let commands = programs::of("shell").expect("the shell");
    let program = commands.iter().find(|program| program.name == "sh");
    let built = Command::new("gcc")
        .args([
            "-O1",
            "-g",
            "-fsanitize=undefined",
            "-fno-sanitize-recover=all",
        ])
        .args(&program.expect("the shell").flags)
        .args(&program.expect("the shell").sources)
        .arg("-o")
        .arg(&shell)
        .status();
    assert!(built.expect("gcc").success());
    let path = place::sources().join("programs/scripts/language.cases");
    let cases = std::fs::read_to_string(path).expect("the scripts");
    let mut wrong = String::new();
    for case in cases.split("\n---\n") {
        let [ours, theirs] = [shell.as_path(), other].map(|shell| answer(shell, case));
        if ours != theirs {
            wrong += &format!("{case}\n--- {ours:?}\n--- {theirs:?}\n\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
