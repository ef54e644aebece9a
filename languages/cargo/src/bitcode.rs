//! cargo, with the options under which one file of bitcode holds the crate and all that it uses.

use std::path::PathBuf;
use std::process::Command;

use crate::build::Build;
use crate::error::Error;

/// The target: std's own libraries for it hold bitcode.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What of a crate is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Its library, or a program of it.
    Crate,
    /// The program of its unit tests.
    Tests,
}

/// What there is to build.
pub struct Target {
    /// Its name, which cargo knows.
    pub name: String,
    /// It is a program.
    pub program: bool,
    /// The folder of what is built.
    pub folder: PathBuf,
}

/// Options of the compiler: fixed offsets, and no use of what is below the stack pointer.
const FLAGS: &[&str] = &[
    "-Crelocation-model=static",
    "-Ccode-model=small",
    "-Cno-redzone=yes",
    "-Cembed-bitcode=yes",
    "--cfg=postern",
    "--check-cfg=cfg(postern)",
];

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Asks cargo what is to be built.
pub fn target(build: &Build) -> Result<Target, Error> {
    let mut command = cargo();
    command.args(["metadata", "--format-version=1", "--no-deps"]);
    if let Some(path) = &build.manifest_path {
        command.arg("--manifest-path").arg(path);
    }
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(start)?;
    if !output.status.success() {
        return Err(Error::Told);
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Error::Other(format!("what cargo says of the crate: {error}")))?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let folder = PathBuf::from(text(&metadata["target_directory"]));
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let package = match (&build.package, packages.as_slice()) {
        (Some(name), all) => all.iter().find(|package| text(&package["name"]) == *name),
        (None, [one]) => Some(one),
        (None, all) => {
            let root = text(&metadata["workspace_default_members"][0]);
            all.iter().find(|package| text(&package["id"]) == root)
        }
    };
    let package = package.ok_or_else(|| {
        Error::Other(
            "there is no such crate here; name one of the workspace by --package".to_owned(),
        )
    })?;
    let targets = package["targets"].as_array().cloned().unwrap_or_default();
    let of = |kinds: &[&str]| -> Vec<String> {
        let is = |target: &&serde_json::Value| {
            let kind = text(&target["kind"][0]);
            kinds.contains(&kind.as_str())
        };
        targets
            .iter()
            .filter(is)
            .map(|target| text(&target["name"]))
            .collect()
    };
    let libraries = of(&["lib", "rlib", "staticlib", "cdylib"]);
    let programs = of(&["bin"]);
    let (name, program) = match (&build.bin, libraries.as_slice(), programs.as_slice()) {
        (Some(bin), ..) => (bin.clone(), true),
        (None, [library, ..], _) => (library.clone(), false),
        (None, [], [program]) => (program.clone(), true),
        (None, [], []) => {
            return Err(Error::Other(
                "the crate has no library and no program".to_owned(),
            ));
        }
        (None, [], _) => {
            return Err(Error::Other(
                "the crate has several programs; name one by --bin".to_owned(),
            ));
        }
    };
    Ok(Target {
        name,
        program,
        folder: folder.join("postern"),
    })
}

/// Has cargo write the bitcode.
pub fn write(build: &Build, target: &Target, kind: Kind) -> Result<PathBuf, Error> {
    std::fs::create_dir_all(&target.folder).map_err(Error::file(&target.folder))?;
    let tests = kind == Kind::Tests;
    let suffix = if tests { "-tests" } else { "" };
    let file = target.folder.join(format!("{}{suffix}.bc", target.name));
    let profile = if tests { "test" } else { "release" };
    let mut command = cargo();
    command.args(["rustc", "--target", TARGET, "--profile", profile]);
    command.arg("--target-dir").arg(target.folder.join("cargo"));
    if let Some(path) = &build.manifest_path {
        command.arg("--manifest-path").arg(path);
    }
    if let Some(package) = &build.package {
        command.args(["--package", package]);
    }
    if let Some(features) = &build.features {
        command.args(["--features", features]);
    }
    if build.no_default_features {
        command.arg("--no-default-features");
    }
    match (target.program, tests) {
        (true, _) => drop(command.args(["--bin", &target.name])),
        (false, true) => drop(command.arg("--lib")),
        // Only for such a library are the others taken in, std among them.
        (false, false) => drop(command.args(["--lib", "--crate-type", "staticlib"])),
    }
    for setting in [
        "lto=\"fat\"".to_owned(),
        "codegen-units=1".to_owned(),
        // Signatures are read from there; of libraries, lines are enough.
        "debug=2".to_owned(),
        "package.\"*\".debug=\"line-tables-only\"".to_owned(),
    ] {
        command.args(["--config", &format!("profile.{profile}.{setting}")]);
    }
    if tests {
        command.args(["--config", "profile.test.opt-level=2"]);
    }
    let own = crate::library::library()?;
    command.args([
        "--config",
        &format!(
            "patch.crates-io.postern-extension.path={:?}",
            own.display().to_string()
        ),
    ]);
    command
        .arg("--")
        .arg(format!("--emit=llvm-bc={}", file.display()));
    let mut flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
    flags.extend(
        build
            .march
            .iter()
            .map(|name| format!("-Ctarget-cpu={name}")),
    );
    command.env_remove("RUSTFLAGS");
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    let status = command.status().map_err(start)?;
    if !status.success() {
        return Err(Error::Told);
    }
    if !file.is_file() {
        return Err(Error::Other(format!(
            "{}: cargo did not write this bitcode; remove {} and build again",
            file.display(),
            target.folder.display()
        )));
    }
    Ok(file)
}

fn start(source: std::io::Error) -> Error {
    Error::Start {
        program: "cargo".to_owned(),
        source,
    }
}
