//! Lua, unmodified, in the machine and as the host's compiler makes it of the same sources.

use std::process::Command;
use std::time::Duration;

use postern_aegis_machine::emulator::{self, Machine};
use postern_exos_machine::{build, place, programs, software};

#[test]
fn a_script_prints_the_same_as_on_the_host() {
    if !emulator::is_there() {
        return println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
    }
    build::all().expect("the library and the root environment build");
    let mut lua = programs::foreign().expect("the sources of Lua");
    lua.retain(|program| program.name == "lua");
    let [program] = &lua[..] else {
        panic!("{lua:?}");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let native = folder.path().join("lua");
    let built = Command::new("gcc")
        .args(&program.flags)
        .args(&program.sources)
        .arg("-o")
        .arg(&native)
        .args(["-w", "-lm"])
        .status();
    assert!(built.expect("gcc").success());
    let scripts = place::sources().join("programs/scripts");
    let output = Command::new(&native)
        .arg("language.lua")
        .current_dir(&scripts)
        .output()
        .expect("Lua");
    let outside = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{outside}");

    let script = std::fs::read(scripts.join("language.lua")).expect("a script");
    let mut files = programs::make(&lua).expect("Lua compiles");
    files.push(("language.lua".to_owned(), script));
    files.push(("init".to_owned(), b"lua language.lua".to_vec()));
    let software = software::prepare(&files, folder.path()).expect("an archive");
    let machine = Machine {
        counted: true,
        limit: Duration::from_secs(30),
        ..Machine::default()
    };
    let ended = machine.run(&software, |_| {}).expect("a machine");
    let lines = ended.lines.iter();
    let lines = lines.skip_while(|line| !line.starts_with("aegis: "));
    let inside: Vec<&str> = lines.skip(1).map(String::as_str).collect();
    let outside: Vec<&str> = outside.lines().collect();
    assert!(ended.status.is_well(), "{}", ended.status);
    assert_eq!(inside.join("\n").trim_end(), outside.join("\n").trim_end());
}
