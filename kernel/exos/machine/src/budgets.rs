//! Exact budgets: what ExOS takes in instructions, under an emulator that counts them. A test holds
//! each to the instruction, so a change of a figure is a change of this table, which
//! `exos-machine bench --bless` writes.

use std::path::Path;
use std::process::Command;

use postern_aegis_machine::said::Figures;

/// The compilers that the budgets are of. Others make other code of the same source, and are held
/// to a tenth.
pub const COMPILERS: [&str; 2] = ["rustc 1.95.", "gcc 12.2."];

/// All that are held.
pub const BUDGETS: &[(&str, u64)] = &[
    ("appel1", 865),
    ("appel1-inverted", 758),
    ("appel2", 636),
    ("appel2-inverted", 605),
    ("copy-10mb", 10327899),
    ("deadline", 667),
    ("dirty", 223),
    ("dirty-inverted", 169),
    ("extension-call", 85),
    ("extension-fault", 14636),
    ("extension-service", 166),
    ("fork", 194072),
    ("fork-exec", 356826),
    ("lrpc", 216),
    ("open-read", 5812),
    ("pipe", 537),
    ("pipe-inline", 271),
    ("prot1", 356),
    ("prot1-inverted", 300),
    ("prot100", 12041),
    ("prot100-inverted", 14229),
    ("round-robin", 517),
    ("shm", 158),
    ("stride", 618),
    ("tlrpc", 201),
    ("trap", 149),
    ("trap-inverted", 149),
    ("unprot100", 13647),
    ("unprot100-inverted", 15835),
];

/// Figures that no budget holds: whole slices and what the registry does meanwhile are in them, and
/// change with anything.
pub const NOT_HELD: &[&str] = &["matrix"];

/// The budget of a figure.
pub fn of(name: &str) -> Option<u64> {
    let found = BUDGETS.iter().find(|(figure, _)| *figure == name);
    found.map(|(_, instructions)| *instructions)
}

/// Whether the compilers here are those that the budgets are of.
pub fn same_compilers() -> bool {
    COMPILERS.iter().all(|wanted| {
        let name = wanted.split(' ').next().unwrap_or_default();
        let output = Command::new(name).arg("--version").output();
        // `rustc 1.95.0 (…)`, `gcc (Debian 12.2.0-14) 12.2.0`.
        output.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let line = text.lines().next().unwrap_or_default();
            let (first, last) = (line.split(' ').nth(1), line.rsplit(' ').next());
            let version = wanted.split(' ').nth(1).unwrap_or_default();
            [first, last]
                .iter()
                .flatten()
                .any(|word| word.starts_with(version))
        })
    })
}

/// Whether a figure is what the budget says: exactly with the same compilers, else within a tenth.
pub fn keeps(found: u64, budget: u64, same_compilers: bool) -> bool {
    match same_compilers {
        true => found == budget,
        false => found.abs_diff(budget) * 10 <= budget,
    }
}

/// Writes figures over the budgets in the source.
pub fn bless(figures: &Figures) -> std::io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/budgets.rs");
    let text = std::fs::read_to_string(&path)?;
    let held = figures
        .iter()
        .filter(|(name, _)| !NOT_HELD.contains(&name.as_str()));
    let rows = held.map(|(name, figure)| (name.as_str(), figure.instructions));
    match with_table(&text, rows) {
        Some(text) => std::fs::write(&path, text),
        None => Err(std::io::Error::other("src/budgets.rs has no table")),
    }
}

/// The source with another table, however its lines were broken.
fn with_table<'a>(text: &str, rows: impl Iterator<Item = (&'a str, u64)>) -> Option<String> {
    // Not the words of this line.
    let (before, rest) = text.split_once(concat!("pub const ", "BUDGETS:"))?;
    let (kind, rest) = rest.split_once('=')?;
    let (_, rest) = rest.split_once("&[")?;
    let (_, after) = rest.split_once("];")?;
    let rows: String = rows
        .map(|(name, figure)| format!("    (\"{name}\", {figure}),\n"))
        .collect();
    Some(format!(
        "{before}pub const BUDGETS:{kind}= &[\n{rows}];{after}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_written_over_whatever_its_lines_are() {
        let lines = "a\npub const BUDGETS: &[(&str, u64)] = &[\n    (\"x\", 1),\n    (\"y\", 2),\n];\nb: &[(1)];\n";
        let line =
            "a\npub const BUDGETS: &[(&str, u64)] = &[(\"x\", 1), (\"y\", 2)];\nb: &[(1)];\n";
        let none = "a\npub const BUDGETS: &[(&str, u64)] =\n    &[];\nb: &[(1)];\n";
        let rows = || [("x", 1), ("y", 2)].into_iter();
        assert_eq!(with_table(lines, rows()).as_deref(), Some(lines));
        assert_eq!(with_table(line, rows()).as_deref(), Some(lines));
        assert!(with_table(none, rows()).is_some_and(|text| text.contains("(\"y\", 2),\n];\nb")));
        assert_eq!(with_table("a", rows()), None);
        let this = include_str!("budgets.rs");
        assert_eq!(
            with_table(this, BUDGETS.iter().copied()).as_deref(),
            Some(this)
        );
    }

    #[test]
    fn budgets_are_exact_for_the_compilers_that_made_them() {
        assert!(keeps(100, 100, true) && !keeps(101, 100, true));
        assert!(keeps(110, 100, false) && !keeps(111, 100, false) && !keeps(89, 100, false));
    }
}
