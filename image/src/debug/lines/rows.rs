//! All lines of an image at once, for profilers and debuggers.

use super::{Lines, MAX_TEXT, Query, Slice};
use crate::debug::budget::{Budget, STEPS, Stop};
use gimli::{DebugLineOffset, Unit};
use std::collections::HashMap;

/// Most rows that are collected.
const MAX_ROWS: usize = 1 << 20;

/// From `offset` on, code comes from this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineRow {
    /// Offset in the window.
    pub offset: u32,
    /// Index in [`LineTable::files`].
    pub file: u32,
    /// Counted from 1; 0 if unknown.
    pub line: u32,
}

/// The lines of an image.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    /// Paths as the compiler was given them.
    pub files: Vec<String>,
    /// By offset, each once.
    pub rows: Vec<LineRow>,
}

impl Lines<'_> {
    /// As much of all line programs as can be read in [`STEPS`] steps.
    pub fn table(&self) -> LineTable {
        let mut query = Query {
            dwarf: &self.dwarf,
            budget: Budget(STEPS),
            offset: 0,
        };
        let mut table = LineTable::default();
        let _ = query.collect_rows(&mut table);
        table.rows.sort_unstable();
        table.rows.dedup_by_key(|row| row.offset);
        table
    }
}

impl<'a> Query<'_, 'a> {
    fn collect_rows(&mut self, table: &mut LineTable) -> Result<(), Stop> {
        let mut units = self.dwarf.units();
        while let Some(header) = units.next()? {
            self.budget.pay(1)?;
            // A damaged unit hides itself, not those after it.
            if let Ok(mut unit) = self.unit(header)
                && let Ok(root) = self.root(&mut unit)
                && let Some(program) = root.line_program
            {
                let _ = self.rows_of(&unit, program, table);
            }
        }
        Ok(())
    }

    fn rows_of(
        &mut self,
        unit: &Unit<Slice<'a>>,
        at: DebugLineOffset,
        table: &mut LineTable,
    ) -> Result<(), Stop> {
        let program = self.line_program(unit, at)?;
        let header = program.header().clone();
        let mut rows = program.rows();
        let mut files = HashMap::new();
        while let Some((_, row)) = rows.next_row()? {
            self.budget.pay(1)?;
            let (Ok(offset), false) = (u32::try_from(row.address()), row.end_sequence()) else {
                continue;
            };
            if table.rows.len() == MAX_ROWS {
                return Err(Stop);
            }
            let file = match files.get(&row.file_index()) {
                Some(&file) => file,
                None => {
                    self.budget.pay(MAX_TEXT)?;
                    table.files.push(self.path(unit, &header, row.file_index()));
                    let file = table.files.len() as u32 - 1;
                    files.insert(row.file_index(), file);
                    file
                }
            };
            let line = row.line().map_or(0, |line| line.get());
            table.rows.push(LineRow {
                offset,
                file,
                line: u32::try_from(line).unwrap_or(0),
            });
        }
        Ok(())
    }
}
