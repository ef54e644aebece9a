//! Links between pages lead somewhere, and the table of contents has every page.

use postern_docs::{page, workspace};
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

/// Text and target of each inline link outside code, with its line.
fn links(markdown: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut fenced = false;
    for (index, line) in markdown.lines().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Code spans may hold anything.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let mut rest = prose.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            if let Some(end) = rest.find(')') {
                links.push((index + 1, rest[..end].to_owned()));
            }
        }
    }
    links
}

/// The anchors of a page, as mdBook makes them from its headings.
fn anchors(markdown: &str) -> HashSet<String> {
    let mut fenced = false;
    let mut anchors = HashSet::new();
    for line in markdown.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced || !line.starts_with('#') {
            continue;
        }
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let anchor: String = title
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect();
        anchors.insert(anchor);
    }
    anchors
}

fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[test]
fn links_lead_somewhere() {
    let root = workspace();
    let mut broken = Vec::new();
    let mut checked = 0;
    for page in page::pages(&root) {
        let markdown = std::fs::read_to_string(root.join(&page)).unwrap();
        for (line, link) in links(&markdown) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                _ => normal(&page.parent().unwrap().join(file)),
            };
            let Ok(text) = std::fs::read_to_string(root.join(&target)) else {
                if !root.join(&target).exists() {
                    broken.push(format!("{}:{line}: {link}: no such file", page.display()));
                }
                continue;
            };
            if !anchor.is_empty() && !anchors(&text).contains(anchor) {
                broken.push(format!(
                    "{}:{line}: {link}: no such heading",
                    page.display()
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(checked > 50, "only {checked} links were found");
}

#[test]
fn the_table_of_contents_is_complete() {
    let root = workspace();
    let book = root.join("docs/src");
    let summary = std::fs::read_to_string(book.join("SUMMARY.md")).unwrap();
    let listed: HashSet<PathBuf> = links(&summary)
        .into_iter()
        .map(|(_, link)| normal(&Path::new("docs/src").join(link)))
        .collect();
    for page in page::pages(&root) {
        if page.starts_with("docs/src") && !page.ends_with("SUMMARY.md") {
            assert!(
                listed.contains(&page),
                "SUMMARY.md lacks {}",
                page.display()
            );
        }
    }
}

#[test]
fn code_blocks_have_a_language() {
    let root = workspace();
    for page in page::pages(&root) {
        let markdown = std::fs::read_to_string(root.join(&page)).unwrap();
        for block in page::blocks(&markdown) {
            assert!(
                !block.language().is_empty(),
                "{}:{}: the code block names no language",
                page.display(),
                block.line
            );
        }
    }
}
