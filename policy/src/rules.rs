//! What the policy `files` grants: directories of the host, each at a path of the extension's, and
//! limits.
//!
//! Invariant: a path of the extension becomes a granted directory and a path below it, and only
//! `cap-std` follows that path: it refuses whatever would lead out, by `..`, by an absolute path or
//! by a symbolic link. The host's paths do not exist.

use crate::Access;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::io::Errno;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// A directory was not granted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GrantError {
    /// The extension's path.
    #[error(
        "`{0}` is no place for a granted directory: give an absolute path without `..`, such as /data"
    )]
    Guest(String),
    /// Granted twice.
    #[error("`{0}` is granted already; grant each path once")]
    Twice(String),
    /// The host's directory cannot be opened.
    #[error("cannot grant {}: {source}", path.display())]
    Host {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Directories and limits for [`crate::Policy::files`].
#[derive(Clone)]
#[must_use = "rules do nothing before a policy has them"]
pub struct Rules {
    grants: Vec<Grant>,
    pub(super) open_files: usize,
    pub(super) written: u64,
    pub(super) file_size: u64,
}

#[derive(Clone)]
pub(super) struct Grant {
    /// The parts of its path in the extension's eyes.
    at: Vec<Vec<u8>>,
    pub(super) directory: Arc<Dir>,
    pub(super) access: Access,
}

/// Where a path leads.
pub(super) enum PathTarget<'a> {
    /// Below a granted directory: never empty, relative.
    In(&'a Grant, PathBuf),
    /// To a directory above granted ones; the names in it.
    Above(Vec<Vec<u8>>),
    /// Nowhere that is granted.
    Outside,
}

impl Default for Rules {
    fn default() -> Self {
        Rules::new()
    }
}

impl Rules {
    /// No directory; at most 256 open files, no limit of bytes.
    pub fn new() -> Rules {
        Rules {
            grants: Vec::new(),
            open_files: 256,
            written: u64::MAX,
            file_size: u64::MAX,
        }
    }

    /// Grants a directory of the host. The extension finds it at `guest`, an absolute path. The
    /// directory is opened now: what its name means later does not matter. More than one may be
    /// granted, one below the other, too.
    ///
    /// # Errors
    /// [`GrantError`]
    pub fn grant(
        mut self,
        guest: &str,
        host: impl AsRef<Path>,
        access: Access,
    ) -> Result<Rules, GrantError> {
        let parts: Vec<Vec<u8>> = parts(guest.as_bytes()).map(<[u8]>::to_vec).collect();
        let bad = |part: &Vec<u8>| part == b"..";
        if !guest.starts_with('/') || guest.contains('\0') || parts.iter().any(bad) {
            return Err(GrantError::Guest(guest.to_owned()));
        }
        if self.grants.iter().any(|grant| grant.at == parts) {
            return Err(GrantError::Twice(guest.to_owned()));
        }
        let path = host.as_ref();
        let directory = Dir::open_ambient_dir(path, ambient_authority());
        let directory = directory.map_err(|source| GrantError::Host {
            path: path.to_owned(),
            source,
        })?;
        self.grants.push(Grant {
            at: parts,
            directory: Arc::new(directory),
            access,
        });
        Ok(self)
    }

    /// How many files may be open at once, the three streams among them. Default: 256.
    pub fn open_files(mut self, most: usize) -> Rules {
        self.open_files = most;
        self
    }

    /// How many bytes the domain may write to files in its life, resets included; each name that it
    /// makes counts as 4096. Default: no limit.
    pub fn written(mut self, most: u64) -> Rules {
        self.written = most;
        self
    }

    /// How long a file may become by the extension's doing, in bytes. Default: no limit. (Threads
    /// that append to one file at the same moment can each pass it by what they append.)
    pub fn file_size(mut self, most: u64) -> Rules {
        self.file_size = most;
        self
    }

    /// The granted directories: their paths in the extension's eyes, and what may be done below
    /// them.
    pub fn directories(&self) -> impl Iterator<Item = (String, Access)> {
        let path = |grant: &Grant| {
            let words = grant.at.iter().map(|word| String::from_utf8_lossy(word));
            let path: String = words.flat_map(|word| ["/".into(), word]).collect();
            if path.is_empty() { "/".into() } else { path }
        };
        self.grants
            .iter()
            .map(move |grant| (path(grant), grant.access))
    }

    /// The directory that is granted at `guest`.
    pub(super) fn directory_at(&self, guest: &str) -> Option<&Arc<Dir>> {
        let words: Vec<&[u8]> = parts(guest.as_bytes()).collect();
        Some(&self.granted(&words)?.directory)
    }

    /// These rules without the directory that lies at `guest`, and that directory.
    pub(super) fn without(&self, guest: &str) -> Option<(Rules, Arc<Dir>)> {
        let taken = self.directory_at(guest)?.clone();
        let mut rules = self.clone();
        rules
            .grants
            .retain(|grant| !Arc::ptr_eq(&grant.directory, &taken));
        Some((rules, taken))
    }

    /// Whether one of the granted directories is this one.
    pub(super) fn has(&self, directory: &Arc<Dir>) -> bool {
        let mut grants = self.grants.iter();
        grants.any(|grant| Arc::ptr_eq(&grant.directory, directory))
    }

    /// Whether a directory lies exactly there.
    fn granted(&self, at: &[&[u8]]) -> Option<&Grant> {
        let same = |grant: &&Grant| {
            grant.at.len() == at.len() && grant.at.iter().zip(at).all(|(a, b)| a == b)
        };
        self.grants.iter().find(same)
    }

    /// Finds out where `path` leads, seen from the directory `base`. `..` at a granted directory's
    /// top leads to what is above it in the extension's eyes; below the top it is `cap-std`'s to
    /// follow.
    pub(super) fn locate(&self, base: &[u8], path: &[u8]) -> Result<PathTarget<'_>, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let base = if path.starts_with(b"/") {
            &b"/"[..]
        } else {
            base
        };
        // The path from the root, by its words; the grant that it is in, and how far down.
        let mut words: Vec<&[u8]> = Vec::new();
        let mut grant = self.granted(&[]);
        let (mut below, mut depth) = (Vec::new(), 0usize);
        for part in parts(base).chain(parts(path)) {
            if part != b".." {
                words.push(part);
                if let Some(found) = self.granted(&words) {
                    (grant, depth) = (Some(found), 0);
                    below.clear();
                } else {
                    depth += 1;
                    push(&mut below, part);
                }
                continue;
            }
            words.pop();
            if grant.is_some() && depth > 0 {
                depth -= 1;
                push(&mut below, part);
                continue;
            }
            // Up and out of the grant: into the one above, if there is one, at the same words.
            below.clear();
            let above = (0..=words.len())
                .rev()
                .find_map(|n| Some((self.granted(&words[..n])?, n)));
            grant = above.map(|(found, _)| found);
            let from = above.map_or(0, |(_, n)| n);
            depth = words.len() - from;
            for word in &words[from..] {
                push(&mut below, word);
            }
        }
        if let Some(grant) = grant {
            if below.is_empty() {
                below.push(b'.');
            } else if path.ends_with(b"/") {
                below.push(b'/');
            } else if path.ends_with(b"/.") {
                below.extend(b"/.");
            }
            return Ok(PathTarget::In(grant, OsString::from_vec(below).into()));
        }
        let mut names: Vec<Vec<u8>> = self
            .grants
            .iter()
            .filter(|grant| {
                grant.at.len() > words.len() && grant.at.iter().zip(&words).all(|(a, b)| a == b)
            })
            .map(|grant| grant.at[words.len()].clone())
            .collect();
        names.sort();
        names.dedup();
        Ok(match names.is_empty() && !words.is_empty() {
            true => PathTarget::Outside,
            false => PathTarget::Above(names),
        })
    }
}

/// The parts of a path between slashes, without those that say nothing.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&b| b == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
}

fn push(path: &mut Vec<u8>, part: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}

/// The absolute path of `path` seen from `base`, by its words.
pub(super) fn joined(base: &[u8], path: &[u8]) -> Vec<u8> {
    let base = if path.starts_with(b"/") {
        &b"/"[..]
    } else {
        base
    };
    let mut words: Vec<&[u8]> = Vec::new();
    for part in parts(base).chain(parts(path)) {
        match part {
            b".." => drop(words.pop()),
            part => words.push(part),
        }
    }
    let mut joined = Vec::new();
    for word in words {
        joined.push(b'/');
        joined.extend_from_slice(word);
    }
    if joined.is_empty() {
        joined.push(b'/');
    }
    joined
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for grant in &self.grants {
            let at: Vec<_> = grant
                .at
                .iter()
                .map(|p| String::from_utf8_lossy(p))
                .collect();
            map.entry(&format!("/{}", at.join("/")), &grant.access);
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(base: &str, path: &str) -> String {
        let here = std::env::temp_dir();
        let rules = Rules::new()
            .grant("/data", &here, Access::ReadWrite)
            .and_then(|r| r.grant("/data/in/side", &here, Access::Read))
            .and_then(|r| r.grant("/other", &here, Access::Read))
            .unwrap();
        match rules.locate(base.as_bytes(), path.as_bytes()) {
            Err(error) => format!("{error:?}"),
            Ok(PathTarget::Outside) => "outside".into(),
            Ok(PathTarget::Above(names)) => {
                let names: Vec<_> = names.iter().map(|n| String::from_utf8_lossy(n)).collect();
                format!("above {}", names.join(" "))
            }
            Ok(PathTarget::In(grant, path)) => {
                let at: Vec<_> = grant
                    .at
                    .iter()
                    .map(|n| String::from_utf8_lossy(n))
                    .collect();
                format!("{}: {}", at.join("/"), path.display())
            }
        }
    }

    #[test]
    fn a_path_leads_to_one_grant_and_below_it() {
        for (base, path, place) in [
            ("/", "data/x", "data: x"),
            ("/", "/data", "data: ."),
            ("/", "//data/./a//b/", "data: a/b/"),
            ("/", "/data/./a/b/.", "data: a/b/."),
            ("/", "/data/.", "data: ."),
            ("/data", "x", "data: x"),
            ("/data/a", "../b", "data: a/../b"),
            ("/data", "..", "above data other"),
            ("/data", "../../../other/x", "other: x"),
            ("/", "data/../etc/passwd", "outside"),
            ("/", "../etc/passwd", "outside"),
            ("/", "/", "above data other"),
            ("/data/in/side", "../x", "data: in/x"),
            ("/data/in/side", "x/../../y", "data: in/y"),
            ("/data/in", "side/z", "data/in/side: z"),
            ("/data", "a/../../etc", "outside"),
            ("/", "datax", "outside"),
            ("/", "", "NOENT"),
        ] {
            let place = place.replace("NOENT", &format!("{:?}", Errno::NOENT));
            assert_eq!(located(base, path), place, "{base} {path}");
        }
    }

    #[test]
    fn joining_goes_by_words() {
        assert_eq!(joined(b"/a/b", b"../c/./d"), b"/a/c/d");
        assert_eq!(joined(b"/a", b"../../.."), b"/");
        assert_eq!(joined(b"/a", b"/x/"), b"/x");
    }
}
