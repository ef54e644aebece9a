//! What pages say of the tree is so: the crates, and which of them may have unsafe code.

use postern_docs::workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
}

/// The folders of the workspace's members.
fn members() -> BTreeSet<String> {
    let manifest = read(&workspace().join("Cargo.toml"));
    let list = &manifest[manifest.find("members = [").expect("members")..];
    let list = &list[..list.find(']').expect("their end")];
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Folder and place of the unsafe code, from the table of crates in ARCHITECTURE.md.
fn rows() -> BTreeMap<String, String> {
    let page = read(&workspace().join("ARCHITECTURE.md"));
    let table = &page[page.find("## The crates").expect("the table")..];
    let rows = table.lines().skip_while(|l| !l.starts_with("|---"));
    rows.skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`').to_owned(), cells[3].to_owned())
        })
        .collect()
}

/// All Rust sources below a folder, but those that builds make.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.ends_with("target") => {}
                path if path.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|e| e == "rs") => found.push(path),
                _ => {}
            }
        }
    }
    found
}

/// The file with which a crate begins, and the folder of its sources.
fn root(folder: &str) -> (PathBuf, PathBuf) {
    let at = workspace().join(folder);
    let manifest = read(&at.join("Cargo.toml"));
    let named = manifest
        .lines()
        .filter_map(|l| l.strip_prefix("path = \""))
        .map(|l| at.join(l.trim_end_matches('"')))
        .find(|path| path.is_file());
    let file = ["src/lib.rs", "src/main.rs"]
        .map(|name| at.join(name))
        .into_iter()
        .find(|path| path.is_file())
        .or(named)
        .unwrap_or_else(|| panic!("{folder} has no crate"));
    let folder = file.parent().expect("a folder").to_owned();
    (file, folder)
}

#[test]
fn the_table_of_crates_is_the_workspace() {
    let listed: BTreeSet<String> = rows().into_keys().collect();
    assert_eq!(listed, members());
}

/// Whether a file has unsafe code of its own: attributes of exported functions are none.
fn has_unsafe(text: &str) -> bool {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .any(|line| {
            ["unsafe {", "unsafe fn ", "unsafe impl ", "unsafe trait "]
                .iter()
                .any(|word| line.contains(word))
        })
}

/// A crate that the table gives no unsafe code forbids it; another one has it only where the table
/// says.
#[test]
fn unsafe_code_is_where_the_table_says() {
    let mut wrong = Vec::new();
    for (folder, place) in rows() {
        let (file, sources_at) = root(&folder);
        if place == "none" {
            if !read(&file).contains("#![forbid(unsafe_code)]") {
                wrong.push(format!("{}: forbids no unsafe code", file.display()));
            }
            continue;
        }
        if place.starts_with("denied") && !read(&file).contains("#![deny(unsafe_code)]") {
            wrong.push(format!("{}: denies no unsafe code", file.display()));
        }
        // The place is a path in the crate's sources, of a file or a module; whole crates are told
        // in words.
        let Some(module) = place.strip_prefix('`').and_then(|p| p.strip_suffix('`')) else {
            continue;
        };
        let module = sources_at.join(module.trim_end_matches(".rs"));
        for source in sources(&sources_at) {
            let inside = source.starts_with(&module) || source.with_extension("") == module;
            if !inside && has_unsafe(&read(&source)) {
                wrong.push(format!(
                    "{}: unsafe code outside `{}`",
                    source.display(),
                    module.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The columns of a line, if it is a comment that reads as prose: code, tables, drawings and lists
/// of shell commands in comments are as wide as they are.
fn prose_columns(line: &str) -> Option<usize> {
    let text = line.trim_start();
    let comment = ["//", "/* ", "* "]
        .iter()
        .any(|mark| text.starts_with(mark));
    let body = text.trim_start_matches(['/', '!', '*']);
    let drawn =
        body.contains("   ") || body.contains(['│', '─']) || body.trim_start().starts_with('|');
    (comment && !drawn).then(|| line.chars().count())
}

/// Comments end at column 100, as CONTRIBUTING.md says.
#[test]
fn comments_end_at_the_column_that_the_style_names() {
    let mut long = Vec::new();
    for folder in members()
        .into_iter()
        .chain(["bench", "fuzz"].map(String::from))
    {
        for file in sources(&workspace().join(folder)) {
            let text = read(&file);
            let lines = text.lines().enumerate();
            long.extend(
                lines
                    .filter(|(_, line)| prose_columns(line).is_some_and(|columns| columns > 100))
                    .map(|(at, _)| format!("{}:{}", file.display(), at + 1)),
            );
        }
    }
    assert!(
        long.is_empty(),
        "comments beyond column 100:\n{}",
        long.join("\n")
    );
}
