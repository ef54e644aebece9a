//! The table as text: a list of columns, then the rows, in blocks of so many columns that a line
//! stays readable.

use super::{Cell, Column, MemoryTable, Row};
use std::fmt;

/// Columns side by side.
const BLOCK: usize = 16;
/// Names of domains that a column's line lists, at most.
const NAMES: usize = 4;

/// `-`, `r`, `rw`, `x` (with r), and any other combination in full.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.read, self.write, self.execute) {
            (false, false, false) => "-",
            (true, false, false) => "r",
            (true, true, false) => "rw",
            (true, false, true) => "x",
            (true, true, true) => "rwx",
            (false, true, false) => "w",
            (false, false, true) => "x only",
            (false, true, true) => "wx",
        })
    }
}

/// A column's letter: A to Z, then AA, AB and so on.
fn letter(mut column: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.insert(0, (b'A' + (column % 26) as u8) as char);
        match column / 26 {
            0 => return letters.into_iter().collect(),
            rest => column = rest - 1,
        }
    }
}

/// How many bytes, in the largest unit that gives a whole number.
fn size(bytes: u64) -> String {
    match bytes {
        b if b % (1 << 30) == 0 => format!("{} GiB", b >> 30),
        b if b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b => format!("{} KiB", b >> 10),
    }
}

impl Column {
    /// Its domains in a line.
    fn line(&self) -> String {
        let image = self.domains.first().map_or("", |d| &d.image);
        let named = |d: &super::TableDomain| format!("{} at {:#x}", d.name, d.base);
        let mut names: Vec<String> = self.domains.iter().take(NAMES).map(named).collect();
        if let Some(more) = self.domains.len().checked_sub(NAMES + 1) {
            names.push(format!("… and {} more", more + 1));
        }
        let count = match self.domains.len() {
            1 => String::new(),
            count => format!("{count} domains, "),
        };
        format!("{count}{image}: {}", names.join(", "))
    }
}

impl fmt::Display for MemoryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domains: usize = self.columns.iter().map(|c| c.domains.len()).sum();
        let s = if domains == 1 { "" } else { "s" };
        writeln!(f, "process {}: {domains} domain{s}", self.process)?;
        for (number, column) in self.columns.iter().enumerate() {
            writeln!(f, "  {:<2} {}", letter(number), column.line())?;
        }
        let blocks = self.columns.len().div_ceil(BLOCK).max(1);
        for block in 0..blocks {
            let columns = block * BLOCK..((block + 1) * BLOCK).min(self.columns.len());
            let here = |row: &&Row| {
                row.cells.range(columns.clone()).next().is_some()
                    || (block == 0 && row.cells.is_empty())
            };
            write!(
                f,
                "\n  {:10} {:10} {:>10}  {:<4}",
                "from", "to", "size", "host"
            )?;
            for column in columns.clone() {
                write!(f, " {:<3}", letter(column))?;
            }
            writeln!(f, " what")?;
            for row in self.rows.iter().filter(here) {
                let bytes = size(row.end - u64::from(row.start));
                let (start, end) = (row.start, row.end);
                write!(
                    f,
                    "  {start:#010x} {end:#010x} {bytes:>10}  {:<4}",
                    row.host
                )?;
                for column in columns.clone() {
                    write!(f, " {:<3}", row.cell(column))?;
                }
                writeln!(f, " {}", row.what)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_sizes() {
        let letters = [0, 25, 26, 51, 52, 701, 702].map(letter);
        assert_eq!(letters, ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]);
        assert_eq!(
            [4096, 1 << 20, 5 << 30, 12288].map(size),
            ["4 KiB", "1 MiB", "5 GiB", "12 KiB"]
        );
    }
}
