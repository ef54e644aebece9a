//! GCC's own tests that run a program, out of Debian's package of its source.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::directives;
use crate::place::{PlaceError, cached};
use crate::program::Program;

const SOURCE: &str = "/usr/src/gcc-12";
const PACKAGE: &str = "gcc-12-source";
const TESTSUITE: &str = "gcc/testsuite";

/// What is unpacked: the tests, and what they include.
const UNPACKED: [&str; 3] = ["gcc.c-torture/execute", "gcc.dg", "g++.dg/torture"];

/// What `builtins.exp` adds: the tests look at the calls that are left, so some optimisations would
/// be in the way.
const BUILTINS_FLAGS: &[&str] = &[
    "-fno-tree-dse",
    "-fno-tree-loop-distribute-patterns",
    "-fno-tracer",
    "-fno-ipa-ra",
    "-fno-inline-functions",
];

/// A folder of tests.
struct Group {
    /// What the names of its tests begin with.
    prefix: &'static str,
    folder: &'static str,
    extension: &'static str,
    flags: &'static [&'static str],
    /// Whether only those that say `dg-do run` are programs.
    says_run: bool,
}

const GROUPS: &[Group] = &[
    Group {
        prefix: "",
        folder: "gcc.c-torture/execute",
        extension: "c",
        flags: &[],
        says_run: false,
    },
    Group {
        prefix: "ieee/",
        folder: "gcc.c-torture/execute/ieee",
        extension: "c",
        flags: &["-fno-inline"],
        says_run: false,
    },
    Group {
        prefix: BUILTINS,
        folder: "gcc.c-torture/execute/builtins",
        extension: "c",
        flags: BUILTINS_FLAGS,
        says_run: false,
    },
    Group {
        prefix: "dg/",
        folder: "gcc.dg/torture",
        extension: "c",
        flags: &[],
        says_run: true,
    },
    Group {
        prefix: "g++/",
        folder: "g++.dg/torture",
        extension: "C",
        flags: &[],
        says_run: true,
    },
];
const BUILTINS: &str = "builtins/";

/// One test: its name in the suite and what to build.
#[derive(Clone, Debug)]
pub struct Test {
    /// The group and the file's name without the extension.
    pub name: String,
    /// Whether it is beyond `gcc.c-torture`, the usual part.
    pub more: bool,
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

/// The folder of the tests, unpacked at first use.
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
    let unpacked = cached(&format!("tests-{version}"), |folder| {
        let output = Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("-C")
            .arg(folder)
            .args(["--strip-components=1", "--wildcards"])
            .args(UNPACKED.map(|folder| format!("*/{TESTSUITE}/{folder}")))
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
    Ok(unpacked.join(TESTSUITE))
}

/// All tests, in the order of their names.
///
/// # Errors
/// The package is not there, or cannot be unpacked.
pub fn tests() -> Result<Vec<Test>, PlaceError> {
    let root = folder()?;
    let mut tests = Vec::new();
    for group in GROUPS {
        let folder = root.join(group.folder);
        for entry in std::fs::read_dir(&folder).map_err(PlaceError::file(&folder))? {
            let path = entry.map_err(PlaceError::file(&folder))?.path();
            if path.extension().is_some_and(|e| e == group.extension) {
                tests.extend(test(group, &folder, path)?);
            }
        }
    }
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tests)
}

/// The test that begins with the source `path`, if it is one.
fn test(group: &Group, folder: &Path, path: PathBuf) -> Result<Option<Test>, PlaceError> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{}{stem}", group.prefix);
    let bytes = std::fs::read(&path).map_err(PlaceError::file(&path))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut flags: Vec<String> = group.flags.iter().map(|&flag| flag.to_owned()).collect();
    flags.extend(directives::options(&text));
    if let Ok(beside) = std::fs::read_to_string(path.with_extension("x")) {
        flags.extend(directives::additional_flags(&beside));
    }
    let mut more: Vec<PathBuf> = directives::additional_sources(&text)
        .iter()
        .map(|source| folder.join(source))
        .collect();
    if group.prefix == BUILTINS {
        // These are the other half of the tests beside them.
        if stem.ends_with("-lib") {
            return Ok(None);
        }
        more.push(folder.join(format!("{stem}-lib.c")));
        more.push(folder.join("lib/main.c"));
    }
    if group.says_run && !directives::runs(&text) {
        return Ok(None);
    }
    let mut sources = vec![path];
    sources.extend(more);
    Ok(Some(Test {
        name,
        more: group.says_run,
        sources,
        flags,
    }))
}
