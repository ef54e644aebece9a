//! No circles of imports between the files of a crate, so that each can be understood and tested
//! knowing only files beneath it.
//!
//! [`imports`] says what an import is. Crates whose floors stand on the page about layers are
//! compared with it, file by file.

mod imports;

use imports::{Arrows, Crate, circles, told};
use postern_docs::workspace;
use std::collections::{BTreeMap, BTreeSet};

/// Crates of which `internals/layers.md` has all files from the bottom up, and under which title.
const FLOORS: &[(&str, &str)] = &[
    ("gates", "## Inside the gates"),
    ("runtime", "## Inside the runtime"),
    ("supervision", "## Inside supervision"),
];

/// Files that are one idea, and may import from each other.
const ONE_IDEA: &[(&str, &[(&str, &str)])] = &[
    // The assembler's methods: by the shape of instructions, and jumps.
    (
        "x86",
        &[("assembler.rs", "branch.rs"), ("assembler.rs", "encode.rs")],
    ),
    // A site says what it needs of components, and they read their part of its file.
    (
        "server",
        &[
            ("components.rs", "config.rs"),
            ("components.rs", "config/check.rs"),
            ("components.rs", "config/file.rs"),
        ],
    ),
    ("figures", &[("domains.rs", "domains/lending.rs")]),
];

/// Any number of files: what these crates are about calls itself (expressions in expressions), and
/// nobody has cut it yet.
const ANY: usize = usize::MAX;

/// Crates whose circles are still there, and how many files are in them at most. A crate without
/// one is not here.
const OPEN: &[(&str, usize)] = &[
    ("ecode", ANY),
    ("filter", ANY),
    ("toolchain", ANY),
    ("kernel/exos/net", 6),
    ("kernel/exos/nfs", 3),
];

/// The arrows of a crate of the workspace.
fn arrows(folder: &str) -> Arrows {
    let sources = workspace().join(folder).join("src");
    let exists = |name: &&str| sources.join(name).is_file();
    let root = ["lib.rs", "main.rs"].into_iter().find(exists);
    let root = root.unwrap_or_else(|| panic!("{folder} has no sources"));
    Crate::read(root, |path| {
        std::fs::read_to_string(sources.join(path)).ok()
    })
    .arrows()
}

/// The folders of the product's crates: members of the workspace that are no example and not this
/// one.
fn crates() -> Vec<String> {
    let manifest = std::fs::read_to_string(workspace().join("Cargo.toml")).expect("a manifest");
    let list = &manifest[manifest.find("members = [").expect("members")..];
    let list = &list[..list.find(']').expect("their end")];
    let members = list.split('"').skip(1).step_by(2);
    members
        .filter(|folder| !folder.starts_with("examples/") && *folder != "docs")
        .map(str::to_owned)
        .collect()
}

#[test]
fn imports_make_no_new_circle() {
    let mut wrong = String::new();
    for folder in crates() {
        let arrows = arrows(&folder);
        let pairs = ONE_IDEA.iter().find(|(name, _)| *name == folder);
        let found = circles(&arrows, pairs.map_or(&[], |(_, pairs)| pairs));
        let files: usize = found.iter().map(Vec::len).sum();
        let open = OPEN.iter().find(|(name, _)| *name == folder);
        let known = open.map_or(0, |(_, files)| *files);
        if files > known {
            wrong += &format!("{folder}: {files} files are in circles, {known} were\n");
            for circle in &found {
                wrong += &format!("  a circle of {}\n{}", circle.len(), told(&arrows, circle));
            }
        } else if files == 0 && open.is_some() {
            wrong += &format!("{folder} has no circles any more: it does not belong in OPEN\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Names of files in the first column of the table under a title, from the bottom up.
fn listed(title: &str) -> Vec<String> {
    let page = workspace().join("docs/src/internals/layers.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let part = &page[page.find(title).unwrap_or_else(|| panic!("no {title}"))..];
    let rows = part.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| {
        let cell = row.split('|').nth(1).unwrap_or_default();
        cell.split('`').skip(1).step_by(2).map(str::to_owned)
    })
    .filter(|name| name.ends_with(".rs"))
    .collect()
}

/// What is wrong with an order of files.
fn against(order: &[String], arrows: &Arrows) -> String {
    let floor: BTreeMap<&str, usize> = order.iter().map(String::as_str).zip(0..).collect();
    let mut wrong = String::new();
    for (file, targets) in arrows.iter().filter(|(file, _)| *file != "lib.rs") {
        let Some(own) = floor.get(file.as_str()) else {
            wrong += &format!("{file} is not on the page\n");
            continue;
        };
        for (to, names) in targets {
            if floor.get(to.as_str()).is_none_or(|floor| floor >= own) {
                wrong += &format!("{file} imports from {to}, which is above it: {names:?}\n");
            }
        }
    }
    let files: BTreeSet<&str> = arrows.keys().map(String::as_str).collect();
    for name in order.iter().filter(|name| !files.contains(name.as_str())) {
        wrong += &format!("{name} is on the page, and there is no such file\n");
    }
    wrong
}

#[test]
fn floors_are_as_the_page_says() {
    for (folder, title) in FLOORS {
        let arrows = arrows(folder);
        let mut order = listed(title);
        // Only tests have it, so it is not read.
        order.retain(|name| name != "model.rs");
        let wrong = against(&order, &arrows);
        assert!(wrong.is_empty(), "{folder}:\n{wrong}");
    }
}

/// A crate of these files.
fn invented(files: &[(&str, &str)]) -> Arrows {
    let text = |path: &str| files.iter().find(|(name, _)| *name == path);
    Crate::read("lib.rs", |path| {
        text(path).map(|(_, text)| text.to_string())
    })
    .arrows()
}

#[test]
fn an_invented_circle_is_found() {
    let files = [
        (
            "lib.rs",
            "mod low; mod middle; pub mod high; pub use high::High;",
        ),
        (
            "low.rs",
            "use crate::middle::Middle; pub struct Low(pub Middle);",
        ),
        (
            "middle.rs",
            "mod part; pub use part::Part; pub struct Middle(pub Part);",
        ),
        // Through what the crate passes on, and in a macro.
        (
            "middle/part.rs",
            "pub struct Part; fn f() { assert!(crate::High::new().0 == 0); }",
        ),
        (
            "high.rs",
            "use super::low::Low; pub struct High(pub u8); impl High { pub fn new() -> High { High(0) } } fn g(_: Low) {}",
        ),
    ];
    let arrows = invented(&files);
    let found = circles(&arrows, &[]);
    assert_eq!(
        found,
        [["high.rs", "low.rs", "middle.rs", "middle/part.rs"]]
    );
    assert!(told(&arrows, &found[0]).contains("middle/part.rs -> high.rs: new"));
    // As one idea it is none, as long as nothing else is in it.
    let pairs = [
        ("high.rs", "low.rs"),
        ("low.rs", "middle.rs"),
        ("middle.rs", "middle/part.rs"),
    ];
    assert!(circles(&arrows, &pairs).is_empty());
    assert!(!circles(&arrows, &pairs[..2]).is_empty());
    let order = ["middle/part.rs", "middle.rs", "low.rs", "high.rs"].map(str::to_owned);
    assert!(against(&order, &arrows).contains("middle/part.rs imports from high.rs"));
}

#[test]
fn methods_that_a_file_above_gives_are_imports() {
    let files = [
        ("lib.rs", "mod low; mod high;"),
        ("low.rs", "pub struct Low; fn f(low: &Low) { low.rise() }"),
        (
            "high.rs",
            "use crate::low::Low; impl Low { pub fn rise(&self) {} }",
        ),
    ];
    assert_eq!(circles(&invented(&files), &[]), [["high.rs", "low.rs"]]);
}

#[test]
fn a_function_without_self_is_no_method() {
    let files = [
        ("lib.rs", "mod low; mod high;"),
        (
            "low.rs",
            "pub struct Low; fn f(word: &AtomicU32) { word.load(SeqCst); }",
        ),
        (
            "high.rs",
            "use crate::low::Low; impl Low { pub fn load() -> Low { Low } }",
        ),
    ];
    assert!(circles(&invented(&files), &[]).is_empty());
}

#[test]
fn what_a_trait_asks_for_is_no_method_of_one_file() {
    let files = [
        ("lib.rs", "mod low; mod high;"),
        (
            "low.rs",
            "pub struct Low; fn f(other: &server::Other) { other.counters() }",
        ),
        (
            "high.rs",
            "use crate::low::Low; impl server::Routes for Low { fn counters(&self) {} }",
        ),
    ];
    assert!(circles(&invented(&files), &[]).is_empty());
}

#[test]
fn what_only_tests_import_makes_no_circle() {
    let files = [
        ("lib.rs", "mod low; mod high;"),
        (
            "low.rs",
            "pub struct Low; #[cfg(test)] mod tests { use crate::high::High; }",
        ),
        ("high.rs", "use crate::low::Low; pub struct High(Low);"),
    ];
    assert!(circles(&invented(&files), &[]).is_empty());
}
