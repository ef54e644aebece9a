//! The package for DKMS: what is in it, and that it builds for both kernels by the command that its
//! settings name, with nothing of this tree.

mod machine;

use std::path::{Path, PathBuf};
use std::process::Command;

use machine::{kernel, script, workspace};

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}{errors}");
    said
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("text"))
        .collect();
    names.sort();
    names
}

/// What the module's sources in this tree are called.
fn sources() -> Vec<String> {
    let mut names = names(&workspace().join("kernel/linux"));
    names.retain(|name| [".c", ".h", ".S"].iter().any(|end| name.ends_with(end)));
    names
}

/// The value of a setting of dkms.conf.
fn setting(conf: &str, name: &str) -> String {
    let line = conf
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.expect(name).trim_matches('"').to_owned()
}

#[test]
fn the_package_builds_for_both_kernels() {
    let folder = tempfile::tempdir().expect("a folder");
    script("dkms.sh", &[folder.path()]);
    let version = env!("CARGO_PKG_VERSION");
    let tree = folder.path().join(format!("postern-dkms-{version}"));
    let mut wanted = sources();
    let others = [
        "Kbuild",
        "LICENSE.judge",
        "Makefile",
        "dkms.conf",
        "judge.o_shipped",
    ];
    wanted.extend(others.map(str::to_owned));
    wanted.sort();
    assert_eq!(names(&tree), wanted);
    let conf = std::fs::read_to_string(tree.join("dkms.conf")).expect("dkms.conf");
    assert_eq!(setting(&conf, "PACKAGE_VERSION"), version);
    for file in wanted.iter().filter(|name| name.ends_with(".c")) {
        let object = file.replace(".c", ".o");
        let kbuild = std::fs::read_to_string(tree.join("Kbuild")).expect("Kbuild");
        assert!(kbuild.contains(&object), "Kbuild does not build {object}");
    }
    listed(folder.path(), version, &wanted);
    for version in ["6.1", "6.12"] {
        match kernel(version) {
            Some(kernel) => built(&tree, &conf, version, &kernel.join("headers")),
            None => println!(
                "SKIPPED: no kernel {version}; `make setup-kernel` fetches it on Debian 12"
            ),
        }
    }
}

/// The package for Debian has the same files, where DKMS looks for them.
fn listed(folder: &Path, version: &str, wanted: &[String]) {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        println!("SKIPPED: no dpkg-deb here");
        return;
    }
    let package: PathBuf = folder.join(format!("postern-dkms_{version}_amd64.deb"));
    let list = run(Command::new("dpkg-deb").arg("-c").arg(&package));
    for name in wanted {
        let path = format!(" ./usr/src/postern-{version}/{name}\n");
        assert!(list.contains(&path), "{name} is not in {list}");
    }
    assert!(
        list.lines().all(|line| line.contains(" root/root ")),
        "{list}"
    );
    let control = run(Command::new("dpkg-deb").arg("-f").arg(&package));
    assert!(control.contains("Depends: dkms"), "{control}");
}

/// Builds a copy, as DKMS does.
fn built(tree: &Path, conf: &str, version: &str, headers: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("build");
    run(Command::new("cp").arg("-r").args([tree, &copy]));
    let headers = headers.to_str().expect("a path");
    let command = setting(conf, "MAKE[0]").replace("${kernel_source_dir}", headers);
    run(Command::new("sh").args(["-c", &command]).current_dir(&copy));
    let module = std::fs::read(copy.join("postern.ko")).expect("the module");
    let magic = format!("vermagic={version}.");
    let has = module
        .windows(magic.len())
        .any(|bytes| bytes == magic.as_bytes());
    assert!(has, "the module is not for {version}");
    // What the settings say of kernels is so of these.
    let name = std::fs::canonicalize(headers).expect("headers");
    let name = name
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let release = name.trim_start_matches("linux-headers-");
    let pattern = setting(conf, "BUILD_EXCLUSIVE_KERNEL");
    let grep = Command::new("sh")
        .args([
            "-c",
            "echo \"$1\" | grep -qE \"$2\"",
            "sh",
            release,
            &pattern,
        ])
        .status();
    assert!(grep.expect("grep").success(), "{release} is not {pattern}");
}
