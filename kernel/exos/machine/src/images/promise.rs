//! What a program in the machine said was on the disk for good, and when: blocks that it wrote to
//! blocks of its own, between those of the file system, so that the record has all in one order.
//!
//! A block is text. Its first line is `promise WHO PART PARTS`; a promise may take several blocks,
//! written one after the other. Each line of the whole is one of these
//! (`programs/machine/promise`):
//!
//! ```text
//! tree                   all files there are follow, and they are on the disk
//! file SIZE SUM PATH     a file with these bytes, on the disk; SUM is FNV-1a's, of 64 bits
//! folder PATH
//! link SIZE SUM PATH     a link, whose target has these bytes
//! begin PATH             what is there, or below, may be anything from now on
//! ```

use std::collections::BTreeMap;

use postern_exos_abi::errno::Errno;
use postern_exos_abi::file::{Files, Kind};

use super::tree;

/// What a file is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Bytes: how many, and their sum.
    File(u64, u64),
    /// Names.
    Folder,
    /// A target: how long, and its sum.
    Link(u64, u64),
}

/// All that was promised by some moment.
#[derive(Clone, Debug, Default)]
pub struct Promise {
    files: BTreeMap<String, What>,
    open: Vec<String>,
    /// There was one of all files.
    pub is_whole: bool,
    parts: Vec<(u64, String)>,
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo).
pub fn sum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Whether a path is another, or below it.
fn is_at(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Promise {
    /// A block that a program wrote to its own; whether it is part of a promise.
    pub fn hear(&mut self, block: &[u8]) -> bool {
        let end = block.iter().position(|byte| *byte == 0);
        let text = String::from_utf8_lossy(&block[..end.unwrap_or(block.len())]).into_owned();
        let Some((head, rest)) = text.split_once('\n') else {
            return false;
        };
        let words: Vec<&str> = head.split(' ').collect();
        let [kind, who, part, parts] = words[..] else {
            return false;
        };
        let numbers = (
            who.parse::<u64>(),
            part.parse::<usize>(),
            parts.parse::<usize>(),
        );
        let (Ok(who), Ok(part), Ok(parts)) = numbers else {
            return false;
        };
        if kind != "promise" || part >= parts {
            return false;
        }
        // Of one who broke off nothing is heard any more.
        if part == 0 || self.parts.first().is_some_and(|(other, _)| *other != who) {
            self.parts.clear();
        }
        if self.parts.len() == part {
            self.parts.push((who, rest.to_owned()));
        }
        if self.parts.len() == parts {
            let whole: String = self.parts.drain(..).map(|(_, text)| text).collect();
            whole.lines().for_each(|line| self.line(line));
        }
        true
    }

    fn line(&mut self, line: &str) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbered = || {
            let mut words = rest.splitn(3, ' ');
            let size = words.next()?.parse().ok()?;
            let sum = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((size, sum, words.next()?.to_owned()))
        };
        match kind {
            "tree" => {
                self.files.clear();
                self.open.clear();
                self.is_whole = true;
            }
            "begin" => {
                self.files.retain(|path, _| !is_at(path, rest));
                self.open.push(rest.to_owned());
            }
            "folder" => drop(self.files.insert(rest.to_owned(), What::Folder)),
            "file" | "link" => {
                if let Some((size, sum, path)) = numbered() {
                    let what = match kind {
                        "file" => What::File(size, sum),
                        _ => What::Link(size, sum),
                    };
                    // It holds, though what is above it may be anything still.
                    self.open.retain(|open| *open != path);
                    self.files.insert(path, what);
                }
            }
            _ => {}
        }
    }

    /// Whether anything may be there.
    fn is_open(&self, path: &str) -> bool {
        self.open.iter().any(|open| is_at(path, open))
    }

    /// What of it files do not keep: sentences.
    pub fn broken(&self, files: &mut dyn Files) -> Vec<String> {
        let mut problems = Vec::new();
        let root = files.root();
        let found = tree::all(files, root);
        for (path, what) in &self.files {
            match found.get(path) {
                None => problems.push(format!("{path} is lost")),
                Some(Err(error)) => problems.push(format!("{path}: {error}")),
                Some(Ok(there)) => match seen(files, there) {
                    Err(error) => problems.push(format!("{path}: {error}")),
                    Ok(seen) if seen == *what => {}
                    Ok(seen) => problems.push(format!("{path} is {seen:?}, and was {what:?}")),
                },
            }
        }
        for (path, there) in found {
            if let Err(error) = there {
                problems.push(format!("{path}: {error}"));
            } else if self.is_whole && !self.files.contains_key(&path) && !self.is_open(&path) {
                problems.push(format!("{path} is there, and was not"));
            }
        }
        problems
    }
}

/// What a file is.
fn seen(files: &mut dyn Files, there: &tree::Found) -> Result<What, Errno> {
    Ok(match there.status.kind {
        Kind::Folder => What::Folder,
        Kind::Link => What::Link(there.target.len() as u64, sum(&there.target)),
        Kind::File => {
            let bytes = tree::bytes(files, there.status.node)?;
            What::File(bytes.len() as u64, sum(&bytes))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(blocks: &[&str]) -> Promise {
        let mut promise = Promise::default();
        for block in blocks {
            let mut bytes = block.as_bytes().to_vec();
            bytes.resize(4096, 0);
            promise.hear(&bytes);
        }
        promise
    }

    #[test]
    fn promises_come_in_parts() {
        let one = heard(&[
            "promise 5 0 2\ntree\nfolder /a\nfile 3 ",
            "promise 5 1 2\n1f /a/b\n",
        ]);
        assert!(one.is_whole);
        assert_eq!(one.files["/a/b"], What::File(3, 0x1f));
        // Of one who broke off, and of another in between.
        let none = heard(&[
            "promise 5 0 2\ntree\n",
            "promise 6 0 2\nx",
            "promise 5 1 2\nfolder /a\n",
        ]);
        assert!(!none.is_whole && none.files.is_empty());
        assert!(!Promise::default().hear(&[0; 4096]));
    }

    #[test]
    fn what_is_begun_is_promised_no_more() {
        let promise = heard(&[
            "promise 1 0 1\ntree\nfolder /a\nfolder /ab\nfile 1 1 /a/b\n",
            "promise 2 0 1\nbegin /a\n",
            "promise 3 0 1\nfile 2 2 /a/c\n",
        ]);
        let paths: Vec<&str> = promise.files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["/a/c", "/ab"]);
        assert!(promise.is_open("/a/x") && promise.is_open("/a") && !promise.is_open("/ab"));
        assert!(is_at("/x", "/"));
    }
}
