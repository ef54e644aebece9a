//! Whether a file is up to date.
//!
//! Before a step begins, its command goes into a stamp. The result is fresh while the command is
//! the same and every file that it was made from is older than the stamp: a file that changes
//! during the step, or in the same tick of the clock, is newer or as old, and the step is done
//! again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::ProjectError;
use crate::library;
use crate::tools::Tool;

/// What the results depend on besides files and options: the rewriter and the compiler.
pub fn tools() -> String {
    let version = Tool::Gcc
        .command()
        .args(["-dumpfullversion", "-dumpmachine"])
        .text();
    format!("{:016x} {version}", library::fingerprint())
}

/// The stamp of one step.
pub struct Stamp {
    result: PathBuf,
    path: PathBuf,
    command: String,
}

impl Stamp {
    /// The step that makes `result` with `arguments`; its stamp is the file `path`.
    pub fn new(result: &Path, path: &Path, arguments: &[OsString], tools: &str) -> Stamp {
        let mut command = tools.trim().to_owned();
        for argument in arguments {
            command.push('\n');
            command.push_str(&argument.to_string_lossy());
        }
        Stamp {
            result: result.to_owned(),
            path: path.to_owned(),
            command,
        }
    }

    /// The result is there, and was made by this command.
    pub fn is_fresh(&self) -> bool {
        self.result.exists()
            && std::fs::read_to_string(&self.path).is_ok_and(|then| then == self.command)
    }

    /// As [`Stamp::is_fresh`], and what its dependency file lists is older than the stamp.
    pub fn is_fresh_with(&self, dependencies: &Path) -> bool {
        let Some(begun) = modified(&self.path) else {
            return false;
        };
        self.is_fresh()
            && std::fs::read_to_string(dependencies).is_ok_and(|text| {
                prerequisites(&text)
                    .iter()
                    .all(|path| modified(path).is_some_and(|then| then < begun))
            })
    }

    /// The step begins.
    pub fn begin(&self) -> Result<(), ProjectError> {
        std::fs::write(&self.path, &self.command).map_err(|source| ProjectError::File {
            path: self.path.clone(),
            source,
        })
    }

    /// The step failed.
    pub fn forget(&self) {
        // A stamp that stays says that a result is fresh which is not there: harmless.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// The files that a rule of make, as gcc writes it, depends on.
fn prerequisites(rule: &str) -> Vec<PathBuf> {
    let text = rule.replace("\\\n", " ");
    let Some(line) = text.lines().next() else {
        return Vec::new();
    };
    let Some((_, list)) = line.split_once(": ") else {
        return Vec::new();
    };
    let mut names = vec![String::new()];
    let mut characters = list.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        match (c, next) {
            ('\\', Some(escaped @ (' ' | '#' | '\\'))) | ('$', Some(escaped @ '$')) => {
                names.last_mut().expect("one at least").push(escaped);
                characters.next();
            }
            (' ', _) => names.push(String::new()),
            _ => names.last_mut().expect("one at least").push(c),
        }
    }
    names
        .into_iter()
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::prerequisites;
    use std::path::Path;

    #[test]
    fn rules_of_make() {
        let found = prerequisites("a.o: a.c \\\n sub/b.h my\\ file.h cost$$.h\n\nb.h:\n");
        let want = ["a.c", "sub/b.h", "my file.h", "cost$.h"];
        assert_eq!(found, want.map(|name| Path::new(name).to_owned()));
        assert!(prerequisites("").is_empty());
    }
}
