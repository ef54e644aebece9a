//! What was measured becomes what is held: the budgets in the source, and the page of calls that
//! shows them. For whoever has changed the kernel and wants the figures that it has now.

use std::path::Path;

use crate::place;
use crate::said::Figures;

/// Writes figures over the budgets of the same names.
pub fn budgets(figures: &Figures) -> std::io::Result<()> {
    let path = place::sources().join("machine/src/budgets.rs");
    rewrite(&path, |line| {
        let (name, _) = line.trim().strip_prefix("(\"")?.split_once('"')?;
        let figure = figures.get(name)?;
        Some(format!("    (\"{name}\", {}),", figure.instructions))
    })
}

/// Writes the budgets, as this program was built with them, into the page of calls.
pub fn page() -> std::io::Result<()> {
    let path = place::repository().join("docs/src/reference/aegis-calls.md");
    let rows = crate::reference::calls() + &crate::reference::errors();
    let start = |line: &str| {
        let cells: Vec<&str> = line.splitn(4, '|').collect();
        Some((
            cells.get(1)?.trim().to_owned(),
            cells.get(2)?.trim().starts_with('`'),
        ))
    };
    rewrite(&path, |line| {
        let number = start(line).filter(|(number, is_row)| *is_row && !number.is_empty())?;
        let same = |row: &&str| start(row).as_ref() == Some(&number);
        rows.lines().find(same).map(str::to_owned)
    })
}

/// Writes a file again with some lines replaced.
pub fn rewrite(path: &Path, replace: impl Fn(&str) -> Option<String>) -> std::io::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let lines = text
        .lines()
        .map(|line| replace(line).unwrap_or_else(|| line.to_owned()));
    let mut new = lines.collect::<Vec<_>>().join("\n");
    new.push('\n');
    std::fs::write(path, new)
}
