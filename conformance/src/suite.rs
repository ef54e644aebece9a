//! GCC's own execution tests, out of Debian's package of its source.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::directives;
use crate::place::{PlaceError, cached};
use crate::program::Program;

const SOURCE: &str = "/usr/src/gcc-12";
const PACKAGE: &str = "gcc-12-source";
const EXECUTE: &str = "gcc/testsuite/gcc.c-torture/execute";

/// What `builtins.exp` adds: the tests look at the calls that are left, so some optimisations would be in the way.
const BUILTINS_FLAGS: &[&str] = &[
    "-fno-tree-dse",
    "-fno-tree-loop-distribute-patterns",
    "-fno-tracer",
    "-fno-ipa-ra",
    "-fno-inline-functions",
];

/// One test: its name in the suite and what to build.
#[derive(Clone, Debug)]
pub struct Test {
    /// Path below `execute`, without the extension.
    pub name: String,
    sources: Vec<PathBuf>,
    flags: Vec<String>,
}

impl Test {
    /// The test's program with the options of a set and those for the confined build.
    pub fn program(&self, options: &[&str], confined: &[String]) -> Program {
        let mut flags = vec!["-w".to_owned()];
        flags.extend(options.iter().map(|&o| o.to_owned()));
        flags.extend(self.flags.iter().cloned());
        Program {
            sources: self.sources.clone(),
            flags,
            confined: confined.to_vec(),
            seconds: 20,
        }
    }
}

/// The folder `execute`, unpacked at first use.
fn folder() -> Result<PathBuf, PlaceError> {
    let missing = || PlaceError::Missing {
        what: "the source of GCC",
        path: format!("{SOURCE}/gcc-*.tar.xz"),
        package: PACKAGE,
    };
    let archive = std::fs::read_dir(SOURCE)
        .map_err(|_| missing())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("gcc-") && name.contains(".tar.")
        })
        .ok_or_else(missing)?;
    let version = archive.file_name().unwrap_or_default().to_string_lossy();
    let version = version.split(".tar").next().unwrap_or_default();
    let unpacked = cached(&format!("torture-{version}"), |folder| {
        let output = Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("-C")
            .arg(folder)
            .args(["--strip-components=1", "--wildcards"])
            .arg(format!("*/{EXECUTE}"))
            .output()
            .map_err(PlaceError::file(&archive))?;
        if output.status.success() {
            return Ok(());
        }
        Err(PlaceError::Command {
            command: "tar",
            messages: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    })?;
    Ok(unpacked.join(EXECUTE))
}

/// All tests, in the order of their names.
///
/// # Errors
/// The package is not there, or cannot be unpacked.
pub fn tests() -> Result<Vec<Test>, PlaceError> {
    let root = folder()?;
    let mut tests = Vec::new();
    for (group, flags) in [
        ("", &[][..]),
        ("ieee", &["-fno-inline"][..]),
        ("builtins", BUILTINS_FLAGS),
    ] {
        let folder = root.join(group);
        for entry in std::fs::read_dir(&folder).map_err(PlaceError::file(&folder))? {
            let path = entry.map_err(PlaceError::file(&folder))?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            if path.extension().is_none_or(|extension| extension != "c") || stem.ends_with("-lib") {
                continue;
            }
            let name = if group.is_empty() {
                stem.clone().into_owned()
            } else {
                format!("{group}/{stem}")
            };
            let mut sources = vec![path.clone()];
            if group == "builtins" {
                sources.push(folder.join(format!("{stem}-lib.c")));
                sources.push(folder.join("lib/main.c"));
            }
            let mut all: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
            all.extend(flags_of(&path)?);
            tests.push(Test {
                name,
                sources,
                flags: all,
            });
        }
    }
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tests)
}

/// The options that a test asks for, in itself and in the Tcl file beside it.
fn flags_of(test: &Path) -> Result<Vec<String>, PlaceError> {
    let text = std::fs::read(test).map_err(PlaceError::file(test))?;
    let mut flags = directives::options(&String::from_utf8_lossy(&text));
    if let Ok(beside) = std::fs::read_to_string(test.with_extension("x")) {
        flags.extend(directives::additional_flags(&beside));
    }
    Ok(flags)
}
