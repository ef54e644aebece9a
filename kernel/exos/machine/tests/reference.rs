//! The book's page has every function of the headers.

use std::collections::BTreeSet;

use postern_exos_machine::place;

/// Names that a header declares: identifiers of ours before a parenthesis, outside of comments.
fn declared(text: &str) -> BTreeSet<String> {
    let mut rest = text;
    let mut code = String::new();
    while let Some((before, behind)) = rest.split_once("/*") {
        code += before;
        rest = behind.split_once("*/").map_or("", |(_, after)| after);
    }
    code += rest;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices('(') {
        let before = &code[..at];
        let start = before.rfind(|c| !is_part(c)).map_or(0, |at| at + 1);
        let name = &before[start..];
        if name.starts_with("exos_") || name.starts_with("pt_") {
            names.insert(name.to_owned());
        }
    }
    names
}

#[test]
fn comments_declare_nothing() {
    let names = declared("/* exos_a(1) */ int exos_b(int); /* x */ static pt_c (void); pt_d();");
    let wanted = ["exos_b", "pt_d"].map(str::to_owned);
    assert_eq!(names, BTreeSet::from(wanted));
}

#[test]
fn the_page_has_every_function() {
    let page = place::sources().join("../../docs/src/reference/exos.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let folder = place::sources().join("include/exos");
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(folder).expect("headers") {
        let path = entry.expect("a header").path();
        let header = path.file_name().unwrap_or_default().to_string_lossy();
        if !page.contains(&format!("<exos/{header}>")) {
            missing.push(header.clone().into_owned());
        }
        let text = std::fs::read_to_string(&path).expect("a header");
        missing.extend(
            declared(&text)
                .into_iter()
                .filter(|name| !page.contains(name.as_str())),
        );
    }
    assert!(missing.is_empty(), "not on the page: {missing:?}");
}
