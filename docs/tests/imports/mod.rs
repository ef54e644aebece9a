//! Which file of a crate imports from which: read from the sources, so that circles can be found.
//!
//! An arrow goes from a file to the file that *defines* what it names, through re-exports: a file
//! that only passes names on stands in nobody's way. Arrows come from private `use`, from paths in
//! code (also in macros), and from calls of methods that another file than the type's own gives it,
//! where one function only has the name. Modules of tests are not read.

mod read;

pub use read::Crate;

use std::collections::{BTreeMap, BTreeSet};

/// For each file, the files that it imports from, and the names.
pub type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Files that are one idea, as one name.
fn joined<'a>(file: &'a str, pairs: &[(&'a str, &'a str)]) -> &'a str {
    pairs
        .iter()
        .find(|(_, second)| *second == file)
        .map_or(file, |(first, _)| joined(first, pairs))
}

/// The circles of imports, each as its files. The files of a pair count as one.
pub fn circles(arrows: &Arrows, pairs: &[(&str, &str)]) -> Vec<Vec<String>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, targets) in arrows {
        let from = joined(from, pairs);
        let targets = targets.keys().map(|to| joined(to, pairs));
        next.entry(from)
            .or_default()
            .extend(targets.filter(|to| *to != from));
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> = next
        .keys()
        .map(|&from| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(file) = open.pop() {
                for &to in next.get(file).into_iter().flatten() {
                    if seen.insert(to) {
                        open.push(to);
                    }
                }
            }
            (from, seen)
        })
        .collect();
    let back = |a: &str, b: &str| reach.get(b).is_some_and(|seen| seen.contains(a));
    let mut found: Vec<Vec<String>> = Vec::new();
    for (&file, seen) in &reach {
        if seen.contains(file) && !found.iter().any(|c| c.iter().any(|f| f == file)) {
            let circle = seen.iter().filter(|to| back(file, to));
            found.push(circle.map(|&to| to.to_owned()).collect());
        }
    }
    found
}

/// The arrows inside a circle, one a line.
pub fn told(arrows: &Arrows, circle: &[String]) -> String {
    let inside = |file: &&String| circle.contains(file);
    let mut lines = String::new();
    for from in circle {
        for (to, names) in arrows.get(from).into_iter().flatten() {
            if inside(&to) && to != from {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                lines += &format!("    {from} -> {to}: {}\n", names.join(", "));
            }
        }
    }
    lines
}
