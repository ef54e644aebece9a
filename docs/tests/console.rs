//! Console blocks are run, command by command, and must print what their page shows.
//!
//! Each page gets a directory with the files that its blocks name. `postern`, postern.h and
//! libpostern are found there as after `make install`.

use postern_docs::{output, page, scratch, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What the commands of the pages find installed: builds it, and returns the directory of the
/// binaries.
fn installed() -> &'static Path {
    static BINARIES: OnceLock<PathBuf> = OnceLock::new();
    BINARIES.get_or_init(build)
}

fn build() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    // target/PROFILE/deps/console-…
    let binaries = executable.ancestors().nth(2).unwrap().to_owned();
    // Whoever built all of it says so: built alone, the command has other features, and is compiled
    // again with all below it.
    if std::env::var_os("POSTERN_BUILT").is_some() {
        return binaries;
    }
    let mut build = Command::new(env!("CARGO"));
    build
        .args([
            "build",
            "--quiet",
            "-p",
            "postern-cli",
            "-p",
            "postern-capi",
        ])
        .current_dir(workspace());
    build.env("CARGO_TARGET_DIR", binaries.parent().unwrap());
    if binaries.ends_with("release") {
        build.arg("--release");
    }
    assert!(
        build.status().unwrap().success(),
        "the command and the library do not build"
    );
    binaries
}

/// A directory that has libpostern.so, as `make install` names it.
fn library(binaries: &Path) -> PathBuf {
    let directory = scratch("library");
    for name in ["libpostern.so", "libpostern.so.0"] {
        std::os::unix::fs::symlink(binaries.join("libpostern_capi.so"), directory.join(name))
            .unwrap();
    }
    directory
}

#[test]
fn commands_print_what_the_pages_show() {
    let binaries = installed();
    let library = library(binaries);
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let root = workspace();
    let (mut commands, mut wrong) = (0, Vec::new());
    for page in page::pages(&root) {
        let markdown = std::fs::read_to_string(root.join(&page)).unwrap();
        let blocks = page::blocks(&markdown);
        if !blocks
            .iter()
            .any(|b| b.language() == "console" && !b.has("norun"))
        {
            continue;
        }
        let directory = scratch(&format!("console-{}", page.display()));
        std::os::unix::fs::symlink(root.join("examples"), directory.join("examples")).unwrap();
        for block in &blocks {
            if let Some(file) = block.file() {
                std::fs::write(directory.join(file), &block.text).unwrap();
            }
        }
        for block in blocks
            .iter()
            .filter(|b| b.language() == "console" && !b.has("norun"))
        {
            for (command, expected) in steps(&block.text) {
                commands += 1;
                let run = Command::new("timeout")
                    .args(["60", "bash", "-c", &format!("exec 2>&1; {command}")])
                    .current_dir(&directory)
                    .env("PATH", &path)
                    .env("CPATH", root.join("capi/include"))
                    .env("LIBRARY_PATH", &library)
                    .env("LD_LIBRARY_PATH", &library)
                    .env("NO_COLOR", "1")
                    .output()
                    .unwrap();
                let found = String::from_utf8_lossy(&run.stdout);
                if let Some(difference) = output::difference(&expected, &found) {
                    wrong.push(format!(
                        "{}:{}: $ {command}\n{difference}",
                        page.display(),
                        block.line
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(commands > 20, "only {commands} commands were found");
}

/// Commands and what they print. A command goes on in the next line after a backslash.
fn steps(text: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut continued = false;
    for line in text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) if !continued => steps.push((command.to_owned(), String::new())),
            (_, Some((command, _))) if continued => {
                command.push('\n');
                command.push_str(line);
            }
            (_, Some((_, output))) => {
                output.push_str(line);
                output.push('\n');
            }
            _ => panic!("a console block begins with a command: {text}"),
        }
        let last = steps.last().unwrap();
        continued = last.1.is_empty() && last.0.ends_with('\\');
    }
    steps
}

#[test]
fn every_option_is_listed() {
    let page = std::fs::read_to_string(workspace().join("docs/src/reference/cli.md")).unwrap();
    let help = |arguments: &[&str]| {
        let output = Command::new(installed().join("postern"))
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let top = help(&["--help"]);
    let commands = top
        .split("Commands:")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    let mut options = 0;
    for command in commands
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|c| *c != "help")
    {
        assert!(
            page.contains(&format!("`postern {command}`")),
            "reference/cli.md lacks the command {command}"
        );
        if matches!(command, "cc" | "c++") {
            continue;
        }
        for line in help(&[command, "--help"]).lines() {
            let line = line.trim_start();
            let option = line
                .split_whitespace()
                .find(|w| w.starts_with("--") && w.len() > 2);
            if let Some(option) = option.filter(|o| line.starts_with('-') && *o != "--help") {
                options += 1;
                // Dots say that it may be repeated.
                let option = option.trim_end_matches('.');
                assert!(
                    page.contains(option),
                    "reference/cli.md lacks {option} of {command}"
                );
            }
        }
    }
    assert!(options > 10, "only {options} options were found");
}
