//! Pages of the documentation and the code blocks in them. `build.rs` uses this file, too.

use std::path::{Path, PathBuf};

/// A fenced code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Line of the opening fence, from 1.
    pub line: usize,
    /// What stands behind the fence: language, then words and `key=value` pairs.
    pub info: String,
    /// The code.
    pub text: String,
}

impl Block {
    /// The words of the info string.
    fn words(&self) -> impl Iterator<Item = &str> {
        self.info.split([' ', ',']).filter(|w| !w.is_empty())
    }

    /// The language, or the empty string.
    pub fn language(&self) -> &str {
        self.words().next().unwrap_or("")
    }

    /// Whether the info string has this word.
    pub fn has(&self, word: &str) -> bool {
        self.words().skip(1).any(|w| w == word)
    }

    /// The file that the block is, from `file=NAME`.
    pub fn file(&self) -> Option<&str> {
        self.words().find_map(|w| w.strip_prefix("file="))
    }

    /// Whether the block is the source of an extension (and not of a host in C).
    pub fn is_extension(&self) -> bool {
        self.file().is_some_and(|f| f.ends_with(".c"))
            && !["#include <postern.h>", "#include <postern-"]
                .iter()
                .any(|header| self.text.contains(header))
    }
}

/// The fenced code blocks of a page, in order. Fences stand at the beginning of a line.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, Block)> = None;
    for (index, line) in markdown.lines().enumerate() {
        match &mut open {
            None if line.starts_with("```") => {
                let info = line.trim_start_matches('`');
                let fence = line[..line.len() - info.len()].to_owned();
                let block = Block {
                    line: index + 1,
                    info: info.trim().to_owned(),
                    text: String::new(),
                };
                open = Some((fence, block));
            }
            Some((fence, _)) if line.trim_end() == *fence => {
                blocks.extend(open.take().map(|(_, block)| block))
            }
            Some((_, block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    blocks
}

/// What a person expects to find at the root of a repository.
const AT_THE_ROOT: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
];

/// All pages, by their path from the project's root: those at the root and everything in the book.
pub fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages = AT_THE_ROOT.map(PathBuf::from).to_vec();
    let mut folders = vec![PathBuf::from("docs/src")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}
