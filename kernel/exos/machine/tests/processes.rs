//! Tools that say what processes there are and what they have, and those that end them all.

use std::time::Duration;

use postern_aegis_machine::emulator::{self, Ended, Machine};
use postern_aegis_machine::status::Status;
use postern_exos_abi::request::AGAIN;
use postern_exos_machine::{build, place, programs, software};

/// Boots a shell with a script of the archive, or with lines that are typed.
fn boot(script: &str, rc: Option<&str>, typed: &str, processors: u32) -> Option<Ended> {
    if !emulator::is_there() {
        println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
        return None;
    }
    build::all().expect("the library and the root environment build");
    let commands = programs::commands().expect("the tools");
    let mut files = programs::make(&commands).expect("they compile");
    let line: &[u8] = match script {
        "" => b"sh -l",
        _ => b"sh script",
    };
    files.push(("init".to_owned(), line.to_vec()));
    files.push(("script".to_owned(), script.as_bytes().to_vec()));
    files.extend(rc.map(|text| ("rc".to_owned(), text.as_bytes().to_vec())));
    let folder = tempfile::tempdir().expect("a folder");
    let software = software::prepare(&files, folder.path()).expect("an archive");
    let machine = Machine {
        processors,
        typed: typed.to_owned(),
        limit: Duration::from_secs(120),
        ..Machine::default()
    };
    Some(machine.run(&software, |_| {}).expect("a machine"))
}

/// What was said behind the kernel's own line.
fn said(ended: &Ended) -> Vec<&str> {
    let lines = ended.lines.iter().map(|line| line.trim_end());
    lines
        .skip_while(|line| !line.starts_with("aegis: "))
        .skip(1)
        .collect()
}

#[test]
fn tools_say_who_runs() {
    let script = place::sources().join("programs/scripts/processes.sh");
    let script = std::fs::read_to_string(script).expect("a script");
    for processors in [1, 2] {
        let Some(ended) = boot(&script, None, "", processors) else {
            return;
        };
        let said = said(&ended);
        let told = said.join("\n");
        let expected = "\
1
sleep: R
2
it spins
it waits
143
1
stopped: T
137
pages
MiB
up
/bin/ls
/bin/sh
1
exos
ExOS
real
user
sys";
        let (front, back) = said.split_at(said.len().saturating_sub(2).min(20));
        assert_eq!(front.join("\n"), expected, "{told}");
        let times = back
            .first()
            .is_some_and(|line| line.contains(" seconds, ") && line.ends_with(" slices)"));
        assert!(
            times && back.last() == Some(&"ls [-la1d] [NAME...]"),
            "{told}"
        );
        assert!(ended.status.is_well(), "{}", ended.status);
    }
}

#[test]
fn the_machine_stops_and_begins_again_when_it_is_told() {
    for (tool, status) in [("poweroff", 0), ("reboot", AGAIN)] {
        let script = format!("sleep 1000 &\n(echo in a child; {tool})\nsleep 1000\n");
        let Some(ended) = boot(&script, None, "", 1) else {
            return;
        };
        assert_eq!(ended.status, Status::Stopped(status), "{:#?}", ended.lines);
        assert_eq!(said(&ended), ["in a child"]);
    }
}

/// What is done at the beginning is done in the shell that asks then; what fails there does not end
/// it.
#[test]
fn a_script_runs_before_the_first_prompt() {
    let rc =
        "echo begins\nexport NAME=value\nf() { echo f $1; }\nnosuch\n: ${x?unset}\necho goes on\n";
    let Some(ended) = boot("", Some(rc), "\n\n\nf $NAME\nexit 5\n", 1) else {
        return;
    };
    let told = said(&ended).join("\n");
    assert!(
        told.starts_with("begins\nsh: nosuch: not found\n"),
        "{told}"
    );
    assert!(
        told.contains("\ngoes on\n") && told.contains("\nf value\n"),
        "{told}"
    );
    assert_eq!(ended.status, Status::Stopped(5));
}
