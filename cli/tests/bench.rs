//! `postern bench`: its own groups, and those of the program that it hands over to.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// The command in a folder of its own, so that no other program is found but what a test puts
/// there.
struct Alone(TempDir);

impl Alone {
    fn new() -> Alone {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::hard_link(env!("CARGO_BIN_EXE_postern"), folder.path().join("postern")).unwrap();
        Alone(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("postern")
    }

    /// A program with all groups that prints what it is given.
    fn with_others(self) -> Alone {
        let file = self.0.path().join("postern-bench");
        std::fs::write(&file, "#!/bin/sh\necho \"$POSTERN\" \"$@\"\nexit 1\n").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        self
    }

    fn bench(&self, arguments: &[&str]) -> Output {
        Command::new(self.file())
            .arg("bench")
            .args(arguments)
            .env("PATH", "/nowhere")
            .output()
            .unwrap()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn own_groups_are_measured_without_another_program() {
    let run = Alone::new().bench(&["fault", "fault.caught", "--json"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let rows: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["name"], "fault.caught");
    assert_eq!(rows[0]["goal"], "ratio_at_most");
    assert!(rows[0]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn groups_are_drawn() {
    let alone = Alone::new();
    let folder = alone.0.path().to_str().unwrap();
    let run = alone.bench(&["sharing.data", "--plot", folder]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let picture = std::fs::read_to_string(alone.0.path().join("sharing-data.svg")).unwrap();
    assert!(picture.contains("common domain"));
    assert!(picture.starts_with("<svg"));
    // What was not asked for is not drawn; what cannot be written is told.
    assert!(!alone.0.path().join("sharing-instructions.svg").exists());
    let run = alone.bench(&["sharing.data", "--plot", "/nowhere"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(text(&run.stderr).contains("/nowhere/sharing-data.svg"));
}

#[test]
fn where_the_other_program_is_missing_one_line_says_how_it_is_made() {
    let alone = Alone::new();
    for arguments in [&["ecode"][..], &["gates", "ecode.call"], &["--all"]] {
        let run = alone.bench(arguments);
        assert_eq!(run.status.code(), Some(2), "{arguments:?}");
        let said = text(&run.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("make bench-build"), "{said}");
        assert!(run.stdout.is_empty());
    }
    let run = alone.bench(&["--list"]);
    assert_eq!(run.status.code(), Some(0));
    let names = text(&run.stdout).lines().map(|line| line.split(' ').next());
    let names: Vec<&str> = names.map(Option::unwrap).collect();
    assert_eq!(
        names,
        [
            "gates",
            "kernels",
            "domains",
            "pools",
            "sharing",
            "upcalls",
            "interpose",
            "fault"
        ]
    );
    assert!(text(&run.stderr).contains("make bench-build"));
}

#[test]
fn other_groups_are_handed_on_with_all_arguments() {
    let alone = Alone::new().with_others();
    for arguments in [
        &["gates", "ecode", "--json"][..],
        &["gat"],
        &["--all", "--check"],
        &["--list"],
    ] {
        let run = alone.bench(arguments);
        assert_eq!(run.status.code(), Some(1), "{arguments:?}");
        let wanted = format!("{} {}\n", alone.file().display(), arguments.join(" "));
        assert_eq!(text(&run.stdout), wanted);
    }
}
