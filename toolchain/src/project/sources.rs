//! From the patterns of a description to the files that are compiled, each with its options.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::ProjectError;
use super::manifest::{self, FILE_NAME, Manifest};

/// A source and how it is compiled.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The file.
    pub path: PathBuf,
    /// As messages name it: relative to the project or its crate.
    pub name: String,
    /// The object's file name.
    pub object: String,
    /// Options of the compiler.
    pub flags: Vec<OsString>,
    /// It is C++.
    pub is_cxx: bool,
}

const CXX: &[&str] = &["cc", "cp", "cxx", "cpp", "CPP", "c++", "C"];

/// All sources, in the order of the description; the files of one pattern are sorted.
pub fn units(
    folder: &Path,
    manifest: &Manifest,
    crates: &BTreeMap<String, PathBuf>,
) -> Result<Vec<Unit>, ProjectError> {
    let paths = Paths { folder, crates };
    let extension = &manifest.extension;
    let default = vec!["-O2".to_owned()];
    let common = extension.flags.as_ref().unwrap_or(&default);
    let groups = std::iter::once((&extension.sources, &[][..], &[][..])).chain(
        manifest
            .source
            .iter()
            .map(|s| (&s.files, &s.include[..], &s.flags[..])),
    );
    let mut units = Vec::new();
    let mut seen = BTreeSet::new();
    for (patterns, include, own) in groups {
        let mut flags = Vec::new();
        for flag in common.iter().chain(own) {
            flags.push(OsString::from(paths.expand(flag)?));
        }
        for folder in include.iter().chain(&extension.include) {
            flags.push("-I".into());
            flags.push(paths.join(folder)?.into_os_string());
        }
        for path in paths.matches(patterns)? {
            if !seen.insert(path.clone()) {
                continue;
            }
            let mut hasher = DefaultHasher::new();
            path.hash(&mut hasher);
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            units.push(Unit {
                name: paths.name(&path),
                object: format!("{stem}-{:08x}.o", hasher.finish() as u32),
                flags: flags.clone(),
                is_cxx: path
                    .extension()
                    .and_then(|e| e.to_str())
                    .is_some_and(|e| CXX.contains(&e)),
                path,
            });
        }
    }
    Ok(units)
}

struct Paths<'a> {
    folder: &'a Path,
    crates: &'a BTreeMap<String, PathBuf>,
}

impl Paths<'_> {
    fn error(&self, about: &str, message: String) -> ProjectError {
        let path = self.folder.join(FILE_NAME);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let line = text.lines().position(|line| line.contains(about));
        ProjectError::Manifest {
            line: line.map_or_else(|| manifest::line_of(&text, "[extension]"), |n| n + 1),
            path,
            message,
        }
    }

    /// `text` with each `${crate}` replaced by its folder.
    fn expand(&self, text: &str) -> Result<String, ProjectError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else {
                let message = format!("`{text}`: the `}}` after `${{` is missing");
                return Err(self.error(text, message));
            };
            let name = &rest[start + 2..start + length];
            let Some(folder) = self.crates.get(name) else {
                let message =
                    format!("`${{{name}}}` names no crate; add it: [crates] {name} = \"VERSION\"");
                return Err(self.error(text, message));
            };
            out.push_str(&rest[..start]);
            out.push_str(&folder.to_string_lossy());
            rest = &rest[start + length + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    fn join(&self, path: &str) -> Result<PathBuf, ProjectError> {
        Ok(self.folder.join(self.expand(path)?))
    }

    /// The files that the patterns match, less those after `!`.
    fn matches(&self, patterns: &[String]) -> Result<Vec<PathBuf>, ProjectError> {
        let mut found: Vec<PathBuf> = Vec::new();
        for pattern in patterns {
            let (without, path) = match pattern.strip_prefix('!') {
                Some(rest) => (true, self.join(rest)?),
                None => (false, self.join(pattern)?),
            };
            let entries = glob::glob(&path.to_string_lossy())
                .map_err(|error| self.error(pattern, format!("`{pattern}`: {error}")))?;
            let files: Vec<PathBuf> = entries.flatten().filter(|path| path.is_file()).collect();
            if files.is_empty() {
                let message = format!("`{pattern}` matches no file ({})", path.display());
                return Err(self.error(pattern, message));
            }
            if without {
                found.retain(|path| !files.contains(path));
            } else {
                found.extend(files);
            }
        }
        Ok(found)
    }

    fn name(&self, path: &Path) -> String {
        for (name, folder) in self.crates {
            if let Ok(inside) = path.strip_prefix(folder) {
                return format!("{name}/{}", inside.display());
            }
        }
        path.strip_prefix(self.folder)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}
